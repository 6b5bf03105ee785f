// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Linear layers with 8-bit integers: weights only (aten::_weight_int8pack_mm), or input, weight and result.
//
// Quantization is symmetric, as in muDNN: an integer q represents q * scale.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <cmath>
#include <optional>

#include "families.h"
#include "support/call.h"
#include "support/own_ops.h"
#include "support/predicates.h"

namespace musa_ops_mudnn {
namespace {

using at::Tensor;

dnn::Tensor describe_quantized(const Tensor& tensor, double scale, Access access = Access::Write) {
  dnn::Tensor result = describe(tensor, access);
  check(result.SetType(dnn::Tensor::Type::QINT8), "Tensor::SetType");
  check(result.SetQuantizationInfo(static_cast<float>(scale)), "Tensor::SetQuantizationInfo");
  return result;
}

// ---- 8-bit weights with one scale per row

Tensor weight_int8pack_mm(const Tensor& self, const Tensor& weight, const Tensor& scales) {
  const Tensor out = at::empty({self.size(0), weight.size(0)}, self.options());
  const Operand input = contiguous(self);
  const Operand rows = contiguous(weight);
  const Tensor row_scales = scales.to(at::kFloat).contiguous();
  dnn::BatchMatMul op;
  check(op.SetComputeMode(dnn::BatchMatMul::ComputeMode::TENSOR), "BatchMatMul::SetComputeMode");
  check(op.SetTranspose(false, true), "BatchMatMul::SetTranspose");
  dnn::MatMulLtParam param;
  check(param.SetScale(dnn::Tensor(), operand(row_scales), dnn::Tensor(), dnn::Tensor()), "MatMulLtParam::SetScale");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      op.RunLt(
          on.handle(), result, operand(input), describe_quantized(rows, 1, kRead), dnn::Tensor(), dnn::Tensor(), param,
          on.workspace()),
      "BatchMatMul::RunLt", {&out, &*input, &*rows, &row_scales});
  return out;
}

bool weight_int8pack_mm_served(const Tensor& self, const Tensor& weight, const Tensor& scales) {
  return serves<matrix_types | one(at::kChar)>(self, weight, scales) && contains(matrix_types, self.scalar_type()) &&
      weight.scalar_type() == at::kChar && scales.scalar_type() == self.scalar_type() && self.dim() == 2 &&
      weight.dim() == 2 && scales.dim() == 1 && self.size(1) == weight.size(1) && scales.size(0) == weight.size(0) &&
      // torch raises its own error for other layouts.
      self.is_contiguous() && weight.is_contiguous();
}

// ---- quantized_linear: 8-bit input, weight and result

bool is_step(double scale) { return std::isfinite(scale) && scale > 0; }

at::DimVector linear_sizes(const Tensor& input, const Tensor& weight) {
  at::DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  return sizes;
}

Tensor composed_quantized_linear(
    const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, double input_scale,
    double weight_scale, double output_scale) {
  TORCH_CHECK_TYPE(
      input.scalar_type() == at::kChar && weight.scalar_type() == at::kChar,
      "quantized_linear takes int8 input and weight, not ", input.scalar_type(), " and ", weight.scalar_type(),
      ".\nFix: (x / scale).round().clamp(-128, 127).to(torch.int8)");
  TORCH_CHECK(
      input.dim() >= 1 && weight.dim() == 2 && input.size(-1) == weight.size(1),
      "quantized_linear takes an input (..., in) and a weight (out, in), not ", input.sizes(), " and ", weight.sizes());
  TORCH_CHECK_VALUE(
      is_step(input_scale) && is_step(weight_scale) && is_step(output_scale),
      "quantized_linear: scales must be positive and finite, not ", input_scale, ", ", weight_scale, " and ",
      output_scale);
  const bool biased = given(bias);
  TORCH_CHECK(
      !biased || (bias->dim() == 1 && bias->size(0) == weight.size(0) && bias->scalar_type() == at::kFloat),
      "quantized_linear takes a float32 bias of ", weight.size(0), " elements");
  // The sums are exact. torch._int_mm is not available on every device, and returns wrong results on the CPU for
  // columns of one element.
  const Tensor sums = at::matmul(input.to(at::kDouble), weight.to(at::kDouble).t());
  Tensor value = sums.to(at::kFloat).mul_(input_scale * weight_scale);
  if (biased) {
    value += *bias;
  }
  return value.div_(output_scale).round_().clamp_(-128, 127).to(at::kChar);
}

Tensor quantized_linear(
    const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, double input_scale,
    double weight_scale, double output_scale) {
  const Tensor out = at::empty(linear_sizes(input, weight), input.options());
  const Tensor rows = input.reshape({-1, input.size(-1)}).contiguous();
  const Operand factor = contiguous(weight);
  const Operand row = contiguous_or_none(bias);
  const Tensor flat = out.view({-1, weight.size(0)});
  dnn::MatMul op;
  check(op.SetComputeMode(dnn::MatMul::ComputeMode::TENSOR), "MatMul::SetComputeMode");
  check(op.SetTranspose(false, true), "MatMul::SetTranspose");
  const OnDevice on(out);
  dnn::Tensor result = describe_quantized(flat, output_scale);
  check(
      op.RunWithBiasAdd(
          on.handle(), result, describe_quantized(rows, input_scale, kRead),
          describe_quantized(factor, weight_scale, kRead), dnn::Tensor(), operand(row), on.workspace()),
      "MatMul::RunWithBiasAdd", {&out, &rows, &*factor, &*row});
  return out;
}

bool quantized_linear_served(
    const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, double input_scale,
    double weight_scale, double output_scale) {
  return serves<one(at::kChar) | one(at::kFloat)>(input, weight, bias) && input.scalar_type() == at::kChar &&
      weight.scalar_type() == at::kChar && input.dim() >= 1 && weight.dim() == 2 && input.size(-1) == weight.size(1) &&
      is_step(input_scale) && is_step(weight_scale) && is_step(output_scale) &&
      (!given(bias) || (bias->scalar_type() == at::kFloat && bias->dim() == 1 && bias->size(0) == weight.size(0)));
}

} // namespace

void declare_quantized(OpPack& pack) {
  pack.impl("aten::_weight_int8pack_mm", TORCH_FN(weight_int8pack_mm), TORCH_FN(weight_int8pack_mm_served));
  define(
      pack, "quantized_linear",
      "(Tensor input, Tensor weight, Tensor? bias=None, *, float input_scale, float weight_scale, float output_scale) "
      "-> Tensor",
      TORCH_FN(quantized_linear), TORCH_FN(quantized_linear_served), TORCH_FN(composed_quantized_linear));
}

} // namespace musa_ops_mudnn
