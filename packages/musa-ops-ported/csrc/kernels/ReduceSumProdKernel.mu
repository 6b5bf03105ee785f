// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/ReduceOps.h>
#include <c10/util/complex.h>

#include <cstring>
#include <type_traits>

#include "engines/dispatch.h"
#include "engines/reduce.muh"

namespace musa_ops_ported {
namespace {

template <typename T>
struct Sum {
  using Input = T;
  using Output = T;
  using Accumulator = at::opmath_type<T>;
  __device__ Accumulator identity() const { return Accumulator(0); }
  __device__ Accumulator step(Accumulator sum, T x, int64_t) const { return sum + static_cast<Accumulator>(x); }
  __device__ Accumulator combine(Accumulator a, Accumulator b) const { return a + b; }
  __device__ T project(Accumulator sum) const { return static_cast<T>(sum); }
};

// Sum of floating point elements times a factor, which computes a mean if the factor is 1 / count.
template <typename T>
struct ScaledSum : Sum<T> {
  using Accumulator = at::opmath_type<T>;
  Accumulator factor;
  __device__ T project(Accumulator sum) const { return static_cast<T>(sum * factor); }
};

template <typename T>
struct SumOfNumbers : Sum<T> {
  using Accumulator = at::opmath_type<T>;
  __device__ Accumulator step(Accumulator sum, T x, int64_t) const {
    return x != x ? sum : sum + static_cast<Accumulator>(x);
  }
};

template <typename T>
struct Product {
  using Input = T;
  using Output = T;
  using Accumulator = at::opmath_type<T>;
  __device__ Accumulator identity() const { return Accumulator(1); }
  __device__ Accumulator step(Accumulator product, T x, int64_t) const { return product * static_cast<Accumulator>(x); }
  __device__ Accumulator combine(Accumulator a, Accumulator b) const { return a * b; }
  __device__ T project(Accumulator product) const { return static_cast<T>(product); }
};
template <>
struct Product<bool> {
  using Input = bool;
  using Output = bool;
  using Accumulator = bool;
  __device__ bool identity() const { return true; }
  __device__ bool step(bool product, bool x, int64_t) const { return product && x; }
  __device__ bool combine(bool a, bool b) const { return a && b; }
  __device__ bool project(bool product) const { return product; }
};

// Exclusive or of all elements; floating point elements are converted to the bits of a double.
template <typename T>
struct ExclusiveOr {
  using Input = T;
  using Output = uint64_t;
  using Accumulator = uint64_t;
  __device__ uint64_t identity() const { return 0; }
  __device__ uint64_t step(uint64_t so_far, T x, int64_t) const {
    if constexpr (std::is_integral_v<T>) {
      return so_far ^ static_cast<uint64_t>(x);
    } else {
      const double wide = static_cast<double>(x);
      uint64_t bits;
      std::memcpy(&bits, &wide, sizeof bits);
      return so_far ^ bits;
    }
  }
  __device__ uint64_t combine(uint64_t a, uint64_t b) const { return a ^ b; }
  __device__ uint64_t project(uint64_t result) const { return result; }
};

void exclusive_or(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.input_dtype(), "hash_tensor", (MUSA_REAL, at::kBool), { reduce(iter, ExclusiveOr<scalar_t>()); });
}

void scaled_sum(at::TensorIterator& iter, double factor) {
  MUSA_DISPATCH(iter.dtype(), "sum or mean", (MUSA_FLOATING_AND_COMPLEX), {
    ScaledSum<scalar_t> op;
    op.factor = static_cast<op_t>(factor);
    reduce(iter, op);
  });
}
void sum(at::TensorIterator& iter) {
  if (at::isIntegralType(iter.dtype(), /*includeBool=*/true)) {
    MUSA_DISPATCH(iter.dtype(), "sum", (MUSA_INTEGRAL), { reduce(iter, Sum<scalar_t>()); });
  } else {
    scaled_sum(iter, 1);
  }
}
void mean(at::TensorIterator& iter) {
  TORCH_CHECK(
      at::isFloatingType(iter.dtype()) || at::isComplexType(iter.dtype()), "mean: a result of dtype ", iter.dtype(),
      " cannot hold a mean; it must be a floating point or complex dtype");
  scaled_sum(iter, static_cast<double>(iter.num_output_elements()) / static_cast<double>(iter.numel()));
}

void nansum(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(), "nansum", (MUSA_FLOATING_AND_COMPLEX), { reduce(iter, SumOfNumbers<scalar_t>()); });
}

void prod(at::TensorIterator& iter) {
  MUSA_DISPATCH(iter.dtype(), "prod", (MUSA_ALL), { reduce(iter, Product<scalar_t>()); });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(sum_stub, &musa_ops_ported::sum)
REGISTER_PRIVATEUSE1_DISPATCH(nansum_stub, &musa_ops_ported::nansum)
REGISTER_PRIVATEUSE1_DISPATCH(mean_stub, &musa_ops_ported::mean)
REGISTER_PRIVATEUSE1_DISPATCH(prod_stub, &musa_ops_ported::prod)
REGISTER_PRIVATEUSE1_DISPATCH(xor_sum_stub, &musa_ops_ported::exclusive_or)
} // namespace at::native
