// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/library.h>

#ifdef WITH_CUDA
constexpr bool kWithDevice = true;
#else
constexpr bool kWithDevice = false;
#endif

inline void check_operands(const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.sizes() == b.sizes(), "sizes differ: ", a.sizes(), " and ", b.sizes());
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dtypes differ: ", a.scalar_type(), " and ", b.scalar_type());
}
