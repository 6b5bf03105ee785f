// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// LU and Cholesky decompositions, and solutions with triangles. A large matrix is divided in halves, which products of
// matrices connect; one block decomposes a part of at most kLeaf columns, and one thread solves for a right-hand side of
// kLeaf rows. Conventions follow LAPACK: pivots are counted from 1, `info` marks a singular matrix. Real LU decompositions
// of a part round exactly as LAPACK does (fused operations in the same order, reciprocals of pivots), because for a
// rank-deficient matrix rounding errors decide the next pivot. All other sums of a part are kept in double precision.
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/TensorIterator.h>
#include <ATen/native/TransposeType.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/where.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/matrices.muh"
#include "engines/pointwise.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

// torch's CPU LAPACK has separate code for matrices up to this size, whose divisions round differently.
constexpr int64_t kUnrolledSize = 4;
// Columns of a part. A larger panel of an LU decomposition has few threads; of a smaller one, products are inefficient.
constexpr int64_t kLeaf = 64;

// Accumulates a value minus a sum of products.
template <typename T>
struct Remainder {
  using Value = std::conditional_t<c10::is_complex<T>::value, Wide<T>, T>;
  Value value;

  __device__ explicit Remainder(const T& start) : value(static_cast<Value>(start)) {}
  __device__ void subtract(const T& x, const T& y) {
    if constexpr (c10::is_complex<T>::value) {
      value -= static_cast<Value>(x) * static_cast<Value>(y);
    } else {
      value = std::fma(-x, y, value);
    }
  }
  __device__ T result() const { return static_cast<T>(value); }
  // Multiplies real numbers by the reciprocal unless the reciprocal would overflow.
  __device__ T divided_by_reciprocal(const T& divisor) const {
    if constexpr (!c10::is_complex<T>::value) {
      if (std::abs(divisor) >= std::numeric_limits<T>::min()) {
        return value * (T(1) / divisor);
      }
    }
    return divided(divisor);
  }
  __device__ T divided(const T& divisor) const { return static_cast<T>(value / static_cast<Value>(divisor)); }
};

// Returns a(row, column) minus the sum of a(row, p) * a(p, column) over p < count.
template <typename T>
__device__ C10_ALWAYS_INLINE T less_products(const Matrix<T>& a, int64_t row, int64_t column, int64_t count) {
  Remainder<T> rest(a(row, column));
  for (int64_t p = 0; p < count; ++p) {
    rest.subtract(a(row, p), a(p, column));
  }
  return rest.result();
}

// Returns the sum of x(row, p) * y(p, column) over p < count.
template <typename T>
__device__ C10_ALWAYS_INLINE Wide<T> product(
    const Matrix<T>& x, int64_t row, const Matrix<T>& y, int64_t column, int64_t count, bool conjugate_second = false) {
  Wide<T> sum(0);
  for (int64_t p = 0; p < count; ++p) {
    sum += static_cast<Wide<T>>(x(row, p)) * conjugate_if(static_cast<Wide<T>>(y(p, column)), conjugate_second);
  }
  return sum;
}

// ---- triangles ---------------------------------------------------------------------------------------------------------

// A triangle of a matrix, or of its transpose, as the coefficients of a linear system.
template <typename T>
struct Triangle {
  Matrix<const T> coefficients;
  int64_t size;
  bool upper, unit, conjugate;

  // Solves for one right-hand side in place. Subtracts in the order of BLAS, which the rounding depends on.
  __device__ void solve(T* const x, int64_t step, bool by_reciprocals) const {
    for (int64_t at = 0; at < size; ++at) {
      const int64_t i = upper ? size - 1 - at : at;
      Remainder<T> rest(x[i * step]);
      for (int64_t n = 0; n < at; ++n) {
        const int64_t p = upper ? size - 1 - n : n;
        rest.subtract(conjugate_if(static_cast<T>(coefficients(i, p)), conjugate), x[p * step]);
      }
      const T divisor = unit ? T(1) : conjugate_if(static_cast<T>(coefficients(i, i)), conjugate);
      x[i * step] = unit ? rest.result() : by_reciprocals ? rest.divided_by_reciprocal(divisor) : rest.divided(divisor);
    }
  }
};

template <typename T>
void solve_leaf(const at::Tensor& triangles, const at::Tensor& b, bool upper, bool unit) {
  const T* const all_coefficients = triangles.const_data_ptr<T>();
  T* const all_sides = b.mutable_data_ptr<T>();
  const int64_t matrix_step = triangles.stride(0), row_step = triangles.stride(1), column_step = triangles.stride(2);
  const int64_t b_step = b.stride(0), step = b.stride(1), side_step = b.stride(2), sides = b.size(2);
  const int64_t size = triangles.size(1);
  const bool conjugate = triangles.is_conj();
  for_each(b.size(0) * sides, [=] __device__(int64_t i) {
    const int64_t number = i / sides;
    const Matrix<const T> coefficients{all_coefficients + number * matrix_step, row_step, column_step};
    const Triangle<T> triangle{coefficients, size, upper, unit, conjugate};
    triangle.solve(all_sides + number * b_step + i % sides * side_step, step, /*by_reciprocals=*/true);
  });
}

// A multiple of the leaf's size, about half of `size`.
int64_t half_of(int64_t size) { return (size / 2 + kLeaf - 1) / kLeaf * kLeaf; }

// Solves T X = B in place of B. Both have one batch dimension and any strides; T may be lazily conjugated.
void solve_in_place(const at::Tensor& triangles, const at::Tensor& b, bool upper, bool unit) {
  const int64_t size = triangles.size(1);
  if (size <= kLeaf) {
    MUSA_DISPATCH(triangles.scalar_type(), "triangular_solve", (MUSA_LAPACK_TYPES), {
      solve_leaf<scalar_t>(triangles, b, upper, unit);
    });
    return;
  }
  const int64_t half = half_of(size), rest = size - half;
  const auto part = [&](bool second_row, bool second_column) {
    return triangles.narrow(1, second_row ? half : 0, second_row ? rest : half)
        .narrow(2, second_column ? half : 0, second_column ? rest : half);
  };
  // The part that is solved first depends on no other.
  const at::Tensor first = b.narrow(1, upper ? half : 0, upper ? rest : half);
  const at::Tensor second = b.narrow(1, upper ? 0 : half, upper ? half : rest);
  solve_in_place(part(upper, upper), first, upper, unit);
  second.sub_(part(!upper, upper).matmul(first));
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

// The row of column k with the largest magnitude from row k on, the first of equal ones, found by all threads.
template <typename T>
__device__ int64_t pivot_row(const Matrix<T>& a, int64_t k, int64_t rows, MatrixRoom& room) {
  double best = -1;
  int64_t place = rows;
  for (int64_t i = k + 1 + threadIdx.x; i < rows; i += blockDim.x) {
    if (pivot_size(a(i, k)) > best) {
      best = pivot_size(a(i, k));
      place = i;
    }
  }
  room.values[threadIdx.x] = best;
  room.places[threadIdx.x] = place;
  __syncthreads();
  if (threadIdx.x == 0) {
    best = pivot_size(a(k, k));
    place = k;
    for (unsigned int i = 0; i < blockDim.x; ++i) {
      if (room.values[i] > best || (room.values[i] == best && room.places[i] < place)) {
        best = room.values[i];
        place = room.places[i];
      }
    }
    room.number = place;
  }
  __syncthreads();
  return room.number;
}

// Decomposes matrices of few columns. Pivots count from their first row; `info` is set unless it is, and counts from
// `offset`.
template <typename T>
void factor_lu_leaf(
    const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& infos, bool exchanges_rows, int64_t offset) {
  const Layout<T> matrices(lu);
  int32_t* const all_pivots = pivots.mutable_data_ptr<int32_t>();
  int32_t* const info = infos.mutable_data_ptr<int32_t>();
  const int64_t pivot_step = pivots.stride(0), rows = lu.size(1), columns = lu.size(2);
  const int64_t steps = std::min(rows, columns);
  each_matrix(
      lu.sizes().slice(0, 1), std::max(rows, columns),
      [=] __device__(int64_t number, const auto& offsets, MatrixRoom& room) {
        const Matrix<T> a = matrices.at(offsets[0]);
        for (int64_t k = 0; k < steps; ++k) {
          for (int64_t i = k + threadIdx.x; i < rows; i += blockDim.x) {
            a(i, k) = less_products(a, i, k, k);
          }
          __syncthreads();
          const int64_t pivot = exchanges_rows ? pivot_row(a, k, rows, room) : k;
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
          for (int64_t i = k + 1 + threadIdx.x; divisor != T(0) && i < rows; i += blockDim.x) {
            const Remainder<T> own(a(i, k));
            a(i, k) = divides ? own.divided(divisor) : own.divided_by_reciprocal(divisor);
          }
          for (int64_t j = k + 1 + threadIdx.x; j < columns; j += blockDim.x) {
            a(k, j) = less_products(a, k, j, k);
          }
          __syncthreads();
        }
      },
      lu.strides().slice(0, 1));
}

// Exchanges rows as the pivots say, the last ones first if `backwards`. One thread has a column.
void exchange_rows(const at::Tensor& matrices, const at::Tensor& pivots, bool backwards = false) {
  const int64_t columns = matrices.size(2), count = pivots.size(1);
  const int64_t matrix_step = matrices.stride(0), row_step = matrices.stride(1), column_step = matrices.stride(2);
  const int64_t pivots_step = pivots.stride(0), pivot_step = pivots.stride(1);
  const int32_t* const all_pivots = pivots.const_data_ptr<int32_t>();
  MUSA_DISPATCH(matrices.scalar_type(), "exchange_rows", (MUSA_LAPACK_TYPES), {
    scalar_t* const all = matrices.mutable_data_ptr<scalar_t>();
    for_each(matrices.size(0) * columns, [=] __device__(int64_t thread) {
      const int64_t number = thread / columns;
      scalar_t* const column = all + number * matrix_step + thread % columns * column_step;
      for (int64_t n = 0; n < count; ++n) {
        const int64_t i = backwards ? count - 1 - n : n;
        const int64_t with = all_pivots[number * pivots_step + i * pivot_step] - 1;
        const scalar_t above = column[i * row_step];
        column[i * row_step] = column[with * row_step];
        column[with * row_step] = above;
      }
    });
  });
}

void factor_lu(
    const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& infos, bool exchanges_rows, int64_t offset) {
  const int64_t rows = lu.size(1), columns = lu.size(2);
  if (columns <= kLeaf) {
    MUSA_DISPATCH(lu.scalar_type(), "lu_factor", (MUSA_LAPACK_TYPES), {
      factor_lu_leaf<scalar_t>(lu, pivots, infos, exchanges_rows, offset);
    });
    return;
  }
  const int64_t half = half_of(columns), top = std::min(rows, half);
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
  lower.sub_(below.matmul(upper));
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

template <typename T>
void solve_lu(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
  const int64_t step = b.stride(-2), pivot_step = pivots.stride(-1), size = lu.size(-1);
  const bool by_reciprocals = size <= kUnrolledSize;
  const bool transposed = trans != at::native::TransposeType::NoTranspose;
  const bool conjugate = trans == at::native::TransposeType::ConjTranspose;
  each_right_hand_side<T>(lu, pivots, b, [=] __device__(const Matrix<const T>& a, const int32_t* pivots_here, T* x) {
    const auto exchange = [&](int64_t i) {
      const int64_t with = pivots_here[i * pivot_step] - 1;
      const T above = x[i * step];
      x[i * step] = x[with * step];
      x[with * step] = above;
    };
    if (transposed) {
      Triangle<T>{a.transposed(), size, /*upper=*/false, /*unit=*/false, conjugate}.solve(x, step, by_reciprocals);
      Triangle<T>{a.transposed(), size, /*upper=*/true, /*unit=*/true, conjugate}.solve(x, step, by_reciprocals);
      for (int64_t i = size; i-- > 0;) {
        exchange(i);
      }
    } else {
      for (int64_t i = 0; i < size; ++i) {
        exchange(i);
      }
      Triangle<T>{a, size, /*upper=*/false, /*unit=*/true, conjugate}.solve(x, step, by_reciprocals);
      Triangle<T>{a, size, /*upper=*/true, /*unit=*/false, conjugate}.solve(x, step, by_reciprocals);
    }
  });
}
// The same by products of matrices. `b` has matrices column by column in memory.
void solve_large_lu(
    const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
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
void lu_solve(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
  if (lu.size(-1) > kLeaf && b.numel() != 0) {
    solve_large_lu(lu, pivots, b, trans);
    return;
  }
  MUSA_DISPATCH(lu.scalar_type(), "lu_solve", (MUSA_LAPACK_TYPES), { solve_lu<scalar_t>(lu, pivots, b, trans); });
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
  each_matrix(
      input.sizes().slice(0, 1), size,
      [=] __device__(int64_t number, const auto& offsets, MatrixRoom& room) {
        const Matrix<T> a = matrices.at(offsets[0]);
        const Matrix<T> across = a.transposed();
        int64_t& failed = room.number;
        if (threadIdx.x == 0) {
          failed = 0;
        }
        for (int64_t j = 0; j < size; ++j) {
          if (threadIdx.x == 0) {
            const double left = real_part(a(j, j)) - real_part(product(a, j, across, j, j, /*conjugate_second=*/true));
            if (left > 0) {
              a(j, j) = static_cast<T>(std::sqrt(left));
            } else {
              a(j, j) = static_cast<T>(left);
              failed = j + 1;
            }
          }
          __syncthreads();
          if (failed != 0) {
            break;
          }
          const double divisor = real_part(a(j, j));
          for (int64_t i = j + 1 + threadIdx.x; i < size; i += blockDim.x) {
            const Wide<T> rest = static_cast<Wide<T>>(a(i, j)) - product(a, i, across, j, j, /*conjugate_second=*/true);
            a(i, j) = static_cast<T>(rest / divisor);
          }
          __syncthreads();
        }
        if (threadIdx.x == 0 && failed != 0 && info[number] == 0) {
          info[number] = static_cast<int32_t>(offset + failed);
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
  const int64_t half = half_of(size), rest = size - half;
  const at::Tensor first = input.narrow(1, 0, half).narrow(2, 0, half);
  const at::Tensor below = input.narrow(1, half, rest).narrow(2, 0, half);
  const at::Tensor last = input.narrow(1, half, rest).narrow(2, half, rest);
  factor_cholesky(first, infos, offset);
  // X first^H = below is conj(first) X^T = below^T.
  solve_in_place(first.conj(), below.mT(), /*upper=*/false, /*unit=*/false);
  last.sub_(below.matmul(below.mH()).tril()); // the other triangle belongs to the caller
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
