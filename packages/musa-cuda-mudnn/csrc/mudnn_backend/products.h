// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's matrix products with a given output.
#pragma once

#include <mudnn_backend/device.h>

#include <optional>

namespace musa_emulator::dnn {

// d = alpha * a * b + beta * addend
inline void multiply(
    at::Tensor& d, const at::Tensor& a, const at::Tensor& b, const at::Tensor& addend, double beta, double alpha) {
  const bool bare = beta == 0 && alpha == 1;
  if (b.dim() == 2) {
    bare ? at::mm_out(d, a, b) : at::addmm_out(d, addend, a, b, beta, alpha);
  } else if (b.dim() == 1) {
    at::addmv_out(d, addend, a, b, beta, alpha);
  } else {
    bare ? at::bmm_out(d, a, b) : at::baddbmm_out(d, addend, a, b, beta, alpha);
  }
}

// Computes d = a * b + bias of 8-bit floats by cuBLAS. tile: 0 for a scale of each factor, or of each row of a and column
// of b; otherwise the scales are matrices (rows or groups of `tile` of them, tiles along k). Returns false, without doing
// anything, for operands that torch's kernels do not support.
bool device_multiply_scaled(
    at::Tensor d, const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale_a, const at::Tensor& scale_b,
    int tile, const std::optional<at::Tensor>& bias);

} // namespace musa_emulator::dnn
