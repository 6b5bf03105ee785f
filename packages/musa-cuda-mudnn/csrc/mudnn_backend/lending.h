// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Convolutions and batch norm into the caller's memory, where cuDNN's functions in torch write to memory given.
#pragma once

#include <mudnn_backend/device.h>

#include <cstddef>

namespace musa_emulator::dnn {

// What make() returns; the caller copies it.
template <class Make>
at::Tensor make_in(const at::Tensor& /*place*/, size_t /*key*/, Make&& make) {
  return make();
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
