// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Norms, all/any, and variance.
#include <ATen/native/ReduceOps.h>
#include <c10/util/complex.h>

#include <cmath>
#include <limits>

#include "engines/dispatch.h"
#include "engines/reduce.muh"
#include "kernels/extrema.muh"

namespace musa_ops_ported {
namespace {

// ---- norms, over the elements' absolute values

enum class Order { Zero, One, Other, PlusInfinity, MinusInfinity };

template <typename T>
struct Norm {
  using Input = T;
  using Output = typename c10::scalar_value_type<T>::type;
  using Accumulator = at::opmath_type<Output>;
  Order order;
  Accumulator power;
  bool root;

  __device__ static Accumulator magnitude(T x) {
    return static_cast<Accumulator>(std::abs(static_cast<at::opmath_type<T>>(x)));
  }
  // The norm of an empty input is 0, except for order minus infinity, where it is undefined.
  __device__ Accumulator identity() const {
    return order == Order::MinusInfinity ? std::numeric_limits<Accumulator>::infinity() : Accumulator(0);
  }
  __device__ Accumulator step(Accumulator so_far, T x, int64_t) const {
    switch (order) {
      case Order::Zero: return so_far + (x != T(0));
      case Order::One: return so_far + magnitude(x);
      case Order::Other: return so_far + std::pow(magnitude(x), power);
      default: return combine(so_far, magnitude(x));
    }
  }
  __device__ Accumulator combine(Accumulator a, Accumulator b) const {
    switch (order) {
      case Order::PlusInfinity: return is_before(Extreme::Largest, b, a) ? b : a;
      case Order::MinusInfinity: return is_before(Extreme::Smallest, b, a) ? b : a;
      default: return a + b;
    }
  }
  __device__ Output project(Accumulator sum) const {
    if (!root) {
      return static_cast<Output>(sum);
    }
    return static_cast<Output>(order == Order::Other ? std::pow(sum, Accumulator(1) / power) : sum);
  }
};

// The 2-norm has its own functor: without a branch on the order its loop is vectorized.
template <typename T>
struct EuclideanNorm {
  using Input = T;
  using Output = typename c10::scalar_value_type<T>::type;
  using Accumulator = at::opmath_type<Output>;
  bool root;

  __device__ Accumulator identity() const { return Accumulator(0); }
  __device__ Accumulator step(Accumulator so_far, T x, int64_t) const {
    const auto wide = static_cast<at::opmath_type<T>>(x);
    if constexpr (c10::is_complex<T>::value) {
      return so_far + (wide.real() * wide.real() + wide.imag() * wide.imag());
    } else {
      return so_far + wide * wide;
    }
  }
  __device__ Accumulator combine(Accumulator a, Accumulator b) const { return a + b; }
  __device__ Output project(Accumulator sum) const { return static_cast<Output>(root ? std::sqrt(sum) : sum); }
};

void norm_of(at::TensorIterator& iter, double power, bool root) {
  if (power == 2) {
    MUSA_DISPATCH(
        iter.input_dtype(), "norm", (MUSA_FLOATING_AND_COMPLEX), { reduce(iter, EuclideanNorm<scalar_t>{root}); });
    return;
  }
  const Order order = power == 0 ? Order::Zero
      : power == 1               ? Order::One
      : std::isinf(power)        ? (power > 0 ? Order::PlusInfinity : Order::MinusInfinity)
                                 : Order::Other;
  MUSA_DISPATCH(iter.input_dtype(), "norm", (MUSA_FLOATING_AND_COMPLEX), {
    using Accumulator = typename Norm<scalar_t>::Accumulator;
    reduce(iter, Norm<scalar_t>{order, static_cast<Accumulator>(power), root});
  });
}
void norm(at::TensorIterator& iter, const at::Scalar& order) { norm_of(iter, order.toDouble(), /*root=*/true); }
void powsum(at::TensorIterator& iter, const at::Scalar& order) { norm_of(iter, order.toDouble(), /*root=*/false); }

// ---- logic

template <typename T, typename Answer>
struct Truth {
  using Input = T;
  using Output = Answer;
  using Accumulator = bool;
  bool all;
  __device__ bool identity() const { return all; }
  __device__ bool step(bool so_far, T x, int64_t) const { return combine(so_far, x != T(0)); }
  __device__ bool combine(bool a, bool b) const { return all ? a && b : a || b; }
  __device__ Answer project(bool result) const { return result; }
};
void truth_of(at::TensorIterator& iter, bool all) {
  if (iter.dtype(0) == at::kByte) {
    reduce(iter, Truth<uint8_t, uint8_t>{all});
    return;
  }
  MUSA_DISPATCH(iter.dtype(1), "all or any", (MUSA_ALL), { reduce(iter, Truth<scalar_t, bool>{all}); });
}
template <bool all>
void truth(at::TensorIterator& iter) {
  truth_of(iter, all);
}

// ---- variance, by the updates of Welford and of Chan et al.

template <typename Accumulator>
struct Moments {
  Accumulator mean, squares; // squares: sum of squared differences from the mean
  int64_t count;
};

template <typename T>
struct Variance {
  using Input = T;
  using Output = T;
  using Real = at::opmath_type<T>;
  using Accumulator = Moments<Real>;
  Real correction;
  bool root;

  __device__ Accumulator identity() const { return {0, 0, 0}; }
  __device__ Accumulator step(Accumulator so_far, T value, int64_t) const {
    const Real x = static_cast<Real>(value);
    const Real off = x - so_far.mean;
    const Real mean = so_far.mean + off / static_cast<Real>(so_far.count + 1);
    return {mean, so_far.squares + off * (x - mean), so_far.count + 1};
  }
  __device__ Accumulator combine(Accumulator a, Accumulator b) const {
    if (a.count == 0) {
      return b;
    }
    if (b.count == 0) {
      return a;
    }
    const Real off = b.mean - a.mean;
    const int64_t count = a.count + b.count;
    const Real share = static_cast<Real>(b.count) / static_cast<Real>(count);
    return {a.mean + off * share, a.squares + b.squares + off * off * static_cast<Real>(a.count) * share, count};
  }
  __device__ T project(Accumulator moments) const {
    const Real divisor = static_cast<Real>(moments.count) - correction;
    const Real variance = moments.squares / (divisor > 0 ? divisor : Real(0));
    return static_cast<T>(root ? std::sqrt(variance) : variance);
  }
};
template <typename T>
struct VarianceAndMean : Variance<T> {
  using Second = T;
  using typename Variance<T>::Accumulator;
  __device__ std::pair<T, T> project(Accumulator moments) const {
    return {Variance<T>::project(moments), static_cast<T>(moments.mean)};
  }
};

void std_var(at::TensorIterator& iter, double correction, bool take_sqrt) {
  MUSA_DISPATCH(iter.dtype(iter.noutputs()), "std or var", (MUSA_FLOATING), {
    if (iter.noutputs() == 1) {
      Variance<scalar_t> op;
      op.correction = static_cast<op_t>(correction);
      op.root = take_sqrt;
      reduce(iter, op);
    } else {
      VarianceAndMean<scalar_t> op;
      op.correction = static_cast<op_t>(correction);
      op.root = take_sqrt;
      reduce(iter, op);
    }
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(norm_stub, &musa_ops_ported::norm)
REGISTER_PRIVATEUSE1_DISPATCH(powsum_stub, &musa_ops_ported::powsum)
REGISTER_PRIVATEUSE1_DISPATCH(and_stub, &musa_ops_ported::truth<true>)
REGISTER_PRIVATEUSE1_DISPATCH(or_stub, &musa_ops_ported::truth<false>)
REGISTER_PRIVATEUSE1_DISPATCH(std_var_stub, &musa_ops_ported::std_var)
} // namespace at::native
