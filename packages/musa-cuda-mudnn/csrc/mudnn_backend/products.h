// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's matrix products with a given output.
#pragma once

#include <mudnn_backend/device.h>

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

} // namespace musa_emulator::dnn
