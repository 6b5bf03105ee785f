// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Elementwise operators with three operands.
#include <ATen/ops/addcdiv_meta.h>
#include <ATen/ops/addcmul_meta.h>
#include <ATen/ops/lerp_meta.h>
#include <ATen/ops/result_type.h>

#include <cmath>

#include "families.h"
#include "support/elementwise.h"
#include "support/numbers.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

// where

void select_into(
    at::TensorIteratorConfig config, at::ScalarType dtype, const at::Tensor& condition, const at::Tensor& self,
    const at::Tensor& other, at::Tensor& out) {
  const Operand x = on_device(self, condition, dtype);
  const Operand y = on_device(other, condition, dtype);
  // Broadcasts the operands and resizes the output, with torch's errors.
  const at::TensorIterator iter =
      config.add_owned_const_input(condition).add_owned_const_input(x).add_owned_const_input(y).build();
  out = iter.output();
  run_ternary(TernaryMode::SELECT, out, condition, x, y);
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const at::ScalarType dtype = at::result_type(self, other);
  at::Tensor out;
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).add_owned_output(out).declare_static_dtype_and_device(dtype, condition.device());
  select_into(std::move(config), dtype, condition, self, other, out);
  return out;
}

at::Tensor& where_out(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  at::TensorIteratorConfig config;
  config.check_all_same_dtype(false).add_owned_output(out);
  select_into(std::move(config), out.scalar_type(), condition, self, other, out);
  return out;
}

bool where_served(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  return condition.scalar_type() == at::kBool && condition.is_privateuseone() &&
      serves_with_numbers<all_types>(condition, self, other);
}

bool where_out_served(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return where_served(condition, self, other) && writable(out) && out.scalar_type() == at::result_type(self, other);
}

// addcmul and addcdiv

template <TernaryMode plain, TernaryMode scaled>
void add_combined(
    Common common, const at::Tensor& self, const at::Tensor& tensor1, const at::Tensor& tensor2,
    const at::Scalar& value, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  const at::Scalar factor = fitting(value, dtype);
  write_as(dtype, out, [&](const at::Tensor& result) {
    const Operand a = on_device(self, result, dtype);
    const Operand b = on_device(tensor1, result, dtype);
    const Operand c = on_device(tensor2, result, dtype);
    if (factor.equal(1)) {
      run_ternary(plain, result, a, b, c);
    } else {
      run_ternary(scaled, result, a, b, c, factor);
    }
  });
}

// BOOL only, and integers with a floating factor, are left to torch, which may raise an error.
bool addcmul_served(
    const at::Tensor& self, const at::Tensor& tensor1, const at::Tensor& tensor2, const at::Scalar& value) {
  if (!serves_with_numbers<all_types>(self, tensor1, tensor2) || value.isComplex()) {
    return false;
  }
  const Dtypes types = one(self.scalar_type()) | one(tensor1.scalar_type()) | one(tensor2.scalar_type());
  return types != bool_type && ((types & float_types) != 0 || value.isIntegral(/*includeBool=*/true));
}

// torch's iterator for addcdiv does not accept CPU numbers.
bool addcdiv_served(
    const at::Tensor& self, const at::Tensor& tensor1, const at::Tensor& tensor2, const at::Scalar& value) {
  return !is_cpu_number(self) && !is_cpu_number(tensor1) && !is_cpu_number(tensor2) &&
      addcmul_served(self, tensor1, tensor2, value);
}

// lerp. Starts from the nearer end, as torch does, so that the weights 0 and 1 return the ends exactly. HALF and
// BFLOAT16 are computed in FLOAT, because the difference of the ends may be much larger than the result.
void lerp(
    Common /*common*/, const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight, const at::Tensor& out) {
  const at::ScalarType dtype = contains(reduced_types, self.scalar_type()) ? at::kFloat : self.scalar_type();
  const double w = fitting(weight, dtype).toDouble();
  write_as(dtype, out, [&](const at::Tensor& result) {
    const Operand from = in_dtype(self, dtype);
    const Operand to = in_dtype(end, dtype);
    const at::Tensor difference = empty_as(result, dtype);
    run_binary(BinaryMode::SUB, difference, to, from);
    if (std::abs(w) < 0.5) {
      run_binary(BinaryMode::ADD_ALPHA, result, from, difference, w);
    } else {
      run_binary(BinaryMode::SUB_ALPHA, result, to, difference, 1 - w);
    }
  });
}

bool lerp_served(const at::Tensor& self, const at::Tensor& end, const at::Scalar& weight) {
  return serves<float_types>(self, end) && self.scalar_type() == end.scalar_type() && !weight.isComplex();
}

} // namespace

void declare_ternary(OpPack& pack) {
  pack.impl("aten::where.self", TORCH_FN(where), TORCH_FN(where_served));
  pack.impl("aten::where.self_out", TORCH_FN(where_out), TORCH_FN(where_out_served));
  structured<
      at::meta::structured_addcmul, add_combined<TernaryMode::ADDCMUL, TernaryMode::ADDCMUL_ALPHA>, addcmul_served>(
      pack, {"aten::addcmul", "aten::addcmul.out", "aten::addcmul_"});
  structured<
      at::meta::structured_addcdiv, add_combined<TernaryMode::ADDCDIV, TernaryMode::ADDCDIV_ALPHA>, addcdiv_served>(
      pack, {"aten::addcdiv", "aten::addcdiv.out", "aten::addcdiv_"});
  structured<at::meta::structured_lerp_Scalar, lerp, lerp_served>(
      pack, {"aten::lerp.Scalar", "aten::lerp.Scalar_out", "aten::lerp_.Scalar"});
}

} // namespace musa_ops_mudnn
