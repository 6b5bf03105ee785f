// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Binary arithmetic; each operand is a tensor or a number.
#include <ATen/ScalarOps.h>
#include <ATen/ops/add_meta.h>
#include <ATen/ops/div_meta.h>
#include <ATen/ops/fmax_meta.h>
#include <ATen/ops/fmin_meta.h>
#include <ATen/ops/fmod_meta.h>
#include <ATen/ops/maximum_meta.h>
#include <ATen/ops/minimum_meta.h>
#include <ATen/ops/mul_meta.h>
#include <ATen/ops/pow_meta.h>
#include <ATen/ops/remainder_meta.h>
#include <ATen/ops/result_type.h>
#include <ATen/ops/sub_meta.h>

#include "families.h"
#include "support/elementwise.h"
#include "support/numbers.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

bool is_integral(at::ScalarType dtype) { return at::isIntegralType(dtype, /*includeBool=*/true); }

// One call each for two tensors, a tensor and a number, and a number and a tensor.
template <BinaryMode tensors, UnaryMode by_number, UnaryMode of_number>
void compute(at::ScalarType dtype, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (is_cpu_number(other)) {
      run_unary(by_number, result, in_dtype(self, dtype), wrapped(number_in(other), dtype));
    } else if (is_cpu_number(self)) {
      run_unary(of_number, result, in_dtype(other, dtype), wrapped(number_in(self), dtype));
    } else {
      run_binary(tensors, result, in_dtype(self, dtype), in_dtype(other, dtype));
    }
  });
}

// For operations without a mode for a number on the left.
template <BinaryMode tensors, UnaryMode by_number>
void compute(at::ScalarType dtype, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (is_cpu_number(other)) {
      run_unary(by_number, result, in_dtype(self, dtype), wrapped(number_in(other), dtype));
    } else {
      run_binary(tensors, result, on_device(self, result, dtype), in_dtype(other, dtype));
    }
  });
}

// add and sub

at::Scalar product(const at::Scalar& alpha, const at::Scalar& number, at::ScalarType dtype) {
  if (!at::isIntegralType(dtype, /*includeBool=*/false)) {
    return at::Scalar(alpha.toDouble() * number.toDouble());
  }
  const auto wide = static_cast<uint64_t>(alpha.toLong()) * static_cast<uint64_t>(number.toLong()); // wraps on overflow
  return wrapped(at::Scalar(static_cast<int64_t>(wide)), dtype);
}

template <BinaryMode tensors, UnaryMode by_number>
void compute_scaled(
    at::ScalarType dtype, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha,
    const at::Tensor& out) {
  const at::Scalar factor = fitting(alpha, dtype);
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (is_cpu_number(other)) {
      run_unary(by_number, result, in_dtype(self, dtype), product(factor, number_in(other), dtype));
    } else {
      run_binary(tensors, result, on_device(self, result, dtype), in_dtype(other, dtype), factor);
    }
  });
}

void add(
    Common common, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, const at::Tensor& out) {
  if (alpha.equal(1)) [[likely]] {
    compute<BinaryMode::ADD, UnaryMode::ADD, UnaryMode::ADD>(common.dtype, self, other, out);
  } else {
    compute_scaled<BinaryMode::ADD_ALPHA, UnaryMode::ADD>(common.dtype, self, other, alpha, out);
  }
}

void sub(
    Common common, const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha, const at::Tensor& out) {
  if (alpha.equal(1)) [[likely]] {
    compute<BinaryMode::SUB, UnaryMode::SUB, UnaryMode::SUB_BY_ALPHA>(common.dtype, self, other, out);
  } else {
    compute_scaled<BinaryMode::SUB_ALPHA, UnaryMode::SUB>(common.dtype, self, other, alpha, out);
  }
}

bool scaled_served(const at::Tensor& self, const at::Tensor& other, const at::Scalar& /*alpha*/) {
  return serves_arithmetic(self, other);
}

template <class Meta, auto kernel>
using FormsOf = typename MetaMethod<decltype(&Meta::meta)>::template One<Meta, kernel>;

at::Tensor rsub(const at::Tensor& self, const at::Tensor& other, const at::Scalar& alpha) {
  return FormsOf<at::meta::structured_sub_Tensor, sub>::functional(other, self, alpha);
}

// mul and div

void mul(Common common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compute<BinaryMode::MUL, UnaryMode::MUL, UnaryMode::MUL>(common.dtype, self, other, out);
}

void true_divide(Common common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compute<BinaryMode::TRUEDIV, UnaryMode::TRUEDIV, UnaryMode::TRUEDIV_BY_ALPHA>(common.dtype, self, other, out);
}

void divide(
    Common common, const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> rounding_mode,
    const at::Tensor& out) {
  if (!rounding_mode.has_value()) {
    true_divide(common, self, other, out);
  } else if (*rounding_mode == "floor") {
    compute<BinaryMode::FLOORDIV, UnaryMode::FLOORDIV, UnaryMode::FLOORDIV_BY_ALPHA>(common.dtype, self, other, out);
  } else {
    compute<BinaryMode::TRUNCATEDIV, UnaryMode::TRUNCATEDIV, UnaryMode::TRUNCATEDIV_BY_ALPHA>(
        common.dtype, self, other, out);
  }
}

// For an integer divided by the number 0, torch raises the error.
bool quotient_served(const at::Tensor& self, const at::Tensor& other) {
  return serves_arithmetic(self, other) &&
      !(other.is_cpu() && is_integral(self.scalar_type()) && is_integral(other.scalar_type()) &&
        number_in(other).toLong() == 0);
}

bool divide_served(const at::Tensor& self, const at::Tensor& other, std::optional<std::string_view> rounding_mode) {
  return rounding_mode.has_value() ? quotient_served(self, other) : serves_with_numbers<all_types>(self, other);
}

using DivideForms = FormsOf<at::meta::structured_div_Tensor_mode, divide>;

at::Tensor floor_divide(const at::Tensor& self, const at::Tensor& other) {
  return DivideForms::functional(self, other, "floor");
}

at::Tensor& floor_divide_out(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return DivideForms::out(self, other, "floor", out);
}

at::Tensor& floor_divide_in_place(at::Tensor& self, const at::Tensor& other) {
  return DivideForms::InPlace::in_place(self, other, "floor");
}

bool floor_divide_out_served(const at::Tensor& self, const at::Tensor& other, at::Tensor& out) {
  return quotient_served(self, other) && writable(out);
}

bool floor_divide_in_place_served(at::Tensor& self, const at::Tensor& other) { return quotient_served(self, other); }

void fmod(Common common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compute<BinaryMode::TRUNCATEMOD, UnaryMode::TRUNCATEMOD>(common.dtype, self, other, out);
}

void remainder(Common common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  compute<BinaryMode::FLOORMOD, UnaryMode::FLOORMOD>(common.dtype, self, other, out);
}

at::Tensor remainder_of_number(const at::Scalar& self, const at::Tensor& other) {
  return FormsOf<at::meta::structured_remainder_Tensor, remainder>::functional(
      at::native::wrapped_scalar_tensor(self), other);
}

bool remainder_of_number_served(const at::Scalar& self, const at::Tensor& other) {
  return serves<all_types>(other) && !self.isComplex() && !(self.isBoolean() && other.scalar_type() == at::kBool);
}

// pow. Integer powers are not documented to be exact, so only squares are supported for integers, as products.

void pow_tensors(Common common, const at::Tensor& self, const at::Tensor& exponent, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (is_cpu_number(exponent)) {
      run_unary(UnaryMode::POW, result, in_dtype(self, dtype), rounded(number_in(exponent), dtype));
    } else {
      run_binary(BinaryMode::POW, result, on_device(self, result, dtype), in_dtype(exponent, dtype));
    }
  });
}

bool pow_tensors_served(const at::Tensor& self, const at::Tensor& exponent) {
  return serves_with_numbers<all_types>(self, exponent) &&
      (at::isFloatingType(self.scalar_type()) || at::isFloatingType(exponent.scalar_type()));
}

void pow_number(Common common, const at::Tensor& self, const at::Scalar& exponent, const at::Tensor& out) {
  write_as(common.dtype, out, [&](const at::Tensor& result) {
    const Operand base = in_dtype(self, common.dtype);
    if (exponent.equal(2)) {
      run_binary(BinaryMode::MUL, result, base, base);
    } else if (exponent.equal(1)) { // the gradient of a square
      run_unary(UnaryMode::IDENTITY, result, base);
    } else {
      run_unary(UnaryMode::POW, result, base, fitting(exponent, common.dtype));
    }
  });
}

bool pow_number_served(const at::Tensor& self, const at::Scalar& exponent) {
  return serves<all_types>(self) && !exponent.isComplex() &&
      (at::isFloatingType(self.scalar_type()) || exponent.isFloatingPoint() ||
       (self.scalar_type() != at::kBool && exponent.equal(2)));
}

void pow_of_number(const at::Scalar& self, const at::Tensor& exponent, const at::Tensor& out) {
  const at::ScalarType dtype = at::result_type(self, exponent);
  TORCH_CHECK(
      at::canCast(dtype, out.scalar_type()), "result type ", dtype, " can't be cast to the desired output type ",
      out.scalar_type());
  write_as(dtype, out, [&](const at::Tensor& result) {
    const at::Tensor base = number_on_device(rounded(self, dtype), result, dtype);
    run_binary(BinaryMode::POW, result, base, in_dtype(exponent, dtype));
  });
}

bool pow_of_number_served(const at::Scalar& self, const at::Tensor& exponent) {
  return serves<all_types>(exponent) && !self.isComplex() &&
      (self.isFloatingPoint() || at::isFloatingType(exponent.scalar_type()));
}

// maximum, minimum, fmax, fmin. It is not documented how MAX and MIN treat NaN, and torch has an operator for either
// choice, so floating tensors use a comparison and a selection.
template <bool larger, bool ignores_nan>
void select_extreme(Common common, const at::Tensor& self, const at::Tensor& other, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  if (!at::isFloatingType(dtype)) {
    constexpr auto tensors = larger ? BinaryMode::MAX : BinaryMode::MIN;
    constexpr auto number = larger ? UnaryMode::MAX : UnaryMode::MIN;
    compute<tensors, number, number>(dtype, self, other, out);
    return;
  }
  write_as(dtype, out, [&](const at::Tensor& result) {
    const Operand left = on_device(self, result, dtype);
    const Operand right = on_device(other, result, dtype);
    const at::Tensor& asked = ignores_nan ? right : left;
    const at::Tensor take_left = empty_as(result, at::kBool);
    const at::Tensor is_nan = empty_as(asked, at::kBool);
    run_binary(larger ? BinaryMode::GT : BinaryMode::LT, take_left, left, right);
    run_unary(UnaryMode::IS_NAN, is_nan, asked);
    run_binary(BinaryMode::LOGICAL_OR, take_left, take_left, is_nan);
    run_ternary(TernaryMode::SELECT, result, take_left, left, right);
  });
}

} // namespace

void declare_arithmetic(OpPack& pack) {
  using namespace at::meta;
  structured<structured_add_Tensor, add, scaled_served>(
      pack, {"aten::add.Tensor", "aten::add.out", "aten::add_.Tensor"});
  structured<structured_sub_Tensor, sub, scaled_served>(
      pack, {"aten::sub.Tensor", "aten::sub.out", "aten::sub_.Tensor"});
  pack.impl("aten::rsub.Tensor", TORCH_FN(rsub), TORCH_FN(scaled_served));
  structured<structured_mul_Tensor, mul, serves_arithmetic>(
      pack, {"aten::mul.Tensor", "aten::mul.out", "aten::mul_.Tensor"});
  structured<structured_div_Tensor, true_divide, takes_numbers<all_types>>(
      pack, {"aten::div.Tensor", "aten::div.out", "aten::div_.Tensor"});
  structured<structured_div_Tensor_mode, divide, divide_served>(
      pack, {"aten::div.Tensor_mode", "aten::div.out_mode", "aten::div_.Tensor_mode"});
  pack.impl("aten::floor_divide", TORCH_FN(floor_divide), TORCH_FN(quotient_served));
  pack.impl("aten::floor_divide.out", TORCH_FN(floor_divide_out), TORCH_FN(floor_divide_out_served));
  pack.impl("aten::floor_divide_.Tensor", TORCH_FN(floor_divide_in_place), TORCH_FN(floor_divide_in_place_served));
  structured<structured_fmod_Tensor, fmod, quotient_served>(
      pack, {"aten::fmod.Tensor", "aten::fmod.Tensor_out", "aten::fmod_.Tensor"});
  structured<structured_remainder_Tensor, remainder, quotient_served>(
      pack, {"aten::remainder.Tensor", "aten::remainder.Tensor_out", "aten::remainder_.Tensor"});
  pack.impl("aten::remainder.Scalar_Tensor", TORCH_FN(remainder_of_number), TORCH_FN(remainder_of_number_served));

  structured<structured_pow_Tensor_Tensor, pow_tensors, pow_tensors_served>(
      pack, {"aten::pow.Tensor_Tensor", "aten::pow.Tensor_Tensor_out", "aten::pow_.Tensor"});
  structured<structured_pow_Tensor_Scalar, pow_number, pow_number_served>(
      pack, {"aten::pow.Tensor_Scalar", "aten::pow.Tensor_Scalar_out", "aten::pow_.Scalar"});
  using PowOfNumber = FormsOf<structured_pow_Scalar, pow_of_number>;
  pack.impl("aten::pow.Scalar", TORCH_FN(PowOfNumber::functional), TORCH_FN(pow_of_number_served));
  pack.impl(
      "aten::pow.Scalar_out", TORCH_FN(PowOfNumber::out), TORCH_FN(PowOfNumber::out_served<pow_of_number_served>));

  structured<structured_maximum, select_extreme<true, false>, serves_arithmetic>(
      pack, {"aten::maximum", "aten::maximum.out"});
  structured<structured_minimum, select_extreme<false, false>, serves_arithmetic>(
      pack, {"aten::minimum", "aten::minimum.out"});
  structured<structured_fmax, select_extreme<true, true>, serves_arithmetic>(pack, {"aten::fmax", "aten::fmax.out"});
  structured<structured_fmin, select_extreme<false, true>, serves_arithmetic>(pack, {"aten::fmin", "aten::fmin.out"});
}

} // namespace musa_ops_mudnn
