// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reductions over dimensions (sums, means, extremes, norms and others), by Reduce and Softmax's LOGSUMEXP.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/all_meta.h>
#include <ATen/ops/amax_meta.h>
#include <ATen/ops/amin_meta.h>
#include <ATen/ops/aminmax_meta.h>
#include <ATen/ops/any_meta.h>
#include <ATen/ops/argmax_meta.h>
#include <ATen/ops/argmin_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm_meta.h>
#include <ATen/ops/max_meta.h>
#include <ATen/ops/mean_meta.h>
#include <ATen/ops/min_meta.h>
#include <ATen/ops/norm_meta.h>
#include <ATen/ops/prod_meta.h>
#include <ATen/ops/sum_meta.h>
#include <c10/util/MaybeOwned.h>
#include <c10/util/SmallVector.h>
#include <musa_runtime/mudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using ReduceMode = dnn::Reduce::Mode;
using Dims = at::OptionalIntArrayRef;
using Mask = at::native::DimMask;

// nullopt and an empty list mean all dimensions, as in torch for every reduction in this file.
Mask mask_of(const at::Tensor& self, Dims dims) { return at::native::make_dim_mask(dims, self.dim()); }

Mask mask_of_dim(const at::Tensor& self, std::optional<int64_t> dim) {
  return dim.has_value() ? mask_of(self, Dims(at::IntArrayRef(*dim))) : mask_of(self, Dims());
}

at::Tensor empty_result(const at::Tensor& self, Mask mask, bool keepdim, at::ScalarType dtype) {
  return new_empty(self, at::native::shape_from_dim_mask(self, mask, keepdim), dtype);
}

// A dimension, or adjacent dimensions merged into one.
struct Axis {
  int64_t size;
  int64_t stride;
  std::array<int64_t, 2> out_strides; // in the outputs, if it is kept
  bool reduced;
};
using Axes = c10::SmallVector<Axis, max_dims>;
using Numbers = c10::SmallVector<int64_t, max_dims>;

enum class Order { Memory, Logical };

// Returns the dimensions of `in` and its outputs without those of size 1, whose strides are arbitrary. They are in
// memory order, which merges more of them, unless the logical order matters.
Axes axes_of(const at::Tensor& in, Mask mask, std::initializer_list<const at::Tensor*> outputs, Order order) {
  const at::ArrayRef<const at::Tensor*> outs(outputs);
  Axes axes;
  const bool kept = outs[0]->dim() == in.dim();
  for (int64_t i = 0, at = 0; i < in.dim(); ++i) {
    Axis axis{in.size(i), in.stride(i), {}, mask[static_cast<size_t>(i)]};
    if (!axis.reduced) {
      for (size_t j = 0; j < outs.size(); ++j) {
        axis.out_strides[j] = outs[j]->stride(at);
      }
    }
    at += kept || !axis.reduced ? 1 : 0;
    if (axis.size != 1) {
      axes.push_back(axis);
    }
  }
  const auto outer = [](const Axis& a, const Axis& b) { return a.stride > b.stride; };
  if (order == Order::Memory && !std::is_sorted(axes.begin(), axes.end(), outer)) {
    std::stable_sort(axes.begin(), axes.end(), outer);
  }
  return axes;
}

void join(Axes& axes) {
  const auto follows = [](int64_t outer, int64_t inner, int64_t size) { return outer == inner * size; };
  Axes joined;
  for (const Axis& axis : axes) {
    if (!joined.empty()) {
      Axis& last = joined.back();
      if (last.reduced == axis.reduced && follows(last.stride, axis.stride, axis.size) &&
          (axis.reduced ||
           (follows(last.out_strides[0], axis.out_strides[0], axis.size) &&
            follows(last.out_strides[1], axis.out_strides[1], axis.size)))) {
        last = {last.size * axis.size, axis.stride, axis.out_strides, axis.reduced};
        continue;
      }
    }
    joined.push_back(axis);
  }
  axes = std::move(joined);
}

Numbers sizes_of(const Axes& axes) {
  Numbers sizes;
  for (const Axis& axis : axes) {
    sizes.push_back(axis.size);
  }
  return sizes;
}

dnn::Tensor describe_in(const at::Tensor& in, const Axes& axes) {
  Numbers strides;
  for (const Axis& axis : axes) {
    strides.push_back(axis.stride);
  }
  return describe_as(in, sizes_of(axes), strides, kRead);
}

// Describes the output without the reduced dimensions.
dnn::Tensor describe_out(const at::Tensor& out, const Axes& axes, size_t which) {
  Numbers sizes;
  Numbers strides;
  for (const Axis& axis : axes) {
    if (!axis.reduced) {
      sizes.push_back(axis.size);
      strides.push_back(axis.out_strides[which]);
    }
  }
  return describe_as(out, sizes, strides);
}

// Copies `in` to new memory in the order of the axes, with the reduced ones last.
at::Tensor gathered(const at::Tensor& in, Axes& axes) {
  std::stable_partition(axes.begin(), axes.end(), [](const Axis& axis) { return !axis.reduced; });
  const at::Tensor copy = new_empty(in, sizes_of(axes));
  const OnDevice on(in);
  dnn::Unary op;
  check(op.SetMode(UnaryMode::IDENTITY), "Unary::SetMode");
  dnn::Tensor result = describe(copy);
  check(op.Run(on.handle(), result, describe_in(in, axes)), "Unary::Run", {&copy, &in});
  int64_t stride = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    axis->stride = stride;
    stride *= axis->size;
  }
  return copy;
}

// Whether counting an element repeatedly does not change the result.
bool idempotent(ReduceMode mode) {
  return mode == ReduceMode::MEAN || mode == ReduceMode::MAX || mode == ReduceMode::MIN || mode == ReduceMode::AND ||
      mode == ReduceMode::OR;
}

// Whether the reduction of a single element is that element.
bool keeps_one(ReduceMode mode) {
  return mode == ReduceMode::ADD || mode == ReduceMode::PROD || mode == ReduceMode::MEAN || mode == ReduceMode::MAX ||
      mode == ReduceMode::MIN;
}

// For an input with repeated elements (stride 0), the hardware's Reduce divides by zero if several dimensions are
// reduced, and may write only the first result if one is. So such inputs are copied first; none is declined.
c10::MaybeOwned<at::Tensor> without_repeats(const at::Tensor& in, Axes& axes) {
  const bool repeats = std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.stride == 0; });
  return repeats ? c10::MaybeOwned<at::Tensor>::owned(gathered(in, axes)) : c10::MaybeOwned<at::Tensor>::borrowed(in);
}

// Passes the reduced axes to the operation. At least one axis exists, because an empty list means that the input is a
// scalar.
dnn::Reduce reduce_of(ReduceMode mode, Axes& axes) {
  c10::SmallVector<int, max_dims> dims;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].reduced) {
      dims.push_back(static_cast<int>(i));
    }
  }
  if (dims.empty()) {
    dims.push_back(static_cast<int>(axes.size()));
    axes.push_back({1, 1, {}, true});
  }
  dnn::Reduce op;
  check(op.SetMode(mode), "Reduce::SetMode");
  check(op.SetDim(static_cast<int>(dims.size()), dims.data()), "Reduce::SetDim");
  return op;
}

bool none_reduced(const Axes& axes) {
  return std::none_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.reduced; });
}

// Computes out = in, where the reduced dimensions have size 1.
void copy_kept(const at::Tensor& out, const at::Tensor& in, const Axes& axes) {
  const OnDevice on(out);
  dnn::Unary op;
  check(op.SetMode(out.scalar_type() == in.scalar_type() ? UnaryMode::IDENTITY : UnaryMode::CAST), "Unary::SetMode");
  dnn::Tensor result = describe_out(out, axes, 0);
  check(op.Run(on.handle(), result, describe_in(in, axes)), "Unary::Run", {&out, &in});
}

struct Parameters {
  float order = 2; // for NORM
  double correction = 1; // for VARIANCE and STD
};

// `out` has the result dtype of the mode, with or without the reduced dimensions.
void reduce(ReduceMode mode, const at::Tensor& self, Mask mask, const at::Tensor& out, Parameters parameters = {}) {
  Axes axes = axes_of(self, mask, {&out}, Order::Memory);
  if (idempotent(mode)) {
    const auto repeats = [](const Axis& axis) { return axis.reduced && axis.stride == 0; };
    axes.erase(std::remove_if(axes.begin(), axes.end(), repeats), axes.end());
  }
  if (keeps_one(mode) && none_reduced(axes)) {
    copy_kept(out, self, axes);
    return;
  }
  const auto in = without_repeats(self, axes);
  join(axes);
  dnn::Reduce op = reduce_of(mode, axes);
  if (mode == ReduceMode::NORM) {
    check(op.SetNormOrd(parameters.order), "Reduce::SetNormOrd");
  } else if (mode == ReduceMode::VARIANCE || mode == ReduceMode::STD) {
    check(op.SetCorrection(parameters.correction), "Reduce::SetCorrection");
  }
  const OnDevice on(out);
  dnn::Tensor result = describe_out(out, axes, 0);
  check(op.Run(on.handle(), result, describe_in(*in, axes), on.workspace()), "Reduce::Run", {&out, &self});
}

// Returns the input of a sum or product in `dtype`. The reduction itself widens integers; it does not widen or multiply
// booleans.
Operand operand_of(const at::Tensor& self, at::ScalarType dtype) {
  if (dtype != at::kLong || !contains(integer_types | bool_type, self.scalar_type())) {
    return in_dtype(self, dtype);
  }
  return self.scalar_type() == at::kBool ? in_dtype(self, at::kByte) : Operand::borrowed(self);
}

// If `out` is BOOL, a sum returns whether any element is true, and a product whether all are.
template <ReduceMode mode, ReduceMode of_bool>
void accumulate(const at::Tensor& self, Mask mask, const at::Tensor& out) {
  const at::ScalarType dtype = out.scalar_type();
  if (dtype == at::kBool) {
    reduce(of_bool, self, mask, out);
  } else if (self.scalar_type() == dtype) {
    reduce(mode, self, mask, out);
  } else {
    reduce(mode, operand_of(self, dtype), mask, out);
  }
}

bool served_dtype(std::optional<at::ScalarType> dtype, Dtypes types) {
  return !dtype.has_value() || contains(types, *dtype);
}

void sum(
    const at::Tensor& self, Dims dim, bool /*keepdim*/, std::optional<at::ScalarType> /*dtype*/,
    const at::Tensor& out) {
  accumulate<ReduceMode::ADD, ReduceMode::OR>(self, mask_of(self, dim), out);
}

bool sum_served(const at::Tensor& self, Dims /*dim*/, bool /*keepdim*/, std::optional<at::ScalarType> dtype) {
  return serves<all_types>(self) && served_dtype(dtype, all_types);
}

void prod(
    const at::Tensor& self, int64_t dim, bool /*keepdim*/, std::optional<at::ScalarType> /*dtype*/,
    const at::Tensor& out) {
  accumulate<ReduceMode::PROD, ReduceMode::AND>(self, mask_of_dim(self, dim), out);
}

bool prod_served(const at::Tensor& self, int64_t /*dim*/, bool /*keepdim*/, std::optional<at::ScalarType> dtype) {
  return serves<all_types>(self) && served_dtype(dtype, all_types);
}

at::Tensor prod_all(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  const at::Tensor out =
      at::empty({}, self.options().dtype(at::native::get_dtype_from_self(self, dtype, /*promote_integers=*/true)));
  accumulate<ReduceMode::PROD, ReduceMode::AND>(self, mask_of(self, Dims()), out);
  return out;
}

bool prod_all_served(const at::Tensor& self, std::optional<at::ScalarType> dtype) {
  return serves<all_types>(self) && served_dtype(dtype, all_types);
}

void mean(
    const at::Tensor& self, Dims dim, bool /*keepdim*/, std::optional<at::ScalarType> /*dtype*/,
    const at::Tensor& out) {
  reduce(ReduceMode::MEAN, in_dtype(self, out.scalar_type()), mask_of(self, dim), out);
}

bool mean_served(const at::Tensor& self, Dims /*dim*/, bool /*keepdim*/, std::optional<at::ScalarType> dtype) {
  return serves<all_types>(self) && served_dtype(dtype, float_types);
}

// Without a dtype, the mean is computed in the dtype of `out`.
bool mean_out_served(
    const at::Tensor& self, Dims dim, bool keepdim, std::optional<at::ScalarType> dtype, at::Tensor& out) {
  return mean_served(self, dim, keepdim, dtype) && writable(out) && contains(float_types, out.scalar_type());
}

// Minimum and maximum; for booleans these are AND and OR.
template <ReduceMode mode>
void extreme(const at::Tensor& self, Mask mask, const at::Tensor& out) {
  constexpr ReduceMode of_bool = mode == ReduceMode::MAX ? ReduceMode::OR : ReduceMode::AND;
  reduce(self.scalar_type() == at::kBool ? of_bool : mode, self, mask, out);
}

template <ReduceMode mode>
void extreme_of_dims(const at::Tensor& self, at::IntArrayRef dim, bool /*keepdim*/, const at::Tensor& out) {
  extreme<mode>(self, mask_of(self, Dims(dim)), out);
}

template <ReduceMode mode>
at::Tensor extreme_of_all(const at::Tensor& self) {
  const at::Tensor out = new_empty(self, {});
  extreme<mode>(self, mask_of(self, Dims()), out);
  return out;
}

template <ReduceMode mode>
at::Tensor& extreme_of_all_out(const at::Tensor& self, at::Tensor& out) {
  at::native::resize_output(out, {});
  write_as(
      self.scalar_type(), out, [&](const at::Tensor& result) { extreme<mode>(self, mask_of(self, Dims()), result); });
  return out;
}

bool extreme_of_all_served(const at::Tensor& self) { return serves<all_types>(self); }

bool extreme_of_all_out_served(const at::Tensor& self, at::Tensor& out) {
  return serves<all_types>(self) && writable(out) && out.device() == self.device() &&
      c10::canCast(self.scalar_type(), out.scalar_type());
}

void aminmax(
    const at::Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/, const at::Tensor& least,
    const at::Tensor& largest) {
  const Mask mask = mask_of_dim(self, dim);
  extreme<ReduceMode::MIN>(self, mask, least);
  extreme<ReduceMode::MAX>(self, mask, largest);
}

// The maximum or minimum along a dimension, and its index.
template <ReduceMode mode>
void extreme_with_indices(
    const at::Tensor& self, int64_t dim, bool /*keepdim*/, const at::Tensor& values, const at::Tensor& indices) {
  Axes axes = axes_of(self, mask_of_dim(self, dim), {&values, &indices}, Order::Memory);
  if (none_reduced(axes)) {
    copy_kept(values, self, axes);
    run_fill(indices, 0);
    return;
  }
  const auto in = without_repeats(self, axes);
  join(axes);
  const dnn::Reduce op = reduce_of(mode, axes);
  const OnDevice on(values);
  dnn::Tensor result = describe_out(values, axes, 0);
  dnn::Tensor places = describe_out(indices, axes, 1);
  check(
      op.RunWithIndices(on.handle(), result, places, describe_in(*in, axes), on.workspace()), "Reduce::RunWithIndices",
      {&values, &indices, &self});
}

// Without a dimension, the index counts all elements in logical order, so they are reduced as one dimension.
template <ReduceMode mode>
void arg(const at::Tensor& self, std::optional<int64_t> dim, bool /*keepdim*/, const at::Tensor& indices) {
  const Operand source = dim.has_value() ? Operand::borrowed(self) : contiguous(self);
  Axes axes = axes_of(source, mask_of_dim(self, dim), {&indices}, dim.has_value() ? Order::Memory : Order::Logical);
  if (none_reduced(axes)) {
    run_fill(indices, 0);
    return;
  }
  const auto in = without_repeats(source, axes);
  join(axes);
  const dnn::Reduce op = reduce_of(mode, axes);
  const OnDevice on(indices);
  dnn::Tensor places = describe_out(indices, axes, 0);
  check(
      op.RunIndices(on.handle(), places, describe_in(*in, axes), on.workspace()), "Reduce::RunIndices",
      {&indices, &self});
}

// `out` is BOOL, or UINT8 for UINT8 inputs as in torch.
template <ReduceMode mode>
void truth(const at::Tensor& self, Mask mask, const at::Tensor& out) {
  write_as(at::kBool, out, [&](const at::Tensor& result) { reduce(mode, self, mask, result); });
}

template <ReduceMode mode>
void truth_of_all(const at::Tensor& self, const at::Tensor& out) {
  truth<mode>(self, mask_of(self, Dims()), out);
}

template <ReduceMode mode>
void truth_of_dim(const at::Tensor& self, int64_t dim, bool /*keepdim*/, const at::Tensor& out) {
  truth<mode>(self, mask_of_dim(self, dim), out);
}

template <ReduceMode mode>
void truth_of_dims(const at::Tensor& self, Dims dim, bool /*keepdim*/, const at::Tensor& out) {
  truth<mode>(self, mask_of(self, dim), out);
}

// For these operators an empty list means no dimension: nothing is reduced.
bool truth_of_dims_served(const at::Tensor& self, Dims dim, bool /*keepdim*/) {
  return serves<all_types>(self) && !(dim.has_value() && dim->empty());
}

at::Tensor count_nonzero(const at::Tensor& self, at::IntArrayRef dim) {
  const Mask mask = mask_of(self, Dims(dim));
  const at::Tensor out = empty_result(self, mask, /*keepdim=*/false, at::kLong);
  at::Tensor flags = self;
  if (self.scalar_type() != at::kBool) {
    flags = empty_as(self, at::kBool);
    run_unary(UnaryMode::IS_NONZERO, flags, self);
  }
  accumulate<ReduceMode::ADD, ReduceMode::OR>(flags, mask, out);
  return out;
}

bool count_nonzero_served(const at::Tensor& self, at::IntArrayRef /*dim*/) { return serves<all_types>(self); }

// Norms. Infinite orders are extremes of the absolute values, and order 0 counts the nonzero elements.
void norm_of(const at::Tensor& self, double order, Mask mask, const at::Tensor& out) {
  const Operand in = in_dtype(self, out.scalar_type());
  if (std::isinf(order)) {
    const at::Tensor sizes = empty_as(in, in->scalar_type());
    run_unary(UnaryMode::ABS, sizes, in);
    reduce(order > 0 ? ReduceMode::MAX : ReduceMode::MIN, sizes, mask, out);
  } else if (order == 0) {
    const at::Tensor flags = empty_as(in, at::kBool);
    run_unary(UnaryMode::IS_NONZERO, flags, in);
    reduce(ReduceMode::ADD, in_dtype(flags, out.scalar_type()), mask, out);
  } else {
    reduce(ReduceMode::NORM, in, mask, out, {.order = static_cast<float>(order)});
  }
}

// muDNN stores the order as a float, so for DOUBLE only orders that a float represents exactly are supported.
bool serves_order(const at::Scalar& order, at::ScalarType dtype) {
  if (order.isComplex() || order.isSymbolic()) {
    return false;
  }
  const double value = order.toDouble();
  if (std::isinf(value)) {
    return true;
  }
  const bool in_range = std::abs(value) <= std::numeric_limits<float>::max() &&
      (value == 0 || std::abs(value) >= std::numeric_limits<float>::min());
  return in_range && (dtype != at::kDouble || static_cast<double>(static_cast<float>(value)) == value);
}

bool norm_served(const at::Tensor& self, const at::Scalar& order, std::optional<at::ScalarType> dtype) {
  return serves<float_types>(self) && served_dtype(dtype, float_types) &&
      serves_order(order, dtype.value_or(self.scalar_type()));
}

double order_of(at::OptionalScalarRef p) { return p.has_value() ? p.get().toDouble() : 2; }

void vector_norm(
    const at::Tensor& self, const at::Scalar& order, Dims dim, bool /*keepdim*/,
    std::optional<at::ScalarType> /*dtype*/, const at::Tensor& out) {
  norm_of(self, order.toDouble(), mask_of(self, dim), out);
}

bool vector_norm_served(
    const at::Tensor& self, const at::Scalar& order, Dims /*dim*/, bool /*keepdim*/,
    std::optional<at::ScalarType> dtype) {
  return norm_served(self, order, dtype);
}

void norm(
    const at::Tensor& self, at::OptionalScalarRef p, at::IntArrayRef dim, bool /*keepdim*/, const at::Tensor& out) {
  norm_of(self, order_of(p), mask_of(self, Dims(dim)), out);
}

bool norm_of_dims_served(
    const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef /*dim*/, bool /*keepdim*/) {
  return norm_served(self, p.value_or(2), std::nullopt);
}

void norm_in_dtype(
    const at::Tensor& self, at::OptionalScalarRef p, at::IntArrayRef dim, bool /*keepdim*/, at::ScalarType /*dtype*/,
    const at::Tensor& out) {
  norm_of(self, order_of(p), mask_of(self, Dims(dim)), out);
}

bool norm_in_dtype_served(
    const at::Tensor& self, const std::optional<at::Scalar>& p, at::IntArrayRef /*dim*/, bool /*keepdim*/,
    at::ScalarType dtype) {
  return norm_served(self, p.value_or(2), dtype);
}

// Variance and standard deviation.
using Correction = std::optional<at::Scalar>;

double value_of(const Correction& correction) { return correction.has_value() ? correction->toDouble() : 1; }

template <ReduceMode mode>
at::Tensor spread(const at::Tensor& self, Dims dim, const Correction& correction, bool keepdim) {
  const Mask mask = mask_of(self, dim);
  const at::Tensor out = empty_result(self, mask, keepdim, self.scalar_type());
  reduce(mode, self, mask, out, {.correction = value_of(correction)});
  return out;
}

template <ReduceMode mode>
at::Tensor& spread_out(const at::Tensor& self, Dims dim, const Correction& correction, bool keepdim, at::Tensor& out) {
  const Mask mask = mask_of(self, dim);
  at::native::resize_output(out, at::native::shape_from_dim_mask(self, mask, keepdim));
  reduce(mode, self, mask, out, {.correction = value_of(correction)});
  return out;
}

template <ReduceMode mode>
std::tuple<at::Tensor, at::Tensor> spread_and_mean(
    const at::Tensor& self, Dims dim, const Correction& correction, bool keepdim) {
  const Mask mask = mask_of(self, dim);
  const at::Tensor middle = empty_result(self, mask, keepdim, self.scalar_type());
  reduce(ReduceMode::MEAN, self, mask, middle);
  return {spread<mode>(self, dim, correction, keepdim), middle};
}

// Declined if torch warns that no degrees of freedom are left after the correction, or raises an error for the
// dimensions.
bool spread_served(const at::Tensor& self, Dims dim, const Correction& correction, bool /*keepdim*/) {
  if (!serves<float_types>(self) || (correction.has_value() && (correction->isComplex() || correction->isSymbolic()))) {
    return false;
  }
  int64_t count = dim.has_value() && !dim->empty() ? 1 : self.numel();
  const int64_t range = std::max<int64_t>(self.dim(), 1);
  for (const int64_t i : dim.value_or(at::IntArrayRef())) {
    if (i < -range || i >= range) {
      return false;
    }
    count *= self.dim() > 0 ? self.size(i) : 1;
  }
  return std::isfinite(value_of(correction)) && static_cast<double>(count) > value_of(correction);
}

bool spread_out_served(const at::Tensor& self, Dims dim, const Correction& correction, bool keepdim, at::Tensor& out) {
  return spread_served(self, dim, correction, keepdim) && writable(out) && out.device() == self.device() &&
      out.scalar_type() == self.scalar_type();
}

// Softmax supports contiguous operands and one dimension; other inputs are copied. `out` is contiguous.
void run_logsumexp(const at::Tensor& self, Mask mask, const at::Tensor& out) {
  Axes axes = axes_of(self, mask, {&out}, Order::Logical);
  if (none_reduced(axes)) {
    copy_kept(out, self, axes);
    return;
  }
  at::Tensor in = self;
  Axes seen = axes;
  join(seen);
  const auto reduced = std::count_if(seen.begin(), seen.end(), [](const Axis& axis) { return axis.reduced; });
  if (reduced > 1 || !self.is_contiguous()) {
    in = gathered(self, axes);
    seen = axes;
    join(seen);
  }
  const auto dim = std::find_if(seen.begin(), seen.end(), [](const Axis& axis) { return axis.reduced; });
  dnn::Softmax op;
  check(op.SetMode(dnn::Softmax::Mode::LOGSUMEXP), "Softmax::SetMode");
  check(op.SetDim(static_cast<int>(dim - seen.begin())), "Softmax::SetDim");
  const OnDevice on(out);
  dnn::Tensor result = describe_out(out, seen, 0);
  check(op.Run(on.handle(), result, describe_in(in, seen), on.workspace()), "Softmax::Run", {&out, &self});
}

at::Tensor logsumexp(const at::Tensor& self, at::IntArrayRef dim, bool keepdim) {
  const Mask mask = mask_of(self, Dims(dim));
  const at::Tensor out = empty_result(self, mask, keepdim, self.scalar_type());
  run_logsumexp(self, mask, out);
  return out;
}

at::Tensor& logsumexp_out(const at::Tensor& self, at::IntArrayRef dim, bool keepdim, at::Tensor& out) {
  const Mask mask = mask_of(self, Dims(dim));
  at::native::resize_output(out, at::native::shape_from_dim_mask(self, mask, keepdim));
  if (out.is_contiguous()) {
    run_logsumexp(self, mask, out);
  } else {
    convert(out, musa_ops_mudnn::logsumexp(self, dim, keepdim));
  }
  return out;
}

bool logsumexp_served(const at::Tensor& self, at::IntArrayRef dim, bool /*keepdim*/) {
  return serves<float_types>(self) && !dim.empty();
}

bool logsumexp_out_served(const at::Tensor& self, at::IntArrayRef dim, bool keepdim, at::Tensor& out) {
  return logsumexp_served(self, dim, keepdim) && writable(out) && out.device() == self.device() &&
      out.scalar_type() == self.scalar_type();
}

} // namespace

// torch composes sum, mean and norm without dimensions of the operators below.
void declare_reduce(OpPack& pack) {
  namespace meta = at::meta;
  structured<meta::structured_sum_dim_IntList, sum, sum_served>(
      pack, {"aten::sum.dim_IntList", "aten::sum.IntList_out"});
  structured<meta::structured_prod_dim_int, prod, prod_served>(pack, {"aten::prod.dim_int", "aten::prod.int_out"});
  pack.impl("aten::prod", TORCH_FN(prod_all), TORCH_FN(prod_all_served));
  using MeanForms = MetaMethod<decltype(&meta::structured_mean_dim::meta)>::One<meta::structured_mean_dim, mean>;
  pack.impl("aten::mean.dim", TORCH_FN(MeanForms::functional), TORCH_FN(mean_served));
  pack.impl("aten::mean.out", TORCH_FN(MeanForms::out), TORCH_FN(mean_out_served));
  pack.impl("aten::count_nonzero.dim_IntList", TORCH_FN(count_nonzero), TORCH_FN(count_nonzero_served));

  structured<meta::structured_amax, extreme_of_dims<ReduceMode::MAX>, takes<all_types>>(
      pack, {"aten::amax", "aten::amax.out"});
  structured<meta::structured_amin, extreme_of_dims<ReduceMode::MIN>, takes<all_types>>(
      pack, {"aten::amin", "aten::amin.out"});
  pack.impl("aten::max", TORCH_FN(extreme_of_all<ReduceMode::MAX>), TORCH_FN(extreme_of_all_served));
  pack.impl("aten::max.unary_out", TORCH_FN(extreme_of_all_out<ReduceMode::MAX>), TORCH_FN(extreme_of_all_out_served));
  pack.impl("aten::min", TORCH_FN(extreme_of_all<ReduceMode::MIN>), TORCH_FN(extreme_of_all_served));
  pack.impl("aten::min.unary_out", TORCH_FN(extreme_of_all_out<ReduceMode::MIN>), TORCH_FN(extreme_of_all_out_served));
  structured_pair<meta::structured_aminmax, aminmax, takes<all_types>>(pack, {"aten::aminmax", "aten::aminmax.out"});
  structured_pair<meta::structured_max_dim, extreme_with_indices<ReduceMode::MAX>, takes<number_types>>(
      pack, {"aten::max.dim", "aten::max.dim_max"});
  structured_pair<meta::structured_min_dim, extreme_with_indices<ReduceMode::MIN>, takes<number_types>>(
      pack, {"aten::min.dim", "aten::min.dim_min"});
  structured<meta::structured_argmax, arg<ReduceMode::MAX>, takes<number_types>>(
      pack, {"aten::argmax", "aten::argmax.out"});
  structured<meta::structured_argmin, arg<ReduceMode::MIN>, takes<number_types>>(
      pack, {"aten::argmin", "aten::argmin.out"});

  structured<meta::structured_all, truth_of_all<ReduceMode::AND>, takes<all_types>>(
      pack, {"aten::all", "aten::all.all_out"});
  structured<meta::structured_all_dim, truth_of_dim<ReduceMode::AND>, takes<all_types>>(
      pack, {"aten::all.dim", "aten::all.out"});
  structured<meta::structured_all_dims, truth_of_dims<ReduceMode::AND>, truth_of_dims_served>(
      pack, {"aten::all.dims", "aten::all.dims_out"});
  structured<meta::structured_any, truth_of_all<ReduceMode::OR>, takes<all_types>>(
      pack, {"aten::any", "aten::any.all_out"});
  structured<meta::structured_any_dim, truth_of_dim<ReduceMode::OR>, takes<all_types>>(
      pack, {"aten::any.dim", "aten::any.out"});
  structured<meta::structured_any_dims, truth_of_dims<ReduceMode::OR>, truth_of_dims_served>(
      pack, {"aten::any.dims", "aten::any.dims_out"});

  structured<meta::structured_linalg_vector_norm, vector_norm, vector_norm_served>(
      pack, {"aten::linalg_vector_norm", "aten::linalg_vector_norm.out"});
  structured<meta::structured_norm_ScalarOpt_dim, norm, norm_of_dims_served>(
      pack, {"aten::norm.ScalarOpt_dim", "aten::norm.out"});
  structured<meta::structured_norm_ScalarOpt_dim_dtype, norm_in_dtype, norm_in_dtype_served>(
      pack, {"aten::norm.ScalarOpt_dim_dtype", "aten::norm.dtype_out"});

  pack.impl("aten::var.correction", TORCH_FN(spread<ReduceMode::VARIANCE>), TORCH_FN(spread_served));
  pack.impl("aten::var.correction_out", TORCH_FN(spread_out<ReduceMode::VARIANCE>), TORCH_FN(spread_out_served));
  pack.impl("aten::std.correction", TORCH_FN(spread<ReduceMode::STD>), TORCH_FN(spread_served));
  pack.impl("aten::std.correction_out", TORCH_FN(spread_out<ReduceMode::STD>), TORCH_FN(spread_out_served));
  pack.impl("aten::var_mean.correction", TORCH_FN(spread_and_mean<ReduceMode::VARIANCE>), TORCH_FN(spread_served));
  pack.impl("aten::std_mean.correction", TORCH_FN(spread_and_mean<ReduceMode::STD>), TORCH_FN(spread_served));
  pack.impl("aten::logsumexp", TORCH_FN(logsumexp), TORCH_FN(logsumexp_served));
  pack.impl("aten::logsumexp.out", TORCH_FN(logsumexp_out), TORCH_FN(logsumexp_out_served));
}

} // namespace musa_ops_mudnn
