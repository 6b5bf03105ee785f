// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Functions of torch that kernels call. torch's own headers of operators define inline functions whose templates GCC
// instantiates in every file, which takes 1.3 s a file; include those only for functions that few kernels call.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace musa_ops_ported::aten {

at::Tensor empty(at::IntArrayRef sizes, const at::TensorOptions& options);
at::Tensor empty_like(const at::Tensor& self, const at::TensorOptions& options = {});
at::Tensor zeros(at::IntArrayRef sizes, const at::TensorOptions& options);
at::Tensor zeros_like(const at::Tensor& self, const at::TensorOptions& options = {});
at::Tensor ones_like(const at::Tensor& self, const at::TensorOptions& options = {});
at::Tensor full(at::IntArrayRef sizes, const at::Scalar& value, const at::TensorOptions& options);
at::Tensor arange(int64_t end, const at::TensorOptions& options);
std::tuple<at::Tensor, at::Tensor> sort(const at::Tensor& self, bool stable, int64_t dim, bool descending);
// Gives an output its shape, with torch's warning if it had elements of another one. Returns whether it had.
bool resize_output(const at::Tensor& output, at::IntArrayRef sizes);

} // namespace musa_ops_ported::aten
