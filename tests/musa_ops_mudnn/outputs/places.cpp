// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Functions that leave their result in the output argument in different ways.
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <support/outputs.h>
#include <cstdio>
#include <cstdlib>

using musa_emulator::dnn::Outputs;

namespace musa_emulator::dnn {
at::Tensor alias_memory(void* address, c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return at::from_blob(address, sizes, strides, at::TensorOptions(type));
}
} // namespace musa_emulator::dnn

template <class Function>
void call(const char* name, Function function, bool by_rows = true) {
  float memory[6] = {9, 9, 9, 9, 9, 9};
  at::Tensor out = by_rows ? at::from_blob(memory, {2, 3}) : at::from_blob(memory, {2, 3}, {1, 2});
  at::Tensor other;
  const Outputs given(out, other);
  const at::Tensor value = at::arange(6, at::kFloat).view({2, 3});
  function(out, value);
  given.keep();
  const at::Tensor again = by_rows ? at::from_blob(memory, {2, 3}) : at::from_blob(memory, {2, 3}, {1, 2});
  if (!at::equal(again, value) || out.data_ptr() != memory || out.strides() != again.strides() || other.defined()) {
    std::puts(name);
    std::exit(1);
  }
}

int main() {
  for (const bool by_rows : {true, false}) {
    call("writes there", [](at::Tensor& out, const at::Tensor& value) { out.copy_(value); }, by_rows);
    call("assigns a tensor", [](at::Tensor& out, const at::Tensor& value) { out = value; }, by_rows);
    call("assigns a view", [](at::Tensor& out, const at::Tensor& value) { out = value.t().contiguous().t(); }, by_rows);
    call("sets other memory", [](at::Tensor& out, const at::Tensor& value) { out.set_(value.clone()); }, by_rows);
    call(
        "assigns another type", [](at::Tensor& out, const at::Tensor& value) { out = value.to(at::kDouble); }, by_rows);
    call(
        "changes the strides",
        [](at::Tensor& out, const at::Tensor& value) {
          const std::vector<int64_t> strides =
              out.stride(0) == 3 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{3, 1};
          out.unsafeGetTensorImpl()->set_sizes_and_strides({2, 3}, strides);
          out.copy_(value);
        },
        by_rows);
  }
  for (const bool undefined : {true, false}) {
    try {
      call(
          "another shape", [&](at::Tensor& out, const at::Tensor&) { out = undefined ? at::Tensor() : at::ones({3}); });
      return 1;
    } catch (const std::runtime_error&) {}
  }
  return 0;
}
