// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Results of torch's functions in the caller's memory. cuDNN functions with an output parameter write there directly;
// for functions without an out= form, the allocation of the result returns the caller's memory.
#pragma once

#include <mudnn_backend/device.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace musa_emulator::dnn {

// While a Lending is alive, allocations by torch's functions on this thread can return the memory of `places`. Among
// the allocations of a place's size, the one is chosen that became the result in an earlier call with the same key.
// Places that are not dense are skipped. Without a Lending the result is copied, which takes about as long as a
// kernel and needs a second buffer.
class Lending {
 public:
  // `places` must outlive this object.
  Lending(const at::Tensor* places, size_t count, size_t key);
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  // Returns places[index] if `value` was allocated there, otherwise `value`. Records which allocation `value` is.
  at::Tensor result(size_t index, at::Tensor value);

  // Called by the kernels of aten::empty. Returns a tensor in one of the places, or an undefined tensor.
  at::Tensor take(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type);
  // Records an allocation from torch's own allocator.
  void note(const at::Tensor& made);

 private:
  static constexpr int kUnknown = -1;
  static constexpr int kNever = -2; // the result has another dimension order
  static constexpr size_t kMost = 3; // most results of a function

  int count_of(size_t bytes) const;

  struct Made {
    size_t bytes;
    const void* data;
  };
  using Wanted = std::array<int, kMost>; // for each place, the index of the allocation that gets it

  const at::Tensor* const places_;
  const size_t count_;
  Wanted* wanted_ = nullptr; // null if a place is not dense; no place is used then
  std::vector<Made> made_;
  Lending* before_ = nullptr;
  c10::impl::LocalDispatchKeySet keys_;
};

// Returns make(), as `place` itself if torch allocated the value there. make() must not read `place`. All calls with
// one key must allocate in the same order.
template <class Make>
at::Tensor make_in(const at::Tensor& place, size_t key, Make&& make) {
  Lending lending(&place, 1, key);
  return lending.result(0, make());
}

// As make_in, for functions that return an array of results.
template <size_t Count, class Make>
std::array<at::Tensor, Count> make_all_in(const std::array<at::Tensor, Count>& places, size_t key, Make&& make) {
  Lending lending(places.data(), Count, key);
  std::array<at::Tensor, Count> values = make();
  for (size_t i = 0; i < Count; ++i) {
    values[i] = lending.result(i, std::move(values[i]));
  }
  return values;
}

template <size_t Count>
void copy_results(const std::array<at::Tensor, Count>& places, const std::array<at::Tensor, Count>& values) {
  for (size_t i = 0; i < Count; ++i) {
    if (!values[i].is_same(places[i])) {
      places[i].copy_(values[i]);
    }
  }
}

// Returns false, without doing anything, if cuDNN does not support the operands with these strides.
bool convolve_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
bool input_gradient_into(
    at::Tensor& grad_in, const at::Tensor& grad_out, const at::Tensor& weight, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
bool filter_gradient_into(
    at::Tensor& grad_weight, const at::Tensor& grad_out, const at::Tensor& in, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
// Batch norm in training mode. Returns false, without doing anything, if torch would not choose cuDNN, or if the
// operands are channels last: cuDNN then needs reserve memory for the gradient, which muDNN's interface cannot hold.
bool batch_norm_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias,
    const at::Tensor& running_mean, const at::Tensor& running_variance, at::Tensor& mean, at::Tensor& deviation,
    double momentum, double epsilon);
// The gradients of batch norm in training mode, whether or not batch_norm_into computed it. Returns false for operands
// that it does not support.
bool batch_norm_gradients(
    at::Tensor& of_input, at::Tensor& of_weight, at::Tensor& of_bias, const at::Tensor& gradient, const at::Tensor& in,
    const at::Tensor& weight, const at::Tensor& mean, const at::Tensor& deviation, double epsilon);

} // namespace musa_emulator::dnn
