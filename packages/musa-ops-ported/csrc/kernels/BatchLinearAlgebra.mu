// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// LU and Cholesky decompositions, and solutions with triangles. A large matrix is divided in halves, which products of
// matrices connect; one block decomposes a part of few columns, or solves with a triangle of few rows.
// Conventions follow LAPACK: pivots are counted from 1, `info` marks a singular matrix. Real LU decompositions of a part
// round exactly as LAPACK does (fused operations in the same order, reciprocals of pivots), because for a rank-deficient
// matrix rounding errors decide the next pivot.
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/TransposeType.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/matrices.muh"
#include "kernels/BatchLinearAlgebra.h"

namespace musa_ops_ported {
namespace {

// torch's CPU LAPACK has separate code for matrices up to this size, whose divisions round differently.
constexpr int64_t kUnrolledSize = 4;
// Columns of a matrix that one block decomposes.
constexpr int64_t kLeaf = 64;
// Columns of a part of an LU decomposition of more rows, which one block decomposes.
constexpr int64_t kPanel = 32;
// Rows of a triangle with which one block solves.
constexpr int64_t kTriangle = 128;
constexpr int kPanelThreads = 1024;
constexpr int kLoads = 4; // elements of a row that a thread loads at once
constexpr int kCholeskyThreads = 512;

// Returns x - y * z. Of real numbers it is rounded once; complex64 is computed in double precision.
template <typename T>
__device__ C10_ALWAYS_INLINE T less_product(const T& x, const T& y, const T& z) {
  if constexpr (c10::is_complex<T>::value) {
    return static_cast<T>(static_cast<Wide<T>>(x) - static_cast<Wide<T>>(y) * static_cast<Wide<T>>(z));
  } else {
    return std::fma(-y, z, x);
  }
}
template <typename T>
__device__ C10_ALWAYS_INLINE T divided(const T& x, const T& divisor) {
  if constexpr (c10::is_complex<T>::value) {
    return static_cast<T>(static_cast<Wide<T>>(x) / static_cast<Wide<T>>(divisor));
  } else {
    return x / divisor;
  }
}
// Multiplies real numbers by the reciprocal unless the reciprocal would overflow.
template <typename T>
__device__ C10_ALWAYS_INLINE T divided_by_reciprocal(const T& x, const T& divisor) {
  if constexpr (!c10::is_complex<T>::value) {
    if (std::abs(divisor) >= std::numeric_limits<T>::min()) {
      return x * (T(1) / divisor);
    }
  }
  return divided(x, divisor);
}

// ---- triangles ---------------------------------------------------------------------------------------------------------

constexpr int kSides = 4; // right-hand sides of a block, which share the loads of coefficients

// A triangle of a matrix as the coefficients of a linear system.
template <typename T>
struct Triangle {
  Matrix<const T> coefficients;
  int size;
  bool upper, unit, conjugate;

  // The row that is solved after `order` others.
  __device__ int row(int order) const { return upper ? size - 1 - order : order; }
  __device__ T at(int order, int other) const {
    return conjugate_if(static_cast<T>(coefficients(row(order), row(other))), conjugate);
  }
  __device__ T solved(const T& x, int order) const { return unit ? x : divided_by_reciprocal(x, at(order, order)); }
};

// Solves for kSides right-hand sides in place, one row in each thread. Products with solved rows are subtracted in the
// order of BLAS, which the rounding depends on.
template <typename T>
__device__ void solve(const Triangle<T>& triangle, const Matrix<T>& b, int sides, T (*room)[kSides]) {
  const int own = threadIdx.x;
  const bool has_row = own < triangle.size;
  const int row = triangle.row(own);
  T x[kSides];
  for (int side = 0; side < kSides; ++side) {
    x[side] = has_row && side < sides ? b(row, side) : T(0);
  }
  T next = has_row && own > 0 ? triangle.at(own, 0) : T(0); // loaded before the barrier at which it is needed
  for (int step = 0; step < triangle.size; ++step) {
    T* const known = room[step % 2]; // the threads may still read the other one
    if (own == step) {
      for (int side = 0; side < kSides; ++side) {
        x[side] = known[side] = triangle.solved(x[side], own);
      }
    }
    const T coefficient = next;
    if (has_row && own > step + 1) {
      next = triangle.at(own, step + 1);
    }
    __syncthreads();
    for (int side = 0; has_row && own > step && side < kSides; ++side) {
      x[side] = less_product(x[side], coefficient, known[side]);
    }
  }
  for (int side = 0; has_row && side < sides; ++side) {
    b(row, side) = x[side];
  }
}

template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kTriangle) solve_kernel(
    const Layout<const T> triangles, const int64_t triangle_step, const int size, const bool upper, const bool unit,
    const bool conjugate, const Layout<T> b, const int64_t b_step, const int64_t sides, const int64_t blocks) {
  alignas(16) __shared__ unsigned char room[2 * kSides * sizeof(T)];
  const int64_t groups = (sides + kSides - 1) / kSides;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t number = block / groups, first = block % groups * kSides;
    const Triangle<T> triangle{triangles.at(number * triangle_step), size, upper, unit, conjugate};
    Matrix<T> of_b = b.at(number * b_step);
    of_b.data += first * of_b.column_step;
    const int count = static_cast<int>(sides - first < kSides ? sides - first : kSides);
    solve(triangle, of_b, count, reinterpret_cast<T(*)[kSides]>(room));
    __syncthreads();
  }
}

template <typename T>
void solve_leaf(const at::Tensor& triangles, const at::Tensor& b, bool upper, bool unit) {
  const int size = static_cast<int>(triangles.size(1));
  const int64_t sides = b.size(2), blocks = b.size(0) * ((sides + kSides - 1) / kSides);
  const int threads = (size + 31) / 32 * 32;
  solve_kernel<T><<<std::min<int64_t>(blocks, 1 << 16), threads, 0, c10::musa::getCurrentMUSAStream()>>>(
      Layout<const T>(triangles), triangles.stride(0), size, upper, unit, triangles.is_conj(), Layout<T>(b),
      b.stride(0), sides, blocks);
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

// A multiple of a part's size, about half of `size`.
int64_t half_of(int64_t size, int64_t part) { return (size / 2 + part - 1) / part * part; }

// Solves T X = B in place of B. Both have one batch dimension and any strides; T may be lazily conjugated.
void solve_in_place(const at::Tensor& triangles, const at::Tensor& b, bool upper, bool unit) {
  const int64_t size = triangles.size(1);
  if (size <= kTriangle) {
    MUSA_DISPATCH(triangles.scalar_type(), "triangular_solve", (MUSA_LAPACK_TYPES), {
      solve_leaf<scalar_t>(triangles, b, upper, unit);
    });
    return;
  }
  const int64_t half = half_of(size, kTriangle), rest = size - half;
  const auto part = [&](bool second_row, bool second_column) {
    return triangles.narrow(1, second_row ? half : 0, second_row ? rest : half)
        .narrow(2, second_column ? half : 0, second_column ? rest : half);
  };
  // The part that is solved first depends on no other.
  const at::Tensor first = b.narrow(1, upper ? half : 0, upper ? rest : half);
  const at::Tensor second = b.narrow(1, upper ? 0 : half, upper ? half : rest);
  solve_in_place(part(upper, upper), first, upper, unit);
  subtract_product(second, part(!upper, upper), first);
  solve_in_place(part(!upper, !upper), second, upper, unit);
}

// As in BLAS, both tensors hold column-major matrices regardless of their strides: for a row-major `a` the caller
// passes the arguments for its transpose. The caller has already taken account of lazy conjugation and negation: the
// memory counts.
void triangular_solve(
    const at::Tensor& a, const at::Tensor& b, bool left, bool upper, at::native::TransposeType trans,
    bool unitriangular) {
  if (b.numel() == 0) {
    return;
  }
  const OwnPrecision guard;
  const auto columns = [](at::Tensor matrices) {
    if (matrices.is_conj()) {
      matrices = matrices.conj();
    }
    if (matrices.is_neg()) {
      matrices = matrices._neg_view();
    }
    const int64_t rows = matrices.size(-2), size = rows * matrices.size(-1);
    return matrices.as_strided({c10::multiply_integers(batch_of(matrices)), rows, matrices.size(-1)}, {size, 1, rows});
  };
  const bool transposed = (trans != at::native::TransposeType::NoTranspose) == left;
  at::Tensor triangles = columns(a);
  if (trans == at::native::TransposeType::ConjTranspose) {
    triangles = triangles.conj();
  }
  // X op(A) = B is op(A)^T X^T = B^T.
  solve_in_place(
      transposed ? triangles.mT() : triangles, left ? columns(b) : columns(b).mT(), upper != transposed, unitriangular);
}

// ---- LU ------------------------------------------------------------------------------------------------------------------

// Decomposes matrices of few columns. Pivots count from their first row; `info` is set unless it is, and counts from
// `offset`. Each column is divided by its pivot, its products are subtracted from the columns behind it, and the next
// pivot is found in the same pass.
template <typename T>
void factor_lu_leaf(
    const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& infos, bool exchanges_rows, int64_t offset) {
  const Layout<T> matrices(lu);
  int32_t* const all_pivots = pivots.mutable_data_ptr<int32_t>();
  int32_t* const info = infos.mutable_data_ptr<int32_t>();
  const int64_t pivot_step = pivots.stride(0), rows = lu.size(1), columns = lu.size(2);
  const int64_t steps = std::min(rows, columns);
  each_matrix<kPanelThreads>(
      lu.sizes().slice(0, 1), std::max(rows, columns),
      [=] __device__(int64_t number, const auto& offsets, auto& room) {
        const Matrix<T> a = matrices.at(offsets[0]);
        double largest = -1;
        int64_t place = rows;
        const auto consider = [&](int64_t i, const T& value) {
          const double size = pivot_size(value);
          if (size > largest) {
            largest = size;
            place = i;
          }
        };
        for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
          consider(i, a(i, 0));
        }
        for (int64_t k = 0; k < steps; ++k) {
          int64_t pivot = k;
          if (exchanges_rows) {
            pivot = room.place_of_largest(largest, place);
            // NaN in the first place stays there, as in LAPACK.
            pivot = pivot == rows || pivot_size(a(k, k)) != pivot_size(a(k, k)) ? k : pivot;
          }
          if (threadIdx.x == 0) {
            all_pivots[number * pivot_step + k] = static_cast<int32_t>(pivot + 1);
            if (a(pivot, k) == T(0) && info[number] == 0) {
              info[number] = static_cast<int32_t>(offset + k + 1);
            }
          }
          __syncthreads();
          for (int64_t j = threadIdx.x; pivot != k && j < columns; j += blockDim.x) {
            const T upper = a(k, j);
            a(k, j) = a(pivot, j);
            a(pivot, j) = upper;
          }
          __syncthreads();
          const T divisor = a(k, k);
          const bool divides = rows == columns && rows <= kUnrolledSize && k + 2 == rows;
          largest = -1;
          place = rows;
          for (int64_t i = k + 1 + threadIdx.x; i < rows; i += blockDim.x) {
            T factor = a(i, k);
            if (divisor != T(0)) {
              factor = divides ? divided(factor, divisor) : divided_by_reciprocal(factor, divisor);
              a(i, k) = factor;
            }
            if (k + 1 < columns) {
              const T value = less_product(a(i, k + 1), factor, a(k, k + 1));
              a(i, k + 1) = value;
              consider(i, value);
            }
            for (int64_t j = k + 2; j < columns; j += kLoads) {
              // Several loads overlap; a store could change what the next one reads.
              T values[kLoads], above[kLoads];
              for (int64_t n = 0; n < kLoads; ++n) {
                const int64_t column = j + n < columns ? j + n : columns - 1;
                values[n] = a(i, column);
                above[n] = a(k, column);
              }
              for (int64_t n = 0; n < kLoads && j + n < columns; ++n) {
                a(i, j + n) = less_product(values[n], factor, above[n]);
              }
            }
          }
          __syncthreads();
        }
      },
      lu.strides().slice(0, 1));
}

// Exchanges rows as the pivots say, the last ones first if `backwards`.
void exchange_rows(const at::Tensor& matrices, const at::Tensor& pivots, bool backwards = false) {
  const int64_t rows = matrices.size(1), count = pivots.size(1);
  const int64_t pivots_step = pivots.stride(0), pivot_step = pivots.stride(1);
  const at::Tensor order = aten::empty({matrices.size(0), rows}, matrices.options().dtype(at::kLong));
  const int32_t* const all_pivots = pivots.const_data_ptr<int32_t>();
  int64_t* const all_places = order.mutable_data_ptr<int64_t>();
  each_matrix(matrices.sizes().slice(0, 1), rows, [=] __device__(int64_t number, const auto&, auto&) {
    int64_t* const places = all_places + number * rows;
    for (int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
      places[i] = i;
    }
    __syncthreads();
    for (int64_t n = 0; threadIdx.x == 0 && n < count; ++n) {
      const int64_t i = backwards ? count - 1 - n : n;
      const int64_t with = all_pivots[number * pivots_step + i * pivot_step] - 1;
      const int64_t above = places[i];
      places[i] = places[with];
      places[with] = above;
    }
  });
  const at::Tensor columns = matrices.mT(); // rows are adjacent in memory
  columns.copy_(columns.gather(2, order.unsqueeze(1).expand(columns.sizes())));
}

void factor_lu(
    const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& infos, bool exchanges_rows, int64_t offset) {
  const int64_t rows = lu.size(1), columns = lu.size(2), part = rows <= kLeaf ? kLeaf : kPanel;
  if (columns <= part) {
    MUSA_DISPATCH(lu.scalar_type(), "lu_factor", (MUSA_LAPACK_TYPES), {
      factor_lu_leaf<scalar_t>(lu, pivots, infos, exchanges_rows, offset);
    });
    return;
  }
  const int64_t half = half_of(columns, part), top = std::min(rows, half);
  const at::Tensor left = lu.narrow(2, 0, half), right = lu.narrow(2, half, columns - half);
  const at::Tensor left_pivots = pivots.narrow(1, 0, top);
  factor_lu(left, left_pivots, infos, exchanges_rows, offset);
  if (exchanges_rows) {
    exchange_rows(right, left_pivots);
  }
  const at::Tensor upper = right.narrow(1, 0, top);
  solve_in_place(left.narrow(1, 0, top).narrow(2, 0, top), upper, /*upper=*/false, /*unit=*/true);
  if (rows <= half) {
    return;
  }
  const at::Tensor lower = right.narrow(1, half, rows - half), below = left.narrow(1, half, rows - half);
  subtract_product(lower, below, upper);
  const at::Tensor lower_pivots = pivots.narrow(1, half, pivots.size(1) - half);
  factor_lu(lower, lower_pivots, infos, exchanges_rows, offset + half);
  if (exchanges_rows) {
    exchange_rows(below, lower_pivots);
  }
  lower_pivots.add_(half);
}
void lu_factor(const at::Tensor& input, const at::Tensor& pivots, const at::Tensor& infos, bool compute_pivots) {
  const OwnPrecision guard;
  infos.zero_();
  if (input.numel() != 0) {
    const at::Tensor matrices = in_one_batch(input);
    factor_lu(matrices, pivots.view({matrices.size(0), -1}), infos, compute_pivots, 0);
  }
}

// `b` has matrices column by column in memory.
void lu_solve(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
  if (b.numel() == 0) {
    return;
  }
  const OwnPrecision guard;
  const int64_t size = lu.size(-1);
  const at::Tensor right = in_one_batch(b);
  at::Tensor factors = in_batch(lu, batch_of(b)).reshape({right.size(0), size, size});
  const at::Tensor exchanges = in_batch(pivots, batch_of(b), 1).reshape({right.size(0), size});
  if (trans == at::native::TransposeType::NoTranspose) {
    exchange_rows(right, exchanges);
    solve_in_place(factors, right, /*upper=*/false, /*unit=*/true);
    solve_in_place(factors, right, /*upper=*/true, /*unit=*/false);
    return;
  }
  factors = trans == at::native::TransposeType::ConjTranspose ? factors.mH() : factors.mT();
  solve_in_place(factors, right, /*upper=*/false, /*unit=*/false);
  solve_in_place(factors, right, /*upper=*/true, /*unit=*/true);
  exchange_rows(right, exchanges, /*backwards=*/true);
}

at::DimVector in_elements(at::IntArrayRef strides, int64_t element) {
  at::DimVector result;
  for (const int64_t stride : strides) {
    result.push_back(stride / element);
  }
  return result;
}

// Converts the row exchanges of LU decompositions to permutations, one matrix per thread. Operand 0 is initialized to
// 0, 1, 2, ...
void unpack_pivots(at::TensorIterator& iter, const int64_t exchanges, const int64_t /*max_pivot*/) {
  auto* const permutations = static_cast<int64_t*>(iter.data_ptr(0));
  const auto* const pivots = static_cast<const int32_t*>(iter.data_ptr(1));
  for_each_offset(
      iter.shape(),
      [=] __device__(int64_t, const auto& at) {
        int64_t* const permutation = permutations + at[0];
        for (int64_t i = 0; i < exchanges; ++i) {
          const int64_t with = pivots[at[1] + i] - 1;
          const int64_t row = permutation[i];
          permutation[i] = permutation[with];
          permutation[with] = row;
        }
      },
      in_elements(iter.strides(0), sizeof(int64_t)), in_elements(iter.strides(1), sizeof(int32_t)));
}

// ---- Cholesky ------------------------------------------------------------------------------------------------------------

// Decomposes small matrices given by their lower triangles. `info` is set unless it is, and counts from `offset`.
template <typename T>
void factor_cholesky_leaf(const at::Tensor& input, const at::Tensor& infos, int64_t offset) {
  const Layout<T> matrices(input);
  int32_t* const info = infos.mutable_data_ptr<int32_t>();
  const int64_t size = input.size(1);
  each_matrix<kCholeskyThreads>(
      input.sizes().slice(0, 1), size * size / 8,
      [=] __device__(int64_t number, const auto& offsets, auto&) {
        const Matrix<T> a = matrices.at(offsets[0]);
        for (int64_t j = 0; j < size; ++j) {
          const Real<T> left = real_part(a(j, j));
          if (!(left > 0)) {
            if (threadIdx.x == 0 && info[number] == 0) {
              info[number] = static_cast<int32_t>(offset + j + 1);
            }
            break;
          }
          const Real<T> root = std::sqrt(left);
          __syncthreads();
          for (int64_t i = j + threadIdx.x; i < size; i += blockDim.x) {
            a(i, j) = i == j ? T(root) : a(i, j) / root;
          }
          __syncthreads();
          // Threads of a column have adjacent rows.
          const auto next = static_cast<unsigned int>(j + 1), rest = static_cast<unsigned int>(size) - next;
          for (unsigned int n = threadIdx.x; n < rest * rest; n += blockDim.x) {
            const unsigned int i = next + n % rest, k = next + n / rest;
            if (i >= k) {
              a(i, k) = less_product(a(i, k), a(i, j), conjugate_if(a(k, j), true));
            }
          }
          __syncthreads();
        }
      },
      input.strides().slice(0, 1));
}
void factor_cholesky(const at::Tensor& input, const at::Tensor& infos, int64_t offset) {
  const int64_t size = input.size(1);
  if (size <= kLeaf) {
    MUSA_DISPATCH(input.scalar_type(), "cholesky", (MUSA_LAPACK_TYPES), {
      factor_cholesky_leaf<scalar_t>(input, infos, offset);
    });
    return;
  }
  const int64_t half = half_of(size, kLeaf), rest = size - half;
  const at::Tensor first = input.narrow(1, 0, half).narrow(2, 0, half);
  const at::Tensor below = input.narrow(1, half, rest).narrow(2, 0, half);
  const at::Tensor last = input.narrow(1, half, rest).narrow(2, half, rest);
  factor_cholesky(first, infos, offset);
  // X first^H = below is conj(first) X^T = below^T.
  solve_in_place(first.conj(), below.mT(), /*upper=*/false, /*unit=*/false);
  subtract_product(last, below, below.mH()); // torch clears the other triangle
  factor_cholesky(last, infos, offset + half);
}
void cholesky(const at::Tensor& input, const at::Tensor& info, bool upper) {
  const OwnPrecision guard;
  info.zero_();
  if (input.numel() != 0) {
    const at::Tensor matrices = in_one_batch(input);
    // The lower triangle of the transposed matrix.
    factor_cholesky(upper ? matrices.mT() : matrices, info, 0);
  }
}

// Solves A X = B given the Cholesky factor of A.
at::Tensor solve_cholesky(const at::Tensor& factor, const at::Tensor& b, bool upper) {
  const at::Tensor lower = upper ? factor.mH() : factor;
  const at::Tensor half = at::linalg_solve_triangular(lower, b, /*upper=*/false);
  return at::linalg_solve_triangular(lower.mH(), half, /*upper=*/true);
}

at::Tensor& cholesky_inverse(at::Tensor& result, at::Tensor& infos, bool upper) {
  if (result.numel() == 0) {
    return result;
  }
  at::Tensor identity = aten::zeros_like(result);
  identity.diagonal(0, -2, -1).fill_(1);
  const at::Tensor zeros = result.diagonal(0, -2, -1).eq(0);
  const at::Tensor first = zeros.to(at::kInt).argmax(-1).add(1);
  infos.copy_(first.masked_fill(zeros.any(-1).logical_not(), 0).view_as(infos));
  return result.copy_(solve_cholesky(result, identity, upper));
}

} // namespace

at::Tensor _cholesky_solve_helper(const at::Tensor& self, const at::Tensor& A, bool upper) {
  return solve_cholesky(A, self, upper);
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cholesky_stub, &musa_ops_ported::cholesky)
REGISTER_PRIVATEUSE1_DISPATCH(cholesky_inverse_stub, &musa_ops_ported::cholesky_inverse)
REGISTER_PRIVATEUSE1_DISPATCH(lu_factor_stub, &musa_ops_ported::lu_factor)
REGISTER_PRIVATEUSE1_DISPATCH(lu_solve_stub, &musa_ops_ported::lu_solve)
REGISTER_PRIVATEUSE1_DISPATCH(triangular_solve_stub, &musa_ops_ported::triangular_solve)
REGISTER_PRIVATEUSE1_DISPATCH(unpack_pivots_stub, &musa_ops_ported::unpack_pivots)
} // namespace at::native
