// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// QR decompositions by Householder reflectors, and least squares by them. As in LAPACK, R is in the upper triangle, and
// reflector k = I - tau(k) v v^H has v(k) = 1 and the rest of v below the diagonal of column k. One block decomposes a
// panel of kPanel columns; products of matrices apply the panel's reflectors to the other columns.
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/ops/linalg_lstsq_native.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "engines/aten.h"
#include "engines/for_each.muh"
#include "engines/matrices.muh"
#include "kernels/Householder.h"

namespace musa_ops_ported {
namespace {

constexpr int64_t kPanel = 32;
constexpr int kPanelThreads = 1024; // of a block for many rows, and a quarter of them for few
constexpr int64_t kFewRows = 128;
constexpr int kLanes = 32; // threads that share a column

// The norm of x[0], ..., x[size - 1], whose squares may overflow or underflow.
template <typename T>
__device__ Real<T> scaled_norm(const T* x, int64_t size) {
  Real<T> largest(0), sum(0);
  for (int64_t i = 0; i < size; ++i) {
    const Real<T> magnitude = std::abs(x[i]);
    largest = magnitude > largest || magnitude != magnitude ? magnitude : largest;
  }
  if (largest == Real<T>(0)) {
    return largest;
  }
  for (int64_t i = 0; i < size; ++i) {
    sum += squared_magnitude(T(x[i] / largest));
  }
  return largest * std::sqrt(sum);
}

// A reflector that maps (alpha, x) to (beta, 0): v = (1, scale * x).
template <typename T>
struct Reflector {
  T tau, scale, beta;

  __device__ Reflector(const T& alpha, Real<T> norm) : tau(0), scale(0), beta(alpha) {
    const Real<T> real = real_part(alpha);
    if (norm == Real<T>(0) && imaginary_part(alpha) == Real<T>(0)) {
      return; // the identity
    }
    const Real<T> length = std::hypot(std::abs(alpha), norm);
    const Real<T> signed_length = real >= Real<T>(0) ? -length : length;
    tau = (T(signed_length) - alpha) / signed_length;
    scale = T(1) / (alpha - T(signed_length));
    beta = T(signed_length);
  }
};

// Decomposes matrices of `columns` columns in place, one block for each.
template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kPanelThreads) factor_panel_kernel(
    T* const matrices, const int64_t matrix_step, const int64_t column_step, T* const factors,
    const int64_t factor_step, const int64_t rows, const int64_t columns, const int64_t count) {
  alignas(16) __shared__ unsigned char room[(kPanel * kLanes + 2) * sizeof(T)];
  T* const sums = reinterpret_cast<T*>(room); // kLanes for each column
  T* const shared_tau = sums + kPanel * kLanes;
  T* const shared_scale = shared_tau + 1;
  const int64_t threads = blockDim.x, at_once = threads / kLanes;
  const int64_t thread = threadIdx.x, lane = thread % kLanes, group = thread / kLanes;
  for (int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    T* const a = matrices + number * matrix_step;
    const int64_t steps = std::min(rows, columns);
    for (int64_t k = 0; k < steps; ++k) {
      T* const x = a + k * column_step;
      Real<T> sum(0);
      for (int64_t row = k + 1 + thread; row < rows; row += threads) {
        sum += squared_magnitude(x[row]);
      }
      sums[thread] = T(sum);
      __syncthreads();
      if (thread < kLanes) {
        T of_lane = sums[thread];
        for (int other = kLanes; other < threads; other += kLanes) {
          of_lane += sums[thread + other];
        }
        sums[thread] = of_lane;
      }
      __syncthreads();
      if (thread == 0) {
        Real<T> total(0);
        for (int other = 0; other < kLanes; ++other) {
          total += real_part(sums[other]);
        }
        constexpr Real<T> least = std::numeric_limits<Real<T>>::min() / std::numeric_limits<Real<T>>::epsilon();
        const bool precise = total > least && total < std::numeric_limits<Real<T>>::max();
        Real<T> norm = precise ? std::sqrt(total) : scaled_norm(x + k + 1, rows - k - 1), unit(1);
        const Real<T> length = std::hypot(std::abs(x[k]), norm);
        if (length > Real<T>(0) && length < least) { // its reciprocal would overflow
          unit = least;
          for (int64_t row = k; row < rows; ++row) {
            x[row] *= 1 / least;
          }
          norm = scaled_norm(x + k + 1, rows - k - 1);
        }
        const Reflector<T> reflector(x[k], norm);
        x[k] = reflector.beta * unit;
        *shared_tau = reflector.tau;
        *shared_scale = reflector.scale;
        factors[number * factor_step + k] = reflector.tau;
      }
      __syncthreads();
      const T tau = conjugate_if(*shared_tau, true), scale = *shared_scale;
      if (tau != T(0)) {
        for (int64_t row = k + 1 + thread; row < rows; row += threads) {
          x[row] *= scale;
        }
        __syncthreads();
        for (int64_t column = k + 1 + group; column < columns; column += at_once) {
          const T* const y = a + column * column_step;
          T product(0);
          for (int64_t row = k + 1 + lane; row < rows; row += kLanes) {
            product += conjugate_if(x[row], true) * y[row];
          }
          sums[(column - k - 1) * kLanes + lane] = product;
        }
        __syncthreads();
        for (int64_t column = k + 1 + thread; column < columns; column += threads) {
          T* const own = sums + (column - k - 1) * kLanes;
          T product = a[k + column * column_step];
          for (int other = 0; other < kLanes; ++other) {
            product += own[other];
          }
          *own = tau * product;
          a[k + column * column_step] -= *own;
        }
        __syncthreads();
        for (int64_t column = k + 1 + group; column < columns; column += at_once) {
          T* const y = a + column * column_step;
          const T along = sums[(column - k - 1) * kLanes];
          for (int64_t row = k + 1 + lane; row < rows; row += kLanes) {
            y[row] -= x[row] * along;
          }
        }
      }
      __syncthreads();
    }
  }
}

void factor_panel(const at::Tensor& panel, const at::Tensor& tau) {
  const int64_t count = panel.size(0);
  const int threads = panel.size(1) <= kFewRows ? kPanelThreads / 4 : kPanelThreads;
  MUSA_DISPATCH(panel.scalar_type(), "geqrf", (MUSA_LAPACK_TYPES), {
    factor_panel_kernel<scalar_t><<<std::min<int64_t>(count, 1 << 16), threads, 0, c10::musa::getCurrentMUSAStream()>>>(
        panel.mutable_data_ptr<scalar_t>(), panel.stride(0), panel.stride(2), tau.mutable_data_ptr<scalar_t>(),
        tau.stride(0), panel.size(1), panel.size(2), count);
    C10_MUSA_KERNEL_LAUNCH_CHECK();
  });
}

// The directions of reflectors: ones on the diagonal, zeros above.
at::Tensor directions_of(const at::Tensor& panel) {
  at::Tensor v = panel.tril(-1);
  v.diagonal(0, 1, 2).fill_(1);
  return v;
}

// Fills the upper triangular t of I - v t v^H, from zeros, the products v^H v and the factors of the reflectors.
// A function of its own: CUDA's compiler takes no device lambda in a constructor.
void fill_factors(const at::Tensor& t, const at::Tensor& products, const at::Tensor& tau) {
  const int64_t size = products.size(1), tau_step = tau.stride(0);
  MUSA_DISPATCH(tau.scalar_type(), "householder_product", (MUSA_LAPACK_TYPES), {
    scalar_t* const all = t.mutable_data_ptr<scalar_t>();
    const scalar_t* const all_products = products.const_data_ptr<scalar_t>();
    const scalar_t* const all_factors = tau.const_data_ptr<scalar_t>();
    // A row depends on itself alone.
    for_each(products.size(0) * size, [=] __device__(int64_t i) {
      const int64_t number = i / size, row = i % size;
      scalar_t* const of_row = all + i * size;
      const scalar_t* const product = all_products + number * size * size;
      const scalar_t* const factors = all_factors + number * tau_step;
      of_row[row] = factors[row];
      for (int64_t column = row + 1; column < size; ++column) {
        scalar_t sum(0);
        for (int64_t p = row; p < column; ++p) {
          sum += of_row[p] * product[p * size + column];
        }
        of_row[column] = -factors[column] * sum;
      }
    });
  });
}

// The product of reflectors, I - v t v^H with an upper triangular t.
class Reflectors {
 public:
  Reflectors(at::Tensor v, const at::Tensor& tau) : v_(std::move(v)), adjoint_(v_.mH()) {
    const at::Tensor products = adjoint_.matmul(v_).contiguous();
    t_ = aten::zeros(products.sizes(), products.options());
    fill_factors(t_, products, tau);
  }

  // Multiplies matrices by the product, or by its adjoint, from a side, in place.
  void apply(const at::Tensor& matrices, bool adjoint, bool left = true) const {
    const at::Tensor factor = adjoint ? t_.mH() : t_;
    if (left) {
      subtract_product(matrices, v_, factor.matmul(adjoint_.matmul(matrices)));
    } else {
      subtract_product(matrices, matrices.matmul(v_).matmul(factor), adjoint_);
    }
  }

 private:
  at::Tensor v_, adjoint_, t_;
};

// Calls f(begin, width) for the panels of `count` reflectors, in order or from the last one.
template <typename F>
void each_panel(int64_t count, bool last_first, const F& f) {
  const int64_t panels = (count + kPanel - 1) / kPanel;
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t begin = (last_first ? panels - 1 - i : i) * kPanel;
    f(begin, std::min(kPanel, count - begin));
  }
}

void geqrf(const at::Tensor& qr, const at::Tensor& tau) {
  const OwnPrecision guard;
  if (qr.numel() == 0) {
    return;
  }
  const at::Tensor a = in_one_batch(qr), factors = tau.view({a.size(0), -1});
  const int64_t rows = a.size(1), columns = a.size(2);
  each_panel(factors.size(1), /*last_first=*/false, [&](int64_t begin, int64_t width) {
    const at::Tensor below = a.narrow(1, begin, rows - begin);
    const at::Tensor panel = below.narrow(2, begin, width), factors_here = factors.narrow(1, begin, width);
    factor_panel(panel, factors_here);
    const int64_t rest = columns - begin - width;
    if (rest > 0) {
      Reflectors(directions_of(panel), factors_here).apply(below.narrow(2, begin + width, rest), /*adjoint=*/true);
    }
  });
}

// Multiplies matrices by Q = H(0) H(1) ... or by its adjoint from a side, in place. `v` has the reflectors' directions.
void multiply_by_q(
    const at::Tensor& v, const at::Tensor& tau, const at::Tensor& matrices, bool adjoint, bool left = true) {
  each_panel(tau.size(1), /*last_first=*/adjoint != left, [&](int64_t begin, int64_t width) {
    const int64_t rows = v.size(1) - begin;
    const at::Tensor directions = v.narrow(1, begin, rows).narrow(2, begin, width);
    const at::Tensor changed = matrices.narrow(left ? 1 : 2, begin, rows);
    Reflectors(directions, tau.narrow(1, begin, width)).apply(changed, adjoint, left);
  });
}

void ormqr(const at::Tensor& input, const at::Tensor& tau, const at::Tensor& other, bool left, bool transpose) {
  const OwnPrecision guard;
  if (other.numel() == 0 || tau.numel() == 0) {
    return;
  }
  const at::Tensor reflectors = in_one_batch(input);
  const int64_t count = tau.size(-1);
  const at::Tensor v = directions_of(reflectors.narrow(2, 0, count));
  multiply_by_q(v, tau.view({reflectors.size(0), count}), in_one_batch(other), transpose, left);
}

at::Tensor& orgqr(at::Tensor& result, const at::Tensor& tau) {
  const OwnPrecision guard;
  if (result.numel() == 0) {
    return result;
  }
  const at::Tensor q = in_one_batch(result);
  const int64_t count = tau.size(-1);
  const at::Tensor v = directions_of(q.narrow(2, 0, count));
  q.zero_();
  q.diagonal(0, 1, 2).fill_(1);
  if (count > 0) {
    multiply_by_q(v, tau.view({q.size(0), count}), q, /*adjoint=*/false);
  }
  return result;
}

// As LAPACK's gels: the rows of `b` behind the solution have the residual in the basis Q.
void lstsq(
    const at::Tensor& a, at::Tensor& b, at::Tensor& /*rank*/, at::Tensor& /*singular_values*/, at::Tensor& /*infos*/,
    double /*rcond*/, std::string /*driver*/) {
  const OwnPrecision guard;
  if (a.numel() == 0 || b.numel() == 0) {
    return;
  }
  const int64_t rows = a.size(-2), columns = a.size(-1);
  const bool tall = rows >= columns;
  const bool expands = batch_of(a) != batch_of(b);
  const at::Tensor matrices = in_one_batch(expands ? in_batch(a, batch_of(b)).mT().contiguous().mT() : a);
  const at::Tensor right = in_one_batch(b);
  // Of A, or of its adjoint: then A = R^H Q^H has the solution Q R^-H b of least norm.
  const at::Tensor qr = tall ? matrices : matrices.mH().mT().clone(at::MemoryFormat::Contiguous).mT();
  const int64_t size = std::min(rows, columns);
  const at::Tensor tau = aten::empty({qr.size(0), size}, qr.options());
  geqrf(qr, tau);
  const at::Tensor v = directions_of(qr), r = qr.narrow(1, 0, size), solution = right.narrow(1, 0, size);
  if (tall) {
    multiply_by_q(v, tau, right, /*adjoint=*/true);
    solution.copy_(at::linalg_solve_triangular(r, solution, /*upper=*/true));
  } else {
    solution.copy_(at::linalg_solve_triangular(r.mH(), solution, /*upper=*/false));
    right.narrow(1, size, right.size(1) - size).zero_();
    multiply_by_q(v, tau, right, /*adjoint=*/false);
  }
}

} // namespace

// torch's code computes what gels does not return, such as the rank, for the driver that is the CPU's default.
std::tuple<at::Tensor&, at::Tensor&, at::Tensor&, at::Tensor&> linalg_lstsq_out(
    const at::Tensor& self, const at::Tensor& b, std::optional<double> rcond,
    std::optional<std::string_view> /*driver*/, at::Tensor& solution, at::Tensor& residuals, at::Tensor& rank,
    at::Tensor& singular_values) {
  return at::native::linalg_lstsq_out(self, b, rcond, "gels", solution, residuals, rank, singular_values);
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(geqrf_stub, &musa_ops_ported::geqrf)
REGISTER_PRIVATEUSE1_DISPATCH(lstsq_stub, &musa_ops_ported::lstsq)
REGISTER_PRIVATEUSE1_DISPATCH(orgqr_stub, &musa_ops_ported::orgqr)
REGISTER_PRIVATEUSE1_DISPATCH(ormqr_stub, &musa_ops_ported::ormqr)
} // namespace at::native
