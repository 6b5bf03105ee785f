// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// torch's matrix products, for operands whose shapes and types have been checked.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm_native.h>
#include <ATen/ops/addmv_cpu_dispatch.h>
#include <ATen/ops/baddbmm_cpu_dispatch.h>
#include <ATen/ops/bmm_native.h>
#include <ATen/ops/mm_native.h>
#include <mudnn_backend/lending.h>

namespace musa_emulator::dnn {

// A structured kernel of torch without its meta function, which would repeat the caller's checks.
template <class Structured>
struct KernelOf final : Structured {
  const at::Tensor& maybe_get_output(int64_t /*index*/) override {
    static const at::Tensor none;
    return none;
  }
};

// Computes d = alpha * a * b + beta * addend.
inline void multiply(
    at::Tensor& d, const at::Tensor& a, const at::Tensor& b, const at::Tensor& addend, double beta, double alpha) {
  using namespace at::native;
  const bool bare = beta == 0 && alpha == 1;
  if (b.dim() == 2) {
    bare ? KernelOf<structured_mm_out_cpu>().impl(a, b, d)
         : KernelOf<structured_addmm_out_cpu>().impl(addend, a, b, beta, alpha, d);
  } else if (b.dim() == 1) {
    at::cpu::addmv_out(d, addend, a, b, beta, alpha);
  } else {
    bare ? KernelOf<structured_bmm_out_cpu>().impl(a, b, d) : (void)at::cpu::baddbmm_out(d, addend, a, b, beta, alpha);
  }
}

inline constexpr Declines device_multiply_scaled;

} // namespace musa_emulator::dnn
