// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/indices.h"

#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSACaptures.h>
#include <c10/musa/MUSAEnvironment.h>

#include <algorithm>

#include "support/call.h"

namespace musa_ops_mudnn {
namespace {

// The values of a contiguous LONG index tensor on the device, after a wait for the current stream. Read in place if the
// host can address them, otherwise copied.
class HostIndices {
 public:
  explicit HostIndices(const at::Tensor& index) {
    if (c10::musa::host_addressable()) {
      const c10::DeviceIndex device = index.device().index();
      const c10::musa::MUSAKernelGuard guard(device);
      C10_MUSA_CHECK(musaStreamSynchronize(c10::musa::getCurrentMUSAStream(device).stream()));
      values_ = {index.const_data_ptr<int64_t>(), static_cast<size_t>(index.numel())};
    } else {
      copied_ = values_of<int64_t>(index);
      values_ = copied_;
    }
  }
  HostIndices(const HostIndices&) = delete;
  HostIndices& operator=(const HostIndices&) = delete;
  operator c10::ArrayRef<int64_t>() const { return values_; }

 private:
  std::vector<int64_t> copied_;
  c10::ArrayRef<int64_t> values_;
};

// Calls raise(index) for an index outside low <= index < high, and returns whether any index is negative.
template <class Raise>
bool any_negative(c10::ArrayRef<int64_t> values, int64_t low, int64_t high, Raise&& raise) {
  // One comparison checks both bounds, because values below the lower one wrap.
  const auto span = static_cast<uint64_t>(high - low);
  uint64_t outside = 0;
  int64_t signs = 0;
  for (const int64_t value : values) {
    outside |= static_cast<uint64_t>(value - low) >= span;
    signs |= value;
  }
  if (outside != 0) [[unlikely]] {
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    raise(*least < low ? *least : *greatest);
  }
  return signs < 0;
}

// The same for an index on the host or on the device. Returns false only if it has checked that none is negative.
template <class Raise>
bool may_be_negative(const at::Tensor& index, int64_t low, int64_t high, Raise&& raise) {
  if (index.is_cpu()) {
    return any_negative({index.const_data_ptr<int64_t>(), static_cast<size_t>(index.numel())}, low, high, raise);
  }
  return !looks_at_values() || any_negative(HostIndices(index), low, high, raise);
}

dnn::Tensor describe_matrix(
    const at::Tensor& contiguous, int64_t rows, int64_t columns, Access access = Access::Write) {
  return describe_as(contiguous, {rows, columns}, {columns, 1}, access);
}

} // namespace

bool looks_at_values() {
  static const bool looks = [] {
    const bool cheap = c10::musa::computes_on_host() || c10::musa::environment_variable("MUSA_LAUNCH_BLOCKING") == "1";
    return c10::musa::environment_flag("TORCH_MUSA_CHECK_INDICES", cheap);
  }();
  // A wait would invalidate a capture in progress on any thread.
  return looks && !c10::musa::capture_in_progress();
}

void require_below(const at::Tensor& index, int64_t dim, int64_t size) {
  may_be_negative(index, 0, size, [&](int64_t value) {
    TORCH_CHECK(false, "index ", value, " is out of bounds for dimension ", dim, " with size ", size);
  });
}

void require_index_below(const at::Tensor& index, int64_t dim, int64_t size) {
  may_be_negative(index, 0, size, [&](int64_t value) {
    TORCH_CHECK_INDEX(false, "index ", value, " is out of range for dimension ", dim, " with size ", size);
  });
}

void require_labels(const at::Tensor& labels, int64_t ignored, int64_t classes) {
  if (!looks_at_values()) {
    return;
  }
  const HostIndices values(labels);
  for (const int64_t label : c10::ArrayRef<int64_t>(values)) {
    TORCH_CHECK_INDEX(label == ignored || (0 <= label && label < classes), "Target ", label, " is out of bounds.");
  }
}

Operand contiguous_index(const at::Tensor& index) { return contiguous(in_dtype(index, at::kLong)); }

at::Tensor from_start(const at::Tensor& index, int64_t size) {
  const at::Tensor negative = at::empty(index.sizes(), index.options().dtype(at::kBool));
  run_unary(UnaryMode::LT, negative, index, int64_t{0});
  const at::Tensor moved = at::empty(index.sizes(), index.options());
  run_unary(UnaryMode::ADD, moved, index, size);
  at::Tensor result = at::empty(index.sizes(), index.options());
  run_ternary(TernaryMode::SELECT, result, negative, moved, index);
  return result;
}

at::Tensor wrapped_index(const at::Tensor& index, const at::Tensor& self, int64_t dim, int64_t size) {
  // A CPU tensor is converted by torch, and its values can be checked without a wait.
  const Operand longs = index.is_cpu() ? contiguous(index.to(at::kLong)) : contiguous_index(index);
  const bool negative = may_be_negative(longs, -size, size, [&](int64_t value) {
    TORCH_CHECK_INDEX(false, "index ", value, " is out of bounds for dimension ", dim, " with size ", size);
  });
  const at::Tensor there = index.is_cpu() ? longs->to(self.device()) : *longs;
  return negative ? from_start(there, size) : there;
}

at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.view({1}) : tensor; }

void pick_slices(
    const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t outer, int64_t size,
    int64_t inner) {
  const int64_t picks = index.numel();
  dnn::GatherX op;
  check(op.SetMode(dnn::GatherX::Mode::GATHER), "GatherX::SetMode");
  check(op.SetAxis(1), "GatherX::SetAxis");
  check(op.SetBatchDims(0), "GatherX::SetBatchDims");
  const OnDevice on(out);
  dnn::Tensor result = describe_as(out, {outer, picks, inner}, {picks * inner, inner, 1});
  check(
      op.Run(
          on.handle(), result, describe_as(index, {picks}, {1}, kRead),
          describe_as(params, {outer, size, inner}, {size * inner, inner, 1}, kRead)),
      "GatherX::Run", {&out, &index, &params});
}

void pick_elements(const at::Tensor& out, const at::Tensor& index, const at::Tensor& params, int64_t rows) {
  const int64_t picks = index.numel() / rows;
  dnn::GatherX op;
  check(op.SetMode(dnn::GatherX::Mode::GATHER), "GatherX::SetMode");
  check(op.SetAxis(1), "GatherX::SetAxis");
  check(op.SetBatchDims(1), "GatherX::SetBatchDims");
  const OnDevice on(out);
  dnn::Tensor result = describe_matrix(out, rows, picks);
  check(
      op.Run(
          on.handle(), result, describe_matrix(index, rows, picks, kRead),
          describe_matrix(params, rows, params.numel() / rows, kRead)),
      "GatherX::Run", {&out, &index, &params});
}

void run_scatter(
    ScatterMode mode, const at::Tensor& inout, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
  dnn::Scatter op;
  check(op.SetMode(mode), "Scatter::SetMode");
  const OnDevice on(inout);
  dnn::Tensor result = describe(inout);
  check(
      op.Run(on.handle(), result, operand(index), operand(source), static_cast<int>(dim), on.workspace()),
      "Scatter::Run", {&inout, &index, &source});
}

void run_scatter_rows(
    RowMode mode, const at::Tensor& inout, int64_t size, const at::Tensor& index, const at::Tensor& source) {
  const int64_t inner = inout.numel() / size;
  dnn::ScatterND op;
  check(op.SetMode(mode), "ScatterND::SetMode");
  const OnDevice on(inout);
  dnn::Tensor result = describe_matrix(inout, size, inner);
  check(
      op.Run(
          on.handle(), result, describe_matrix(index, index.numel(), 1, kRead),
          describe_matrix(source, index.numel(), inner, kRead), on.workspace()),
      "ScatterND::Run", {&inout, &index, &source});
}

} // namespace musa_ops_mudnn
