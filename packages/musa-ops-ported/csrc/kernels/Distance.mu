// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// p-norm distances between points: all pairs of two sets, or all pairs within one set.
#include <ATen/core/Tensor.h>
#include <ATen/native/Distance.h>

#include <cmath>
#include <limits>

#include "engines/dispatch.h"
#include "engines/for_each.muh"

namespace musa_ops_ported {
namespace {

enum class Norm { Zero, One, Two, Any, Infinite };

// Runs the block with the constant `norm`. A macro, because nvcc does not allow kernel lambdas inside generic
// lambdas.
#define MUSA_NORM_CASE(NORM, ...) \
  { \
    constexpr Norm norm = Norm::NORM; \
    [&] __VA_ARGS__(); \
  }
#define MUSA_WITH_NORM(P, ...) \
  [&](const double order) { \
    if (order == 0) \
      MUSA_NORM_CASE(Zero, __VA_ARGS__) \
    else if (order == 1) \
      MUSA_NORM_CASE(One, __VA_ARGS__) \
    else if (order == 2) \
      MUSA_NORM_CASE(Two, __VA_ARGS__) \
    else if (std::isinf(order)) \
      MUSA_NORM_CASE(Infinite, __VA_ARGS__) \
    else \
      MUSA_NORM_CASE(Any, __VA_ARGS__) \
  }(P)

template <Norm norm, typename T>
__device__ C10_ALWAYS_INLINE T distance(const T* a, const T* b, int64_t size, T p) {
  T sum = 0;
  for (int64_t k = 0; k < size; ++k) {
    const T d = std::abs(a[k] - b[k]);
    if constexpr (norm == Norm::Zero) {
      sum += d != 0 ? T(1) : T(0);
    } else if constexpr (norm == Norm::One) {
      sum += d;
    } else if constexpr (norm == Norm::Two) {
      sum += d * d;
    } else if constexpr (norm == Norm::Infinite) {
      sum = d > sum || d != d ? d : sum;
    } else {
      sum += std::pow(d, p);
    }
  }
  if constexpr (norm == Norm::Two) {
    return std::sqrt(sum);
  } else if constexpr (norm == Norm::Any) {
    return std::pow(sum, T(1) / p);
  } else {
    return sum;
  }
}

// The derivative of a distance with respect to one coordinate, times the gradient; 0 where it is undefined. d is the
// difference of the two points in that coordinate.
template <Norm norm, typename T>
__device__ C10_ALWAYS_INLINE T slope(T d, T gradient, T length, T p) {
  const T sign = static_cast<T>((d > 0) - (d < 0));
  if constexpr (norm == Norm::Zero) {
    return 0;
  } else if constexpr (norm == Norm::One) {
    return gradient * sign;
  } else if constexpr (norm == Norm::Two) {
    return length == 0 ? T(0) : gradient * d / length;
  } else if constexpr (norm == Norm::Infinite) {
    return std::abs(d) == length ? gradient * sign : T(0);
  } else {
    if (length == 0 || d == 0) {
      return 0;
    }
    return gradient * sign * std::pow(std::abs(d), p - 1) / std::pow(length, p - 1);
  }
}

// x1 has `rows` points and x2 `columns` points per batch.
void all_pairs(at::Tensor& result, const at::Tensor& x1, const at::Tensor& x2, const double p) {
  const int64_t rows = x1.size(-2), columns = x2.size(-2), size = x1.size(-1);
  const at::Tensor first = x1.contiguous(), second = x2.contiguous();
  AT_DISPATCH_FLOATING_TYPES(result.scalar_type(), "cdist", [&] {
    const scalar_t* const a = first.const_data_ptr<scalar_t>();
    const scalar_t* const b = second.const_data_ptr<scalar_t>();
    scalar_t* const to = result.mutable_data_ptr<scalar_t>();
    const scalar_t power = static_cast<scalar_t>(p);
    MUSA_WITH_NORM(p, {
      for_each(result.numel(), [=] __device__(int64_t i) {
        const int64_t row = i / columns; // row index over all batches
        const int64_t column = i - row * columns + row / rows * columns;
        to[i] = distance<norm>(a + row * size, b + column * size, size, power);
      });
    });
  });
}

void all_pairs_gradient(
    at::Tensor& result, const at::Tensor& gradient, const at::Tensor& x1, const at::Tensor& x2, const double p,
    const at::Tensor& distances) {
  const int64_t rows = x1.size(-2), columns = x2.size(-2), size = x1.size(-1);
  const at::Tensor first = x1.contiguous(), second = x2.contiguous(), given = gradient.contiguous();
  const at::Tensor lengths = distances.contiguous();
  AT_DISPATCH_FLOATING_TYPES(result.scalar_type(), "cdist_backward", [&] {
    const scalar_t* const a = first.const_data_ptr<scalar_t>();
    const scalar_t* const b = second.const_data_ptr<scalar_t>();
    const scalar_t* const g = given.const_data_ptr<scalar_t>();
    const scalar_t* const length = lengths.const_data_ptr<scalar_t>();
    scalar_t* const to = result.mutable_data_ptr<scalar_t>();
    const scalar_t power = static_cast<scalar_t>(p);
    MUSA_WITH_NORM(p, {
      for_each(result.numel(), [=] __device__(int64_t i) {
        const int64_t row = i / size;
        const scalar_t* const others = b + row / rows * columns * size + (i - row * size);
        scalar_t sum = 0;
        for (int64_t k = 0; k < columns; ++k) {
          const int64_t pair = row * columns + k;
          sum += slope<norm>(a[i] - others[k * size], g[pair], length[pair], power);
        }
        to[i] = sum;
      });
    });
  });
}

// The index of the pair (i, j), i < j, among the pairs of n points.
__device__ C10_ALWAYS_INLINE int64_t pair_number(int64_t i, int64_t j, int64_t n) {
  return i * n - i * (i + 1) / 2 + j - i - 1;
}

void own_pairs(at::Tensor& result, const at::Tensor& self, const double p) {
  const int64_t n = self.size(0), size = self.size(1);
  const at::Tensor points = self.contiguous();
  AT_DISPATCH_FLOATING_TYPES(result.scalar_type(), "pdist", [&] {
    const scalar_t* const x = points.const_data_ptr<scalar_t>();
    scalar_t* const to = result.mutable_data_ptr<scalar_t>();
    const scalar_t power = static_cast<scalar_t>(p);
    MUSA_WITH_NORM(p, {
      for_each(n * n, [=] __device__(int64_t at) {
        const int64_t i = at / n, j = at - i * n;
        if (i < j) {
          to[pair_number(i, j, n)] = distance<norm>(x + i * size, x + j * size, size, power);
        }
      });
    });
  });
}

void own_pairs_gradient(
    at::Tensor& result, const at::Tensor& gradient, const at::Tensor& self, const double p,
    const at::Tensor& distances) {
  const int64_t n = self.size(0), size = self.size(1);
  const at::Tensor points = self.contiguous(), given = gradient.contiguous(), lengths = distances.contiguous();
  AT_DISPATCH_FLOATING_TYPES(result.scalar_type(), "pdist_backward", [&] {
    const scalar_t* const x = points.const_data_ptr<scalar_t>();
    const scalar_t* const g = given.const_data_ptr<scalar_t>();
    const scalar_t* const length = lengths.const_data_ptr<scalar_t>();
    scalar_t* const to = result.mutable_data_ptr<scalar_t>();
    const scalar_t power = static_cast<scalar_t>(p);
    MUSA_WITH_NORM(p, {
      for_each(n * size, [=] __device__(int64_t at) {
        const int64_t i = at / size, k = at - i * size;
        scalar_t sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          if (j != i) {
            const int64_t pair = i < j ? pair_number(i, j, n) : pair_number(j, i, n);
            sum += slope<norm>(x[at] - x[j * size + k], g[pair], length[pair], power);
          }
        }
        to[at] = sum;
      });
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cdist_stub, &musa_ops_ported::all_pairs)
REGISTER_PRIVATEUSE1_DISPATCH(cdist_backward_stub, &musa_ops_ported::all_pairs_gradient)
REGISTER_PRIVATEUSE1_DISPATCH(pdist_forward_stub, &musa_ops_ported::own_pairs)
REGISTER_PRIVATEUSE1_DISPATCH(pdist_backward_stub, &musa_ops_ported::own_pairs_gradient)
} // namespace at::native
