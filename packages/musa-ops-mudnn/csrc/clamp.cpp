// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// clamp, hardtanh and threshold.
#include <ATen/Dispatch_v2.h>
#include <ATen/ops/clamp_max_meta.h>
#include <ATen/ops/clamp_meta.h>
#include <ATen/ops/clamp_min_meta.h>
#include <ATen/ops/threshold_meta.h>

#include <cmath>
#include <limits>

#include "families.h"
#include "support/elementwise.h"
#include "support/numbers.h"
#include "support/structured.h"

namespace musa_ops_mudnn {

namespace {

using Bound = std::optional<at::Scalar>;

bool is_nan(const Bound& bound) {
  return bound.has_value() && bound->isFloatingPoint() && std::isnan(bound->toDouble());
}

// Returns the limit of the dtype, for a bound that is not set.
at::Scalar extreme(at::ScalarType dtype, bool upper) {
  return AT_DISPATCH_V2(
      dtype, "extreme", AT_WRAP([&] {
        using Limits = std::numeric_limits<scalar_t>;
        if constexpr (Limits::has_infinity) {
          const double infinity = std::numeric_limits<double>::infinity();
          return at::Scalar(upper ? infinity : -infinity);
        } else {
          return at::Scalar(upper ? Limits::max() : Limits::lowest());
        }
      }),
      AT_EXPAND(AT_ALL_TYPES), at::kHalf, at::kBFloat16);
}

// `out` and `in` have the same dtype. Both bounds are passed to CLIP, because an unset one would be 0.
void clip(const at::Tensor& out, const at::Tensor& in, const Bound& low, const Bound& high) {
  const at::ScalarType dtype = in.scalar_type();
  if (at::isFloatingType(dtype) && (is_nan(low) || is_nan(high))) {
    run_fill(out, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  run_unary(
      UnaryMode::CLIP, out, in, low.has_value() ? number_as(*low, dtype) : extreme(dtype, /*upper=*/false),
      high.has_value() ? number_as(*high, dtype) : extreme(dtype, /*upper=*/true));
}

Bound bound_of(at::OptionalScalarRef value) { return value.has_value() ? Bound(value.get()) : std::nullopt; }

// torch's meta functions have converted the input to the result's dtype.
void clamp(
    at::TensorIteratorBase& iter, const at::Tensor& /*self*/, at::OptionalScalarRef min, at::OptionalScalarRef max,
    const at::Tensor& out) {
  clip(out, iter.input(0), bound_of(min), bound_of(max));
}

void clamp_min(at::TensorIteratorBase& iter, const at::Tensor& /*self*/, const at::Scalar& min, const at::Tensor& out) {
  clip(out, iter.input(0), min, std::nullopt);
}

void clamp_max(at::TensorIteratorBase& iter, const at::Tensor& /*self*/, const at::Scalar& max, const at::Tensor& out) {
  clip(out, iter.input(0), std::nullopt, max);
}

bool is_real(const Bound& bound) { return !bound.has_value() || !bound->isComplex(); }

bool clamp_served(const at::Tensor& self, const Bound& min, const Bound& max) {
  return serves<number_types>(self) && is_real(min) && is_real(max);
}

bool clamp_one_served(const at::Tensor& self, const at::Scalar& bound) {
  return serves<number_types>(self) && !bound.isComplex();
}

void clamp_tensors(
    Common common, const at::Tensor& self, at::OptionalTensorRef min, at::OptionalTensorRef max,
    const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, out, [&](const at::Tensor& result) {
    const Operand in = in_dtype(self, dtype);
    if (min.has_value() && max.has_value()) {
      run_ternary(TernaryMode::CLAMP, result, in, in_dtype(*min, dtype), in_dtype(*max, dtype));
    } else if (min.has_value()) {
      run_binary(BinaryMode::MAX, result, in, in_dtype(*min, dtype));
    } else {
      run_binary(BinaryMode::MIN, result, in, in_dtype(*max, dtype));
    }
  });
}

bool clamp_tensors_served(
    const at::Tensor& self, const std::optional<at::Tensor>& min, const std::optional<at::Tensor>& max) {
  return serves<all_types>(self, min, max) && self.scalar_type() != at::kBool;
}

template <bool lower>
void clamp_tensor(Common common, const at::Tensor& self, const at::Tensor& bound, const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  write_as(dtype, out, [&](const at::Tensor& result) {
    run_binary(lower ? BinaryMode::MAX : BinaryMode::MIN, result, in_dtype(self, dtype), in_dtype(bound, dtype));
  });
}

bool clamp_tensor_served(const at::Tensor& self, const at::Tensor& bound) {
  return serves<all_types>(self, bound) && self.scalar_type() != at::kBool;
}

at::Tensor hardtanh(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  at::Tensor out = empty_as(self, self.scalar_type());
  clip(out, self, min, max);
  return out;
}

at::Tensor& hardtanh_out(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max, at::Tensor& out) {
  at::TensorIterator::unary_op(out, self); // resizes out and checks it
  clip(out, self, min, max);
  return out;
}

at::Tensor& hardtanh_(at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  return hardtanh_out(self, min, max, self);
}

// torch raises an error for negative bounds with unsigned tensors.
bool hardtanh_served(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  return clamp_served(self, min, max) &&
      (self.scalar_type() != at::kByte || (min.toDouble() >= 0 && max.toDouble() >= 0));
}

bool hardtanh_out_served(const at::Tensor& self, const at::Scalar& min, const at::Scalar& max, at::Tensor& out) {
  return hardtanh_served(self, min, max) && writable(out) && out.scalar_type() == self.scalar_type();
}

bool hardtanh_in_place_served(at::Tensor& self, const at::Scalar& min, const at::Scalar& max) {
  return hardtanh_served(self, min, max);
}

void threshold(
    Common common, const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value,
    const at::Tensor& out) {
  const at::ScalarType dtype = common.dtype;
  const at::ScalarType wide = at::isReducedFloatingType(dtype) ? at::kFloat : dtype; // torch compares in this dtype
  const at::Tensor below = empty_as(self, at::kBool);
  run_unary(UnaryMode::LE, below, in_dtype(self, wide), number_as(threshold, wide));
  write_as(dtype, out, [&](const at::Tensor& result) {
    if (!result.is_same(self)) {
      convert(result, self);
    }
    run_masked_fill(result, below, number_as(value, dtype));
  });
}

bool threshold_served(const at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value) {
  return serves<number_types>(self) && !threshold.isComplex() && !value.isComplex();
}

} // namespace

void declare_clamp(OpPack& pack) {
  namespace meta = at::meta;
  structured<meta::structured_clamp, clamp, clamp_served>(pack, {"aten::clamp", "aten::clamp.out", "aten::clamp_"});
  structured<meta::structured_clamp_min, clamp_min, clamp_one_served>(
      pack, {"aten::clamp_min", "aten::clamp_min.out", "aten::clamp_min_"});
  structured<meta::structured_clamp_max, clamp_max, clamp_one_served>(
      pack, {"aten::clamp_max", "aten::clamp_max.out", "aten::clamp_max_"});
  structured<meta::structured_clamp_Tensor, clamp_tensors, clamp_tensors_served>(
      pack, {"aten::clamp.Tensor", "aten::clamp.Tensor_out", "aten::clamp_.Tensor"});
  structured<meta::structured_clamp_min_Tensor, clamp_tensor<true>, clamp_tensor_served>(
      pack, {"aten::clamp_min.Tensor", "aten::clamp_min.Tensor_out", "aten::clamp_min_.Tensor"});
  structured<meta::structured_clamp_max_Tensor, clamp_tensor<false>, clamp_tensor_served>(
      pack, {"aten::clamp_max.Tensor", "aten::clamp_max.Tensor_out", "aten::clamp_max_.Tensor"});

  pack.impl("aten::hardtanh", TORCH_FN(hardtanh), TORCH_FN(hardtanh_served));
  pack.impl("aten::hardtanh.out", TORCH_FN(hardtanh_out), TORCH_FN(hardtanh_out_served));
  pack.impl("aten::hardtanh_", TORCH_FN(hardtanh_), TORCH_FN(hardtanh_in_place_served));
  structured<meta::structured_threshold, threshold, threshold_served>(
      pack, {"aten::threshold", "aten::threshold.out", "aten::threshold_"});
}

} // namespace musa_ops_mudnn
