// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Results of torch's functions in the caller's memory: by cuDNN's functions in torch that write to memory given, and
// for functions without an out= form by lending the caller's memory to the allocation that becomes the result.
#pragma once

#include <mudnn_backend/device.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace musa_emulator::dnn {

// Within its life, allocations that torch's functions make on this thread get the memory of `places`: of the
// allocations as large as a place, the one that became the result when a call with the same key ran before. Places that
// are not dense are not lent. Without this a result is copied, which takes about as long as a kernel and a second buffer.
class Lending {
 public:
  // places: must outlive this.
  Lending(const at::Tensor* places, size_t count, size_t key);
  ~Lending();
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  // places[index] if the value of a function is there, and otherwise the value; it keeps where the value was allocated.
  at::Tensor result(size_t index, at::Tensor value);

  // Used by the kernels of aten::empty: a tensor in one of the places, or an undefined one.
  at::Tensor take(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type);
  // An allocation of torch's own.
  void note(const at::Tensor& made);

 private:
  static constexpr int kUnknown = -1;
  static constexpr int kNever = -2; // the function's result has another order of dimensions
  static constexpr size_t kMost = 3; // results of a function

  int count_of(size_t bytes) const;

  struct Made {
    size_t bytes;
    const void* data;
  };
  using Wanted = std::array<int, kMost>; // which allocation of a place's size gets it

  const at::Tensor* const places_;
  const size_t count_;
  Wanted* wanted_ = nullptr; // null if a place is not dense: then no memory is lent
  std::vector<Made> made_;
  Lending* before_ = nullptr;
  c10::impl::LocalDispatchKeySet keys_;
};

// Calls make() and returns its value: `place` itself if torch allocated the value there. make() must not read `place`. Calls
// with the same key allocate in the same order.
template <class Make>
at::Tensor make_in(const at::Tensor& place, size_t key, Make&& make) {
  Lending lending(&place, 1, key);
  return lending.result(0, make());
}

// The same for functions with several results, in an array.
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

// False, and nothing was done, where cuDNN does not take the operands as they lie in memory.
bool convolve_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
bool input_gradient_into(
    at::Tensor& grad_in, const at::Tensor& grad_out, const at::Tensor& weight, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
bool filter_gradient_into(
    at::Tensor& grad_weight, const at::Tensor& grad_out, const at::Tensor& in, c10::IntArrayRef pad,
    c10::IntArrayRef stride, c10::IntArrayRef dilation, int64_t groups);
// Batch norm of training. False, and nothing was done, where torch would not choose cuDNN, or the operands are channels last:
// cuDNN's function for those keeps memory for the gradient, which muDNN's interface has no place for.
bool batch_norm_into(
    at::Tensor& out, const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& running_mean,
    const at::Tensor& running_variance, at::Tensor& mean, at::Tensor& deviation, double momentum, double epsilon);

} // namespace musa_emulator::dnn
