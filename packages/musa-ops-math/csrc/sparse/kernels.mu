// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "sparse/kernels.h"

#include <musa_bf16.h>
#include <musa_fp16.h>

#include <algorithm>
#include <type_traits>

namespace musa_ops_math::sparse {
namespace {

constexpr int kLanes = 32; // threads that share a row or an element; independent of the size of a warp
constexpr int kGroups = 8; // rows or elements of a block
constexpr int64_t kMostBlocks = 1 << 16;

template <typename Real>
struct Complex {
  Real x, y;
};

// The type in which numbers of a type are summed.
template <typename T>
struct Sum {
  using Type = T;
};
template <>
struct Sum<__half> {
  using Type = float;
};
template <>
struct Sum<__mt_bfloat16> {
  using Type = float;
};

__device__ inline float wide(__half value) { return __half2float(value); }
__device__ inline float wide(__mt_bfloat16 value) { return __bfloat162float(value); }
template <typename T>
__device__ inline T wide(T value) {
  return value;
}

__device__ inline void store(__half* place, float value) { *place = __float2half(value); }
__device__ inline void store(__mt_bfloat16* place, float value) { *place = __float2bfloat16(value); }
template <typename T>
__device__ inline void store(T* place, T value) {
  *place = value;
}

template <typename T>
__device__ inline T zero() {
  return T(0);
}
template <>
__device__ inline Complex<float> zero() {
  return {0.0f, 0.0f};
}
template <>
__device__ inline Complex<double> zero() {
  return {0.0, 0.0};
}

template <typename T>
__device__ inline T times(T a, T b) {
  return a * b;
}
template <typename Real>
__device__ inline Complex<Real> times(Complex<Real> a, Complex<Real> b) {
  return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
}
template <typename T>
__device__ inline T plus(T a, T b) {
  return a + b;
}
template <typename Real>
__device__ inline Complex<Real> plus(Complex<Real> a, Complex<Real> b) {
  return {a.x + b.x, a.y + b.y};
}

// The matrix with the types of its elements and indices.
template <typename T, typename Index>
struct TypedRows {
  const Index* pointers;
  const Index* columns;
  const T* values;
  int64_t count;
};

template <typename T>
struct TypedDense {
  T* data;
  int64_t row_stride, column_stride;

  __device__ T* at(int64_t row, int64_t column) const { return data + row * row_stride + column * column_stride; }
};

template <typename T, typename A>
__device__ inline void finish(T* place, A sum, A alpha, A beta, bool adds) {
  A result = times(alpha, sum);
  if (adds) {
    result = plus(result, times(beta, A(wide(*place))));
  }
  store(place, result);
}

// Adjacent threads compute adjacent columns, each thread `count` of them, so that an element of `a` is read once for these.
template <int count, typename T, typename A, typename Index>
__global__ void multiply_columns(
    TypedRows<T, Index> a, TypedDense<const T> b, TypedDense<T> c, int64_t columns, A alpha, A beta, bool adds) {
  constexpr int kColumns = count * kLanes;
  const int64_t tiles = (columns + kColumns - 1) / kColumns;
  const int64_t blocks = (a.count + kGroups - 1) / kGroups * tiles;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t row = block / tiles * kGroups + threadIdx.y;
    const int64_t first = block % tiles * kColumns + threadIdx.x;
    if (row >= a.count) {
      continue;
    }
    A sums[count];
#pragma unroll
    for (A& sum : sums) {
      sum = zero<A>();
    }
    for (int64_t k = a.pointers[row]; k < a.pointers[row + 1]; ++k) {
      const A value = A(wide(a.values[k]));
      const int64_t met = a.columns[k];
#pragma unroll
      for (int i = 0; i < count; ++i) {
        if (const int64_t column = first + i * kLanes; column < columns) {
          sums[i] = plus(sums[i], times(value, A(wide(*b.at(met, column)))));
        }
      }
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (const int64_t column = first + i * kLanes; column < columns) {
        finish(c.at(row, column), sums[i], alpha, beta, adds);
      }
    }
  }
}

// Sums the values of the threads of a group; the first one gets the result. All threads of the block call it.
template <typename A>
__device__ inline A sum_of_group(A value) {
  __shared__ A partial[kGroups][kLanes];
  partial[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    if (threadIdx.x < static_cast<unsigned>(distance)) {
      partial[threadIdx.y][threadIdx.x] =
          plus(partial[threadIdx.y][threadIdx.x], partial[threadIdx.y][threadIdx.x + distance]);
    }
    __syncthreads();
  }
  const A sum = partial[threadIdx.y][0];
  __syncthreads(); // before the next call writes
  return sum;
}

// The threads of a group share a row, for few columns.
template <typename T, typename A, typename Index>
__global__ void multiply_rows(
    TypedRows<T, Index> a, TypedDense<const T> b, TypedDense<T> c, int64_t columns, A alpha, A beta, bool adds) {
  const int64_t blocks = (a.count + kGroups - 1) / kGroups;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t row = block * kGroups + threadIdx.y;
    const bool inside = row < a.count;
    for (int64_t column = 0; column < columns; ++column) {
      A sum = zero<A>();
      if (inside) {
        for (int64_t k = a.pointers[row] + threadIdx.x; k < a.pointers[row + 1]; k += kLanes) {
          sum = plus(sum, times(A(wide(a.values[k])), A(wide(*b.at(a.columns[k], column)))));
        }
      }
      sum = sum_of_group(sum);
      if (inside && threadIdx.x == 0) {
        finish(c.at(row, column), sum, alpha, beta, adds);
      }
    }
  }
}

template <typename T, typename A, typename Index>
__global__ void sampled_product(
    const Index* rows, const Index* columns, int64_t count, TypedDense<const T> a, TypedDense<const T> b, int64_t inner,
    const T* values, T* to, A alpha, A beta, bool adds) {
  const int64_t blocks = (count + kGroups - 1) / kGroups;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t k = block * kGroups + threadIdx.y;
    const bool inside = k < count;
    A sum = zero<A>();
    if (inside) {
      for (int64_t i = threadIdx.x; i < inner; i += kLanes) {
        sum = plus(sum, times(A(wide(*a.at(rows[k], i))), A(wide(*b.at(i, columns[k])))));
      }
    }
    sum = sum_of_group(sum);
    if (inside && threadIdx.x == 0) {
      A result = times(alpha, sum);
      if (adds) {
        result = plus(result, times(beta, A(wide(values[k]))));
      }
      store(to + k, result);
    }
  }
}

template <typename A>
A number(Number value) {
  return static_cast<A>(value.real);
}
template <>
Complex<float> number(Number value) {
  return {static_cast<float>(value.real), static_cast<float>(value.imaginary)};
}
template <>
Complex<double> number(Number value) {
  return {value.real, value.imaginary};
}

bool is_zero(Number value) { return value.real == 0 && value.imaginary == 0; }

unsigned grid_of(int64_t blocks) { return static_cast<unsigned>(std::min(std::max<int64_t>(blocks, 1), kMostBlocks)); }

template <typename T, typename Index>
void product(
    const Rows& a, const Dense& b, const Dense& c, int64_t columns, Number alpha, Number beta, musaStream_t stream) {
  using A = typename Sum<T>::Type;
  const TypedRows<T, Index> rows{
      static_cast<const Index*>(a.pointers), static_cast<const Index*>(a.columns), static_cast<const T*>(a.values),
      a.count};
  const TypedDense<const T> from{static_cast<const T*>(b.data), b.row_stride, b.column_stride};
  const TypedDense<T> to{static_cast<T*>(c.data), c.row_stride, c.column_stride};
  const dim3 block(kLanes, kGroups);
  const int64_t row_blocks = (a.count + kGroups - 1) / kGroups;
  // A group has the work of a row, so that threads share long rows if there are few columns.
  if (columns <= 4 && a.elements >= 8 * a.count) {
    multiply_rows<T, A, Index><<<grid_of(row_blocks), block, 0, stream>>>(
        rows, from, to, columns, number<A>(alpha), number<A>(beta), !is_zero(beta));
    return;
  }
  const auto multiply = [&]<int count>(std::integral_constant<int, count>) {
    const int64_t tiles = (columns + count * kLanes - 1) / (count * kLanes);
    multiply_columns<count, T, A, Index><<<grid_of(row_blocks * tiles), block, 0, stream>>>(
        rows, from, to, columns, number<A>(alpha), number<A>(beta), !is_zero(beta));
  };
  if (columns > 2 * kLanes) {
    multiply(std::integral_constant<int, 4>());
  } else {
    multiply(std::integral_constant<int, 1>());
  }
}

template <typename T, typename Index>
void sampled(
    const void* rows, const void* columns, int64_t count, const Dense& a, const Dense& b, int64_t inner,
    const void* values, void* to, Number alpha, Number beta, musaStream_t stream) {
  using A = typename Sum<T>::Type;
  sampled_product<T, A, Index><<<grid_of((count + kGroups - 1) / kGroups), dim3(kLanes, kGroups), 0, stream>>>(
      static_cast<const Index*>(rows), static_cast<const Index*>(columns), count,
      TypedDense<const T>{static_cast<const T*>(a.data), a.row_stride, a.column_stride},
      TypedDense<const T>{static_cast<const T*>(b.data), b.row_stride, b.column_stride}, inner,
      static_cast<const T*>(values), static_cast<T*>(to), number<A>(alpha), number<A>(beta), !is_zero(beta));
}

// Calls body.template operator()<T>() with the type.
template <typename Body>
void with_type(Dtype dtype, Body&& body) {
  switch (dtype) {
    case Dtype::kFloat16: return body.template operator()<__half>();
    case Dtype::kBFloat16: return body.template operator()<__mt_bfloat16>();
    case Dtype::kFloat32: return body.template operator()<float>();
    case Dtype::kFloat64: return body.template operator()<double>();
    case Dtype::kComplex64: return body.template operator()<Complex<float>>();
    case Dtype::kComplex128: return body.template operator()<Complex<double>>();
  }
}

} // namespace

void launch_product(
    const Rows& a, const Dense& b, const Dense& c, int64_t columns, Number alpha, Number beta, Dtype dtype,
    musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (a.wide_indices) {
      product<T, int64_t>(a, b, c, columns, alpha, beta, stream);
    } else {
      product<T, int32_t>(a, b, c, columns, alpha, beta, stream);
    }
  });
}

void launch_sampled_product(
    const void* rows, const void* columns, bool wide_indices, int64_t count, const Dense& a, const Dense& b,
    int64_t inner, const void* values, void* to, Number alpha, Number beta, Dtype dtype, musaStream_t stream) {
  with_type(dtype, [&]<typename T>() {
    if (wide_indices) {
      sampled<T, int64_t>(rows, columns, count, a, b, inner, values, to, alpha, beta, stream);
    } else {
      sampled<T, int32_t>(rows, columns, count, a, b, inner, values, to, alpha, beta, stream);
    }
  });
}

} // namespace musa_ops_math::sparse
