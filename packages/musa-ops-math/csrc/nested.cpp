// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/_nested_from_padded_native.h>
#include <ATen/ops/_nested_view_from_buffer.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/tensor.h>
#include <c10/util/accumulate.h>
#include <musa_runtime/op_pack.h>
#include <declined.h>
#include <torch/library.h>

// Operators of nested tensors (strided) for which torch calls kernels of the CPU and CUDA directly.

namespace musa_ops_math {
namespace {

using at::Tensor;

constexpr c10::DispatchKey kNested = c10::DispatchKey::NestedTensorPrivateUse1;

// The rows of all components that are normalized, as a matrix.
Tensor rows_of(const Tensor& nested, int64_t size) { return nested.values().view({-1, size}); }

Tensor with_values(const Tensor& nested, const Tensor& rows) {
  return at::_nested_view_from_buffer(
      rows.reshape(-1), nested._nested_tensor_size(), nested._nested_tensor_strides(),
      nested._nested_tensor_storage_offsets());
}

// Whether all components have these trailing dimensions, in one piece of memory, and both parameters their shape.
bool has_rows(
    const Tensor& input, at::IntArrayRef shape, const std::optional<Tensor>& weight,
    const std::optional<Tensor>& bias) {
  if (!input.is_nested() || !input.is_contiguous() || !weight.has_value() || !bias.has_value() ||
      weight->sizes() != shape || bias->sizes() != shape || c10::multiply_integers(shape) == 0) {
    return false;
  }
  const Tensor sizes = input._nested_tensor_size(); // on the host, a row for each component
  const auto trailing = static_cast<int64_t>(shape.size());
  if (sizes.dim() != 2 || sizes.size(1) < trailing) {
    return false;
  }
  const Tensor expected = at::tensor(shape, sizes.options());
  return sizes.narrow(1, sizes.size(1) - trailing, trailing).eq(expected).all().item<bool>();
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(
    const Tensor& input, at::IntArrayRef shape, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
    double eps) {
  const int64_t size = c10::multiply_integers(shape);
  if (!has_rows(input, shape, weight, bias)) {
    return declined<
        std::tuple<Tensor, Tensor, Tensor>, const Tensor&, at::IntArrayRef, const std::optional<Tensor>&,
        const std::optional<Tensor>&, double>(kNested, "aten::native_layer_norm", "", input, shape, weight, bias, eps);
  }
  auto [rows, mean, rstd] =
      at::native_layer_norm(rows_of(input, size), {size}, weight->reshape(-1), bias->reshape(-1), eps);
  return {with_values(input, rows), std::move(mean), std::move(rstd)};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(
    const Tensor& grad, const Tensor& input, at::IntArrayRef shape, const Tensor& mean, const Tensor& rstd,
    const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, std::array<bool, 3> mask) {
  const int64_t size = c10::multiply_integers(shape);
  if (!has_rows(input, shape, weight, bias) || !has_rows(grad, shape, weight, bias)) {
    return declined<
        std::tuple<Tensor, Tensor, Tensor>, const Tensor&, const Tensor&, at::IntArrayRef, const Tensor&, const Tensor&,
        const std::optional<Tensor>&, const std::optional<Tensor>&, std::array<bool, 3>>(
        kNested, "aten::native_layer_norm_backward", "", grad, input, shape, mean, rstd, weight, bias, mask);
  }
  const Tensor flat_weight = weight->reshape(-1), flat_bias = bias->reshape(-1);
  auto [of_input, of_weight, of_bias] = at::native_layer_norm_backward(
      rows_of(grad, size), rows_of(input, size), {size}, mean.view({-1, 1}), rstd.view({-1, 1}), flat_weight, flat_bias,
      mask);
  const auto as_parameter = [&](const Tensor& flat) { return flat.defined() ? flat.view(shape) : flat; };
  return {of_input.defined() ? with_values(input, of_input) : of_input, as_parameter(of_weight), as_parameter(of_bias)};
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, library) {
  library.impl("native_layer_norm", TORCH_FN(layer_norm));
  library.impl("native_layer_norm_backward", TORCH_FN(layer_norm_backward));
}

MUSA_OP_PACK(math, pack) { pack.impl("aten::_nested_from_padded", TORCH_FN(at::native::nested_from_padded_generic)); }

} // namespace
} // namespace musa_ops_math
