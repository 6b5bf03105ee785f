// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engines/aten.h"

#include <ATen/native/Resize.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace musa_ops_ported::aten {

at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options) { return at::empty(sizes, options); }

at::Tensor empty_like(const at::Tensor& self, const at::TensorOptions& options) {
  return at::empty_like(self, options);
}

at::Tensor zeros(at::IntArrayRef sizes, const at::TensorOptions& options) { return at::zeros(sizes, options); }

at::Tensor zeros_like(const at::Tensor& self, const at::TensorOptions& options) {
  return at::zeros_like(self, options);
}

at::Tensor ones_like(const at::Tensor& self, const at::TensorOptions& options) { return at::ones_like(self, options); }

at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value, const at::TensorOptions& options) {
  return at::full(sizes, value, options);
}

at::Tensor arange(int64_t end, const at::TensorOptions& options) { return at::arange(end, options); }

std::tuple<at::Tensor, at::Tensor> sort(const at::Tensor& self, bool stable, int64_t dim, bool descending) {
  return at::sort(self, stable, dim, descending);
}

bool resize_output(const at::Tensor& output, at::IntArrayRef sizes) { return at::native::resize_output(output, sizes); }

} // namespace musa_ops_ported::aten
