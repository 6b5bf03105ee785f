// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceAllOps.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/TensorCompare.h>

#include "engines/dispatch.h"
#include "engines/overlap.h"
#include "engines/reduce.muh"
#include "kernels/extrema.muh"

namespace musa_ops_ported {
namespace {

template <Extreme which>
void extremum(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(), "amax or amin", (MUSA_REAL, at::kBool), { reduce(iter, Extremum<scalar_t, which>()); });
}
template <Extreme which>
void of_all(at::Tensor& result, const at::Tensor& self) {
  auto iter = at::native::make_reduction(
      "max or min", result, self, at::IntArrayRef{}, /*keepdim=*/false, self.scalar_type(), self.scalar_type());
  extremum<which>(iter);
}

void argument_of(at::TensorIterator& iter, Extreme which) {
  MUSA_DISPATCH(
      iter.dtype(1), "argmax or argmin", (MUSA_REAL, at::kBool), { reduce(iter, Argument<scalar_t>{which}); });
}
template <Extreme which>
void argument(at::TensorIterator& iter) {
  argument_of(iter, which);
}

void with_place_of(
    const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self, int64_t dim, bool keepdim,
    Extreme which) {
  check_overlap_within(values, indices);
  at::Tensor value = values;
  at::Tensor index = indices;
  auto iter = at::native::make_reduction("max or min", value, index, self, dim, keepdim, self.scalar_type(), at::kLong);
  MUSA_DISPATCH(
      self.scalar_type(), "max or min", (MUSA_REAL, at::kBool), { reduce(iter, ExtremumAndPlace<scalar_t>{which}); });
}
template <Extreme which>
void with_place(
    const at::Tensor& values, const at::Tensor& indices, const at::Tensor& self, int64_t dim, bool keepdim) {
  with_place_of(values, indices, self, dim, keepdim, which);
}

void range_of(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(2), "aminmax", (MUSA_REAL, at::kBool), { reduce(iter, SmallestAndLargest<scalar_t>()); });
}
void aminmax(const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& min, at::Tensor& max) {
  check_overlap_within(min, max);
  auto iter = at::native::make_reduction("aminmax", min, max, self, dim, keepdim, self.scalar_type());
  range_of(iter);
}
void aminmax_of_all(const at::Tensor& self, at::Tensor& min, at::Tensor& max) {
  auto iter = at::native::make_reduction("aminmax", min, max, self, at::IntArrayRef{}, false, self.scalar_type());
  range_of(iter);
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(max_values_stub, &musa_ops_ported::extremum<musa_ops_ported::Extreme::Largest>)
REGISTER_PRIVATEUSE1_DISPATCH(min_values_stub, &musa_ops_ported::extremum<musa_ops_ported::Extreme::Smallest>)
REGISTER_PRIVATEUSE1_DISPATCH(max_all_stub, &musa_ops_ported::of_all<musa_ops_ported::Extreme::Largest>)
REGISTER_PRIVATEUSE1_DISPATCH(min_all_stub, &musa_ops_ported::of_all<musa_ops_ported::Extreme::Smallest>)
REGISTER_PRIVATEUSE1_DISPATCH(argmax_stub, &musa_ops_ported::argument<musa_ops_ported::Extreme::Largest>)
REGISTER_PRIVATEUSE1_DISPATCH(argmin_stub, &musa_ops_ported::argument<musa_ops_ported::Extreme::Smallest>)
REGISTER_PRIVATEUSE1_DISPATCH(max_stub, &musa_ops_ported::with_place<musa_ops_ported::Extreme::Largest>)
REGISTER_PRIVATEUSE1_DISPATCH(min_stub, &musa_ops_ported::with_place<musa_ops_ported::Extreme::Smallest>)
REGISTER_PRIVATEUSE1_DISPATCH(aminmax_stub, &musa_ops_ported::aminmax)
REGISTER_PRIVATEUSE1_DISPATCH(aminmax_allreduce_stub, &musa_ops_ported::aminmax_of_all)
} // namespace at::native
