// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Elementwise functions of one tensor.
#include <ATen/ops/acos_meta.h>
#include <ATen/ops/atan_meta.h>
#include <ATen/ops/ceil_meta.h>
#include <ATen/ops/cos_meta.h>
#include <ATen/ops/erf_meta.h>
#include <ATen/ops/exp_meta.h>
#include <ATen/ops/floor_meta.h>
#include <ATen/ops/frac_meta.h>
#include <ATen/ops/isneginf_meta.h>
#include <ATen/ops/isposinf_meta.h>
#include <ATen/ops/log10_meta.h>
#include <ATen/ops/log1p_meta.h>
#include <ATen/ops/log2_meta.h>
#include <ATen/ops/log_meta.h>
#include <ATen/ops/neg_meta.h>
#include <ATen/ops/reciprocal_meta.h>
#include <ATen/ops/round_meta.h>
#include <ATen/ops/rsqrt_meta.h>
#include <ATen/ops/sgn_meta.h>
#include <ATen/ops/sigmoid_meta.h>
#include <ATen/ops/sign_meta.h>
#include <ATen/ops/signbit_meta.h>
#include <ATen/ops/sin_meta.h>
#include <ATen/ops/sqrt_meta.h>
#include <ATen/ops/tan_meta.h>
#include <ATen/ops/tanh_meta.h>
#include <ATen/ops/trunc_meta.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "families.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

bool is_integer(const at::Tensor& tensor) { return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false); }

// Integers and bool are computed in the default dtype, as TensorIterator does.
template <UnaryMode mode>
void function(Common common, const at::Tensor& self, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, out, [&](const at::Tensor& result) { run_unary(mode, result, in_dtype(self, dtype)); });
}

void copy_unless_same(const at::Tensor& out, const at::Tensor& self) {
  if (!out.is_same(self)) {
    convert(out, self);
  }
}

// Integers are returned unchanged.
template <UnaryMode mode>
void rounding(const at::Tensor& self, const at::Tensor& out) {
  if (is_integer(self)) {
    copy_unless_same(out, self);
  } else {
    run_unary(mode, out, self);
  }
}

void trunc(const at::Tensor& self, const at::Tensor& out) {
  if (is_integer(self)) {
    copy_unless_same(out, self);
  } else {
    run_unary(UnaryMode::TRUNCATEDIV, out, self, 1.0);
  }
}

void frac(const at::Tensor& self, const at::Tensor& out) { run_unary(UnaryMode::TRUNCATEMOD, out, self, 1.0); }

void round_decimals(const at::Tensor& self, int64_t decimals, const at::Tensor& out) {
  if (decimals == 0) {
    run_unary(UnaryMode::ROUND, out, self);
    return;
  }
  const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  run_unary(decimals > 0 ? UnaryMode::MUL : UnaryMode::TRUEDIV, out, self, power);
  run_unary(UnaryMode::ROUND, out, out);
  run_unary(decimals > 0 ? UnaryMode::TRUEDIV : UnaryMode::MUL, out, out, power);
}

// Intermediate results are rounded to the tensor's dtype, and powers of ten overflow in float16.
bool round_decimals_served(const at::Tensor& self, int64_t decimals) {
  return serves<float_types>(self) && (decimals == 0 || !contains(reduced_types, self.scalar_type()));
}

// Unsigned integers cannot be multiplied by -1; for the other dtypes the product has the correct sign of zero.
void neg(const at::Tensor& self, const at::Tensor& out) {
  if (is_integer(self)) {
    run_unary(UnaryMode::SUB_BY_ALPHA, out, self, 0);
  } else {
    run_unary(UnaryMode::MUL, out, self, -1.0);
  }
}

void sign(const at::Tensor& self, const at::Tensor& out) {
  if (self.scalar_type() == at::kBool) {
    copy_unless_same(out, self);
  } else {
    run_unary(UnaryMode::SIGN, out, self);
  }
}

// Integers are never infinite.
template <bool positive>
void is_signed_infinity(const at::Tensor& self, const at::Tensor& out) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (at::isFloatingType(self.scalar_type())) {
    run_unary(UnaryMode::EQ, out, self, positive ? infinity : -infinity);
  } else {
    run_fill(out, false);
  }
}

// Served for integers only: a comparison ignores the sign of -0.0.
void signbit(const at::Tensor& self, const at::Tensor& out) { run_unary(UnaryMode::LT, out, self, 0); }

// isnan and isinf, by IS_NAN and IS_INF.
template <UnaryMode mode>
at::Tensor question(const at::Tensor& self) {
  at::Tensor out = empty_as(self, at::kBool);
  if (at::isFloatingType(self.scalar_type())) {
    run_unary(mode, out, self);
  } else {
    run_fill(out, false);
  }
  return out;
}

at::Tensor abs(const at::Tensor& self) {
  at::Tensor out = empty_as(self, self.scalar_type());
  run_unary(UnaryMode::ABS, out, self);
  return out;
}

at::Tensor& abs_out(const at::Tensor& self, at::Tensor& out) {
  at::TensorIterator::unary_op(out, self); // resizes out and checks it
  run_unary(UnaryMode::ABS, out, self);
  return out;
}

at::Tensor& abs_(at::Tensor& self) { return musa_ops_mudnn::abs_out(self, self); }

void logical_not_into(const at::Tensor& out, const at::Tensor& self) {
  write_as(at::kBool, out, [&](const at::Tensor& result) { run_unary(UnaryMode::EQ, result, self, 0); });
}

at::Tensor logical_not(const at::Tensor& self) {
  at::Tensor out = empty_as(self, at::kBool);
  logical_not_into(out, self);
  return out;
}

at::Tensor& logical_not_out(const at::Tensor& self, at::Tensor& out) {
  at::TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_const_input(self).build();
  logical_not_into(out, self);
  return out;
}

at::Tensor& logical_not_(at::Tensor& self) { return musa_ops_mudnn::logical_not_out(self, self); }

template <typename Meta, auto kernel, Dtypes types>
void declare(OpPack& pack, Names names) {
  structured<Meta, kernel, takes<types>>(pack, names);
}

template <typename Meta, UnaryMode mode>
void declare_function(OpPack& pack, Names names) {
  declare<Meta, function<mode>, all_types>(pack, names);
}

} // namespace

void declare_pointwise(OpPack& pack) {
  namespace meta = at::meta;
  using Mode = UnaryMode;
  declare_function<meta::structured_acos, Mode::ACOS>(pack, {"aten::acos", "aten::acos.out", "aten::acos_"});
  declare_function<meta::structured_atan, Mode::ATAN>(pack, {"aten::atan", "aten::atan.out", "aten::atan_"});
  declare_function<meta::structured_cos, Mode::COS>(pack, {"aten::cos", "aten::cos.out", "aten::cos_"});
  declare_function<meta::structured_erf, Mode::ERF>(pack, {"aten::erf", "aten::erf.out", "aten::erf_"});
  declare_function<meta::structured_exp, Mode::EXP>(pack, {"aten::exp", "aten::exp.out", "aten::exp_"});
  declare_function<meta::structured_log, Mode::LOG>(pack, {"aten::log", "aten::log.out", "aten::log_"});
  declare_function<meta::structured_log10, Mode::LOG10>(pack, {"aten::log10", "aten::log10.out", "aten::log10_"});
  declare_function<meta::structured_log1p, Mode::LOG1P>(pack, {"aten::log1p", "aten::log1p.out", "aten::log1p_"});
  declare_function<meta::structured_log2, Mode::LOG2>(pack, {"aten::log2", "aten::log2.out", "aten::log2_"});
  declare_function<meta::structured_reciprocal, Mode::RECIPROCAL>(
      pack, {"aten::reciprocal", "aten::reciprocal.out", "aten::reciprocal_"});
  declare_function<meta::structured_rsqrt, Mode::RSQRT>(pack, {"aten::rsqrt", "aten::rsqrt.out", "aten::rsqrt_"});
  declare_function<meta::structured_sigmoid, Mode::SIGMOID>(
      pack, {"aten::sigmoid", "aten::sigmoid.out", "aten::sigmoid_"});
  declare_function<meta::structured_sin, Mode::SIN>(pack, {"aten::sin", "aten::sin.out", "aten::sin_"});
  declare_function<meta::structured_sqrt, Mode::SQRT>(pack, {"aten::sqrt", "aten::sqrt.out", "aten::sqrt_"});
  declare_function<meta::structured_tan, Mode::TAN>(pack, {"aten::tan", "aten::tan.out", "aten::tan_"});
  declare_function<meta::structured_tanh, Mode::TANH>(pack, {"aten::tanh", "aten::tanh.out", "aten::tanh_"});

  declare<meta::structured_ceil, rounding<Mode::CEIL>, number_types>(
      pack, {"aten::ceil", "aten::ceil.out", "aten::ceil_"});
  declare<meta::structured_floor, rounding<Mode::FLOOR>, number_types>(
      pack, {"aten::floor", "aten::floor.out", "aten::floor_"});
  declare<meta::structured_round, rounding<Mode::ROUND>, number_types>(
      pack, {"aten::round", "aten::round.out", "aten::round_"});
  declare<meta::structured_trunc, trunc, number_types>(pack, {"aten::trunc", "aten::trunc.out", "aten::trunc_"});
  declare<meta::structured_frac, frac, float_types>(pack, {"aten::frac", "aten::frac.out", "aten::frac_"});
  structured<meta::structured_round_decimals, round_decimals, round_decimals_served>(
      pack, {"aten::round.decimals", "aten::round.decimals_out", "aten::round_.decimals"});
  declare<meta::structured_neg, neg, number_types>(pack, {"aten::neg", "aten::neg.out", "aten::neg_"});
  declare<meta::structured_sign, sign, all_types>(pack, {"aten::sign", "aten::sign.out", "aten::sign_"});
  declare<meta::structured_sgn, sign, all_types>(pack, {"aten::sgn", "aten::sgn.out", "aten::sgn_"});

  declare<meta::structured_isposinf, is_signed_infinity<true>, all_types>(
      pack, {"aten::isposinf", "aten::isposinf.out"});
  declare<meta::structured_isneginf, is_signed_infinity<false>, all_types>(
      pack, {"aten::isneginf", "aten::isneginf.out"});
  declare<meta::structured_signbit, signbit, integer_types>(pack, {"aten::signbit", "aten::signbit.out"});
  pack.impl("aten::isnan", TORCH_FN(question<Mode::IS_NAN>), TORCH_FN(self_served<all_types>));
  pack.impl("aten::isinf", TORCH_FN(question<Mode::IS_INF>), TORCH_FN(self_served<all_types>));

  pack.impl("aten::abs", TORCH_FN(abs), TORCH_FN(self_served<number_types>));
  pack.impl("aten::abs.out", TORCH_FN(abs_out), TORCH_FN(out_served<number_types>));
  pack.impl("aten::abs_", TORCH_FN(abs_), TORCH_FN(in_place_served<number_types>));
  pack.impl("aten::logical_not", TORCH_FN(logical_not), TORCH_FN(self_served<all_types>));
  pack.impl("aten::logical_not.out", TORCH_FN(logical_not_out), TORCH_FN(out_served<all_types>));
  pack.impl("aten::logical_not_", TORCH_FN(logical_not_), TORCH_FN(in_place_served<all_types>));
}

} // namespace musa_ops_mudnn
