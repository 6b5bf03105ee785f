// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Dropout. Takes its random numbers from the musa generator: the same seed gives the same mask on every run, and each
// replay of a graph draws a new one.
#include "dropout.h"

#include <ATen/musa/MUSAGeneratorImpl.h>
#include <ATen/ops/empty_like.h>

#include <mutex>

#include "families.h"
#include "support/call.h"
#include "support/predicates.h"

// Exported by libraries that compose a dropout mask of many operators. The SDK's library does not have this function.
extern "C" [[gnu::weak]] bool mudnn_backend_composes_dropout();

namespace musa_ops_mudnn {

at::PhiloxMusaState draw_numbers(const at::Tensor& like, int64_t count) {
  const at::Generator& generator = at::musa::detail::getDefaultMUSAGenerator(like.device().index());
  auto* const impl = at::check_generator<at::MUSAGeneratorImpl>(generator);
  const std::lock_guard<std::mutex> lock(impl->mutex_);
  // The generator counts numbers per thread, and muDNN does not document the number of threads. One thread is assumed:
  // 64-bit offsets are large enough.
  return impl->philox_musa_state(static_cast<uint64_t>(count));
}

namespace {

void set_numbers(dnn::Dropout& op, const at::PhiloxMusaState& numbers) {
  if (numbers.captured_) {
    check(op.SetSeed(reinterpret_cast<uint64_t*>(numbers.seed_.ptr)), "Dropout::SetSeed");
    check(
        op.SetOffset(reinterpret_cast<uint64_t*>(numbers.offset_.ptr), numbers.offset_intragraph_),
        "Dropout::SetOffset");
  } else {
    check(op.SetSeed(numbers.seed_.val), "Dropout::SetSeed");
    check(op.SetOffset(numbers.offset_.val), "Dropout::SetOffset");
  }
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p, std::optional<bool> /*train*/) {
  std::tuple<at::Tensor, at::Tensor> results{
      at::empty_like(input), at::empty_like(input, input.options().dtype(at::kBool))};
  const auto& [out, mask] = results;
  dnn::Dropout op;
  check(op.SetP(p), "Dropout::SetP");
  set_numbers(op, draw_numbers(input, input.numel()));
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  dnn::Tensor kept = describe(mask);
  check(op.RunDropout(on.handle(), result, operand(input), kept), "Dropout::RunDropout", {&out, &input});
  return results;
}

// If the library composes dropout of operators, the kernel of the next provider is faster.
bool has_kernel() {
  static const bool composes = mudnn_backend_composes_dropout != nullptr && mudnn_backend_composes_dropout();
  return !composes;
}

// Without training, no numbers are drawn and the result is the input.
bool native_dropout_served(const at::Tensor& input, double p, std::optional<bool> train) {
  return has_kernel() && serves<float_types>(input) && train.value_or(true) && p >= 0 && p <= 1;
}

at::Tensor native_dropout_backward(const at::Tensor& grad_output, const at::Tensor& mask, double scale) {
  at::Tensor grad_input = at::empty_like(grad_output);
  dnn::Dropout op;
  check(op.SetScale(scale), "Dropout::SetScale");
  const OnDevice on(grad_input);
  dnn::Tensor result = describe(grad_input);
  check(
      op.RunDropoutBwd(on.handle(), result, operand(grad_output), operand(mask)), "Dropout::RunDropoutBwd",
      {&grad_output, &mask});
  return grad_input;
}

bool native_dropout_backward_served(const at::Tensor& grad_output, const at::Tensor& mask, double /*scale*/) {
  return has_kernel() && serves<float_types>(grad_output) && serves_tensor(mask, bool_type) &&
      mask.device() == grad_output.device() && mask.sizes() == grad_output.sizes();
}

} // namespace

void declare_dropout(OpPack& pack) {
  pack.impl("aten::native_dropout", TORCH_FN(native_dropout), TORCH_FN(native_dropout_served));
  pack.impl(
      "aten::native_dropout_backward", TORCH_FN(native_dropout_backward), TORCH_FN(native_dropout_backward_served));
}

} // namespace musa_ops_mudnn
