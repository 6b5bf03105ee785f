// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Decompositions and solvers for batches of small matrices. One block decomposes a matrix; one thread solves for a
// right-hand side. Conventions follow LAPACK: pivots are counted from 1, `info` marks a singular matrix. Real LU
// decompositions round exactly as LAPACK does (fused operations in the same order, reciprocals of pivots), because
// for a rank-deficient matrix rounding errors decide the next pivot. All other sums are kept in double precision.
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

// ---- LU ------------------------------------------------------------------------------------------------------------------

template <typename T>
void factor_lu(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& infos, bool exchanges_rows) {
  const Layout<T> matrices(lu);
  int32_t* const all_pivots = pivots.mutable_data_ptr<int32_t>();
  int32_t* const info = infos.mutable_data_ptr<int32_t>();
  const int64_t rows = lu.size(-2);
  const int64_t columns = lu.size(-1);
  const int64_t steps = std::min(rows, columns);
  each_matrix(
      batch_of(lu), std::max(rows, columns),
      [=] __device__(int64_t number, const auto& offsets, int64_t& pivot) {
        const Matrix<T> a = matrices.at(offsets[0]);
        int32_t* const pivots_here = all_pivots + number * steps;
        if (threadIdx.x == 0) {
          info[number] = 0;
        }
        for (int64_t k = 0; k < steps; ++k) {
          for (int64_t i = k + threadIdx.x; i < rows; i += blockDim.x) {
            a(i, k) = less_products(a, i, k, k);
          }
          __syncthreads();
          if (threadIdx.x == 0) {
            int64_t largest = k;
            for (int64_t i = k + 1; exchanges_rows && i < rows; ++i) {
              largest = pivot_size(a(i, k)) > pivot_size(a(largest, k)) ? i : largest;
            }
            pivots_here[k] = static_cast<int32_t>(largest + 1);
            if (a(largest, k) == T(0) && info[number] == 0) {
              info[number] = static_cast<int32_t>(k + 1);
            }
            pivot = largest;
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
      batch_steps(lu));
}
void lu_factor(const at::Tensor& input, const at::Tensor& pivots, const at::Tensor& infos, bool compute_pivots) {
  MUSA_DISPATCH(input.scalar_type(), "lu_factor", (MUSA_LAPACK_TYPES), {
    factor_lu<scalar_t>(input, pivots, infos, compute_pivots);
  });
}

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
void solve_lu(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
  const at::IntArrayRef batch = batch_of(b);
  const at::Tensor factors = in_batch(lu, batch);
  const at::Tensor exchanges = in_batch(pivots, batch, 1);
  const Layout<const T> matrices(factors);
  const int32_t* const all_pivots = exchanges.const_data_ptr<int32_t>();
  const int64_t pivot_step = exchanges.stride(-1);
  T* const right_hand_sides = b.mutable_data_ptr<T>();
  const int64_t step = b.stride(-2);
  const int64_t size = lu.size(-1);
  const bool by_reciprocals = size <= kUnrolledSize;
  const bool transposed = trans != at::native::TransposeType::NoTranspose;
  const bool conjugate = trans == at::native::TransposeType::ConjTranspose;
  at::DimVector columns(batch), of_factors(batch_steps(factors)), of_pivots(exchanges.strides().slice(0, batch.size()));
  at::DimVector of_b(batch_steps(b));
  columns.push_back(b.size(-1));
  of_factors.push_back(0);
  of_pivots.push_back(0);
  of_b.push_back(b.stride(-1));
  for_each_offset(
      columns,
      [=] __device__(int64_t, const auto& at) {
        const Matrix<const T> a = matrices.at(at[0]);
        const int32_t* const pivots_here = all_pivots + at[1];
        T* const x = right_hand_sides + at[2];
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
      },
      of_factors, of_pivots, of_b);
}
void lu_solve(const at::Tensor& lu, const at::Tensor& pivots, const at::Tensor& b, at::native::TransposeType trans) {
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

// ---- triangular systems --------------------------------------------------------------------------------------------------

// As in BLAS, both tensors hold column-major matrices regardless of their strides: for a row-major `a` the caller
// passes the arguments for its transpose.
template <typename T>
void solve_triangles(
    const at::Tensor& a, const at::Tensor& b, bool left, bool upper, at::native::TransposeType trans, bool unit) {
  const T* const all_coefficients = a.const_data_ptr<T>();
  T* const all_sides = b.mutable_data_ptr<T>();
  const int64_t a_rows = a.size(-2), a_size = a_rows * a.size(-1);
  const int64_t b_rows = b.size(-2), b_size = b_rows * b.size(-1);
  const int64_t size = left ? a.size(-1) : b.size(-1);
  // X op(A) = B is op(A)^T X^T = B^T: a row of B is a right-hand side.
  const int64_t sides = left ? b.size(-1) : b_rows;
  const int64_t side_step = left ? b_rows : 1;
  const int64_t step = left ? 1 : b_rows;
  const bool transposed = (trans != at::native::TransposeType::NoTranspose) == left;
  const bool conjugate = trans == at::native::TransposeType::ConjTranspose;
  for_each(c10::multiply_integers(batch_of(b)) * sides, [=] __device__(int64_t i) {
    const int64_t number = i / sides;
    const Matrix<const T> here{all_coefficients + number * a_size, 1, a_rows};
    const Triangle<T> triangle{transposed ? here.transposed() : here, size, upper != transposed, unit, conjugate};
    triangle.solve(all_sides + number * b_size + i % sides * side_step, step, /*by_reciprocals=*/true);
  });
}
void triangular_solve(
    const at::Tensor& a, const at::Tensor& b, bool left, bool upper, at::native::TransposeType trans,
    bool unitriangular) {
  MUSA_DISPATCH(a.scalar_type(), "triangular_solve", (MUSA_LAPACK_TYPES), {
    solve_triangles<scalar_t>(a, b, left, upper, trans, unitriangular);
  });
}

// ---- Cholesky ------------------------------------------------------------------------------------------------------------

// If the upper triangle is given, works on the transposed matrix, whose lower triangle it is.
template <typename T>
void factor_cholesky(const at::Tensor& input, const at::Tensor& infos, bool upper) {
  const Layout<T> matrices(input);
  int32_t* const info = infos.mutable_data_ptr<int32_t>();
  const int64_t size = input.size(-1);
  each_matrix(
      batch_of(input), size,
      [=] __device__(int64_t number, const auto& offsets, int64_t& failed) {
        const Matrix<T> a = upper ? matrices.at(offsets[0]).transposed() : matrices.at(offsets[0]);
        const Matrix<T> across = a.transposed();
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
        if (threadIdx.x == 0) {
          info[number] = static_cast<int32_t>(failed);
        }
      },
      batch_steps(input));
}
void cholesky(const at::Tensor& input, const at::Tensor& info, bool upper) {
  MUSA_DISPATCH(
      input.scalar_type(), "cholesky", (MUSA_LAPACK_TYPES), { factor_cholesky<scalar_t>(input, info, upper); });
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

// ---- Householder reflectors ----------------------------------------------------------------------------------------------

// x -= factor * v * (v^H x), with v(0) = 1 and v(i) = reflector[i * reflector_step].
template <typename T>
__device__ void reflect(
    const T* reflector, int64_t reflector_step, Wide<T> factor, T* x, int64_t step, int64_t size, bool conjugate) {
  Wide<T> along = static_cast<Wide<T>>(x[0]);
  for (int64_t i = 1; i < size; ++i) {
    along += conjugate_if(static_cast<Wide<T>>(reflector[i * reflector_step]), !conjugate) *
        static_cast<Wide<T>>(x[i * step]);
  }
  along *= factor;
  x[0] = static_cast<T>(static_cast<Wide<T>>(x[0]) - along);
  for (int64_t i = 1; i < size; ++i) {
    const Wide<T> part = conjugate_if(static_cast<Wide<T>>(reflector[i * reflector_step]), conjugate);
    x[i * step] = static_cast<T>(static_cast<Wide<T>>(x[i * step]) - part * along);
  }
}

// Computes Q C, Q^H C, C Q or C Q^H for Q = H(0) H(1) ..., with one thread per column or row of C.
template <typename T>
void reflect_all(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left, bool transpose) {
  const Layout<const T> matrices(input);
  const T* const factors = tau.const_data_ptr<T>();
  const int64_t factor_step = tau.stride(-1);
  const int64_t count = tau.size(-1);
  T* const all_lines = other.mutable_data_ptr<T>();
  const int64_t size = other.size(left ? -2 : -1);
  const int64_t step = other.stride(left ? -2 : -1);
  const bool last_first = left != transpose;
  at::DimVector lines(batch_of(other)), of_input(batch_steps(input)), of_tau(tau.strides().slice(0, tau.dim() - 1));
  at::DimVector of_other(batch_steps(other));
  lines.push_back(other.size(left ? -1 : -2));
  of_input.push_back(0);
  of_tau.push_back(0);
  of_other.push_back(other.stride(left ? -1 : -2));
  for_each_offset(
      lines,
      [=] __device__(int64_t, const auto& at) {
        const Matrix<const T> a = matrices.at(at[0]);
        T* const line = all_lines + at[2];
        for (int64_t n = 0; n < count; ++n) {
          const int64_t k = last_first ? count - 1 - n : n;
          const Wide<T> factor = conjugate_if(static_cast<Wide<T>>(factors[at[1] + k * factor_step]), transpose);
          // Updates a row r to r - factor (r v) v^H, which is the same formula with v conjugated.
          reflect<T>(&a(k, k), a.row_step, factor, line + k * step, step, size - k, /*conjugate=*/!left);
        }
      },
      of_input, of_tau, of_other);
}
void ormqr(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left, bool transpose) {
  MUSA_DISPATCH(input.scalar_type(), "ormqr", (MUSA_LAPACK_TYPES), {
    reflect_all<scalar_t>(input, tau, other, left, transpose);
  });
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
REGISTER_PRIVATEUSE1_DISPATCH(ormqr_stub, &musa_ops_ported::ormqr)
REGISTER_PRIVATEUSE1_DISPATCH(triangular_solve_stub, &musa_ops_ported::triangular_solve)
REGISTER_PRIVATEUSE1_DISPATCH(unpack_pivots_stub, &musa_ops_ported::unpack_pivots)
} // namespace at::native
