// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A = L D L^T or L D L^H with the pivoting of Bunch and Kaufman, in LAPACK's form: L below the diagonal, D in blocks of
// one or two rows, and pivots counted from 1, negative for a block of two. One block of threads decomposes a matrix, and
// one thread solves for a right-hand side.
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "engines/for_each.muh"
#include "engines/matrices.muh"
#include "kernels/BunchKaufman.h"

namespace musa_ops_ported {
namespace {

template <typename T>
__device__ void swap(T& x, T& y) {
  const T before = x;
  x = y;
  y = before;
}

// A symmetric or Hermitian matrix, whose lower triangle is stored.
template <typename Element>
struct SymmetricMatrix {
  using T = std::remove_const_t<Element>;
  Matrix<Element> at;
  int64_t size;
  bool hermitian;

  __device__ T mirrored(const T& x) const { return conjugate_if(x, hermitian); }
  __device__ Real<T> magnitude(int64_t i, int64_t j) const { return pivot_size<T>(at(i, j)); }
  __device__ void make_real(int64_t i) const {
    if (hermitian) {
      at(i, i) = T(real_part(at(i, i)));
    }
  }
};

// The inverse of a block of two rows of D, [[p, mirrored(e)], [e, q]], divided by e so that it does not overflow.
template <typename T>
struct InverseOfTwo {
  T e, e_mirrored, p, q, scale;

  template <typename Element>
  __device__ InverseOfTwo(const SymmetricMatrix<Element>& a, int64_t k)
      : e(a.at(k + 1, k)),
        e_mirrored(a.mirrored(e)),
        p(a.at(k, k) / e_mirrored),
        q(a.at(k + 1, k + 1) / e),
        scale(T(1) / (p * q - T(1))) {}
  // (x, y) times the inverse.
  __device__ T first_of_row(const T& x, const T& y) const { return scale / e_mirrored * (q * x - y); }
  __device__ T second_of_row(const T& x, const T& y) const { return scale / e * (p * y - x); }
  // The inverse times (x, y).
  __device__ T first_of_column(const T& x, const T& y) const { return scale * (q * (x / e_mirrored) - y / e); }
  __device__ T second_of_column(const T& x, const T& y) const { return scale * (p * (y / e) - x / e_mirrored); }
};

struct Pivot {
  int64_t row; // exchanged with the last row of the block of D
  bool two; // rows in the block
  bool singular;
};

template <typename T>
__device__ Pivot pivot_of(const SymmetricMatrix<T>& a, int64_t k) {
  const Real<T> alpha = static_cast<Real<T>>(0.6403882032022076); // (1 + sqrt(17)) / 8
  const auto on_diagonal = [&](int64_t i) { return a.hermitian ? std::abs(real_part(a.at(i, i))) : a.magnitude(i, i); };
  const Real<T> diagonal = on_diagonal(k);
  int64_t largest = k;
  Real<T> in_column(0), in_row(0);
  for (int64_t i = k + 1; i < a.size; ++i) {
    if (a.magnitude(i, k) > in_column) {
      in_column = a.magnitude(i, k);
      largest = i;
    }
  }
  if (diagonal != diagonal || (diagonal == Real<T>(0) && in_column == Real<T>(0))) {
    return {k, false, true};
  }
  if (diagonal >= alpha * in_column) {
    return {k, false, false};
  }
  for (int64_t j = k; j < largest; ++j) {
    in_row = std::max(in_row, a.magnitude(largest, j));
  }
  for (int64_t i = largest + 1; i < a.size; ++i) {
    in_row = std::max(in_row, a.magnitude(i, largest));
  }
  if (diagonal >= alpha * in_column * (in_column / in_row)) {
    return {k, false, false};
  }
  return {largest, on_diagonal(largest) < alpha * in_row, false};
}

// Exchanges rows and columns `first` < `second` of the part of the matrix that begins at k.
template <typename T>
__device__ void exchange(const SymmetricMatrix<T>& a, int64_t k, int64_t first, int64_t second) {
  for (int64_t i = second + 1 + threadIdx.x; i < a.size; i += blockDim.x) {
    swap(a.at(i, first), a.at(i, second));
  }
  for (int64_t i = first + 1 + threadIdx.x; i < second; i += blockDim.x) {
    const T below = a.at(i, first);
    a.at(i, first) = a.mirrored(a.at(second, i));
    a.at(second, i) = a.mirrored(below);
  }
  if (threadIdx.x == 0) {
    a.at(second, first) = a.mirrored(a.at(second, first));
    swap(a.at(first, first), a.at(second, second));
    if (first != k) {
      swap(a.at(first, k), a.at(second, k));
    }
    a.make_real(first);
    a.make_real(second);
  }
}

template <typename T>
__device__ void eliminate_one(const SymmetricMatrix<T>& a, int64_t k) {
  const T reciprocal = T(1) / a.at(k, k);
  for (int64_t j = k + 1 + threadIdx.x; j < a.size; j += blockDim.x) {
    const T factor = a.mirrored(a.at(j, k)) * reciprocal;
    for (int64_t i = j; i < a.size; ++i) {
      a.at(i, j) -= a.at(i, k) * factor;
    }
    a.make_real(j);
  }
  __syncthreads();
  for (int64_t i = k + 1 + threadIdx.x; i < a.size; i += blockDim.x) {
    a.at(i, k) *= reciprocal;
  }
}

template <typename T>
__device__ void eliminate_two(const SymmetricMatrix<T>& a, int64_t k) {
  const InverseOfTwo<T> inverse(a, k);
  for (int64_t j = k + 2 + threadIdx.x; j < a.size; j += blockDim.x) {
    const T x = a.at(j, k), y = a.at(j, k + 1);
    const T first = a.mirrored(inverse.first_of_row(x, y)), second = a.mirrored(inverse.second_of_row(x, y));
    for (int64_t i = j; i < a.size; ++i) {
      a.at(i, j) -= a.at(i, k) * first + a.at(i, k + 1) * second;
    }
    a.make_real(j);
  }
  __syncthreads();
  for (int64_t i = k + 2 + threadIdx.x; i < a.size; i += blockDim.x) {
    const T x = a.at(i, k), y = a.at(i, k + 1);
    a.at(i, k) = inverse.first_of_row(x, y);
    a.at(i, k + 1) = inverse.second_of_row(x, y);
  }
}

template <typename T>
void factor_ldl(const at::Tensor& ld, const at::Tensor& pivots, const at::Tensor& infos, bool hermitian) {
  const Layout<T> matrices(ld);
  int32_t* const all_pivots = pivots.mutable_data_ptr<int32_t>();
  int32_t* const all_infos = infos.mutable_data_ptr<int32_t>();
  const int64_t size = ld.size(-1);
  each_matrix(
      batch_of(ld), size,
      [=] __device__(int64_t number, const auto& offsets, auto& room) {
        const SymmetricMatrix<T> a{matrices.at(offsets[0]), size, hermitian};
        int32_t* const pivots_here = all_pivots + number * size;
        int32_t info = 0;
        for (int64_t k = 0; k < size;) {
          if (threadIdx.x == 0) {
            const Pivot pivot = pivot_of(a, k);
            room.number = pivot.row;
            room.places[0] = pivot.two;
            room.places[1] = pivot.singular;
          }
          __syncthreads();
          const Pivot pivot{room.number, room.places[0] != 0, room.places[1] != 0};
          __syncthreads();
          const int64_t last = pivot.two ? k + 1 : k; // of the block of D
          if (threadIdx.x == 0) {
            pivots_here[k] = pivots_here[last] = static_cast<int32_t>(pivot.two ? -(pivot.row + 1) : pivot.row + 1);
            a.make_real(k);
            a.make_real(last);
          }
          if (pivot.singular) {
            info = info == 0 ? static_cast<int32_t>(k + 1) : info;
            ++k;
            continue;
          }
          __syncthreads();
          if (pivot.row != last) {
            exchange(a, k, last, pivot.row);
            __syncthreads();
          }
          pivot.two ? eliminate_two(a, k) : eliminate_one(a, k);
          __syncthreads();
          k = last + 1;
        }
        if (threadIdx.x == 0) {
          all_infos[number] = info;
        }
      },
      batch_steps(ld));
}
void ldl_factor(const at::Tensor& ld, const at::Tensor& pivots, const at::Tensor& infos, bool upper, bool hermitian) {
  TORCH_INTERNAL_ASSERT(!upper, "torch's operators decompose the lower triangle");
  MUSA_DISPATCH(
      ld.scalar_type(), "ldl_factor", (MUSA_LAPACK_TYPES), { factor_ldl<scalar_t>(ld, pivots, infos, hermitian); });
}

template <typename T>
void solve_ldl(const at::Tensor& ld, const at::Tensor& pivots, const at::Tensor& b, bool hermitian) {
  const at::Tensor exchanges = pivots.to(at::kInt);
  const int64_t pivot_step = exchanges.stride(-1), step = b.stride(-2), size = ld.size(-1);
  each_right_hand_side<T>(
      ld, exchanges, b, [=] __device__(const Matrix<const T>& factors, const int32_t* pivots_here, T* column) {
        const SymmetricMatrix<const T> a{factors, size, hermitian};
        const auto x = [&](int64_t i) -> T& { return column[i * step]; };
        const auto pivot = [&](int64_t i) { return static_cast<int64_t>(pivots_here[i * pivot_step]); };
        for (int64_t k = 0; k < size;) {
          const bool two = pivot(k) < 0;
          const int64_t last = two ? k + 1 : k;
          swap(x(last), x((two ? -pivot(k) : pivot(k)) - 1));
          for (int64_t j = k; j <= last; ++j) {
            for (int64_t i = last + 1; i < size; ++i) {
              x(i) -= a.at(i, j) * x(j);
            }
          }
          if (two) {
            const InverseOfTwo<T> inverse(a, k);
            const T first = x(k), second = x(k + 1);
            x(k) = inverse.first_of_column(first, second);
            x(k + 1) = inverse.second_of_column(first, second);
          } else {
            x(k) /= a.at(k, k);
          }
          k = last + 1;
        }
        for (int64_t last = size - 1; last >= 0;) {
          const bool two = pivot(last) < 0;
          const int64_t k = two ? last - 1 : last;
          for (int64_t j = k; j <= last; ++j) {
            for (int64_t i = last + 1; i < size; ++i) {
              x(j) -= a.mirrored(a.at(i, j)) * x(i);
            }
          }
          swap(x(last), x((two ? -pivot(last) : pivot(last)) - 1));
          last = k - 1;
        }
      });
}
void ldl_solve(const at::Tensor& ld, const at::Tensor& pivots, const at::Tensor& result, bool upper, bool hermitian) {
  TORCH_INTERNAL_ASSERT(!upper, "torch's operators decompose the lower triangle");
  MUSA_DISPATCH(
      ld.scalar_type(), "ldl_solve", (MUSA_LAPACK_TYPES), { solve_ldl<scalar_t>(ld, pivots, result, hermitian); });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(ldl_factor_stub, &musa_ops_ported::ldl_factor)
REGISTER_PRIVATEUSE1_DISPATCH(ldl_solve_stub, &musa_ops_ported::ldl_solve)
} // namespace at::native
