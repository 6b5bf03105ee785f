// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <mudnn_backend/products.h>

#include <ATen/BlasBackend.h>

namespace musa_emulator::dnn {
namespace {

constexpr int64_t kTile = 128; // the only tile of cuBLAS

struct Scale {
  at::Tensor values;
  int64_t recipe;
};

// In torch's layout: one scale for each row has the rows first in memory, one for each group of rows has k first, padded to
// a multiple of 4.
Scale in_layout_of_cublas(const at::Tensor& grid, int64_t rows) {
  using at::blas::ScalingType;
  if (grid.size(0) == rows) {
    return {grid.t().contiguous().t(), static_cast<int64_t>(ScalingType::BlockWise1x128)};
  }
  const int64_t padding = (4 - grid.size(1) % 4) % 4;
  return {
      at::constant_pad_nd(grid, {0, padding}).contiguous().t(), static_cast<int64_t>(ScalingType::BlockWise128x128)};
}

} // namespace

bool device_multiply_scaled(
    at::Tensor d, const at::Tensor& a, const at::Tensor& b, const at::Tensor& scale_a, const at::Tensor& scale_b,
    int tile, const std::optional<at::Tensor>& bias) {
  const int64_t m = a.size(0);
  const int64_t n = b.size(1);
  const bool supported = a.size(1) % 16 == 0 && n % 16 == 0 && a.stride(1) == 1 && b.stride(0) == 1 &&
      d.is_contiguous() && !at::isFloat8Type(d.scalar_type()) &&
      (!bias.has_value() ||
       (bias->dim() == 1 && bias->scalar_type() == d.scalar_type() && d.scalar_type() != at::kFloat));
  if (!supported) {
    return false;
  }
  try {
    if (tile == 0) {
      const bool single = scale_a.numel() == 1 && scale_b.numel() == 1;
      const auto column = [&](const at::Tensor& scale, int64_t rows) {
        return single ? scale : scale.reshape({-1, 1}).expand({rows, 1}).contiguous();
      };
      at::_scaled_mm_out(d, a, b, column(scale_a, m), column(scale_b, n).t(), bias, {}, d.scalar_type());
      return true;
    }
    if (tile != kTile || scale_a.dim() != 2 || scale_b.dim() != 2) {
      return false;
    }
    const Scale left = in_layout_of_cublas(scale_a, m);
    const Scale right = in_layout_of_cublas(scale_b, n);
    at::_scaled_mm_v2_out(
        d, a, b, {left.values}, {left.recipe}, {}, {right.values}, {right.recipe}, {}, bias, d.scalar_type());
    return true;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::AcceleratorError&) { // of this kernel or an earlier one
    throw;
  } catch (const c10::Error&) { // a GPU without these products, or a pair of types or scales that cuBLAS does not have
    return false;
  }
}

} // namespace musa_emulator::dnn
