// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Singular values and vectors, and eigenvalues and eigenvectors of Hermitian matrices, by the one-sided Jacobi method:
// rotations make the columns of a matrix orthogonal; their norms then are the singular values. A round rotates n / 2
// pairs of columns independently, and a sweep has n - 1 rounds, in which each pair meets once.
#include <ATen/core/Tensor.h>
#include <ATen/native/BatchLinearAlgebra.h>
#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/geqrf.h>
#include <ATen/ops/linalg_householder_product.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/real.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>

#include "engines/aten.h"
#include "engines/matrices.muh"
#include "kernels/JacobiRotations.h"

namespace musa_ops_ported {
namespace {

constexpr int64_t kSmall = 64; // columns of a matrix that one block rotates, with a thread for each pair
constexpr int kSmallThreads = kSmall / 2;
constexpr int kPairThreads = 128;
constexpr int kMostSweeps = 40;

// The largest element of a matrix is 1: a column shorter than this consists of rounding errors.
template <typename R>
constexpr R kShortest = std::numeric_limits<R>::epsilon() * std::numeric_limits<R>::epsilon();
double shortest(at::ScalarType type) {
  return c10::toRealValueType(type) == at::kFloat ? kShortest<float> : kShortest<double>;
}

// Columns p and q of a round: column `players` - 1 stays, the others move by one place in each round.
struct Pair {
  int64_t p, q;

  C10_HOST_DEVICE Pair(int64_t round, int64_t number, int64_t players) {
    const int64_t moving = players - 1;
    const int64_t first = number == 0 ? moving : (round + number) % moving;
    const int64_t second = (round + moving - number) % moving;
    p = std::min(first, second);
    q = std::max(first, second);
  }
};

// Inner products of two columns.
template <typename T>
struct Products {
  Real<T> p, q;
  T both;

  __device__ void add(const T& x, const T& y) {
    p += squared_magnitude(x);
    q += squared_magnitude(y);
    both += conjugate_if(x, true) * y;
  }
  __device__ void add(const Products& other) {
    p += other.p;
    q += other.q;
    both += other.both;
  }
};

// The rotation that makes two columns orthogonal.
template <typename T>
struct Rotation {
  Real<T> sine, half_tangent;
  T phase;
  bool needed;

  __device__ Rotation(const Products<T>& products, Real<T> tolerance) : sine(0), half_tangent(0), phase(1) {
    constexpr Real<T> least = kShortest<Real<T>> * kShortest<Real<T>>;
    const Real<T> magnitude = std::abs(products.both);
    // NaN is never orthogonal, so that it is reported as a failure.
    needed = magnitude != Real<T>(0) && !(products.p <= least) && !(products.q <= least) &&
        !(magnitude <= tolerance * std::sqrt(products.p) * std::sqrt(products.q));
    if (needed) {
      phase = conjugate_if(T(products.both / magnitude), true);
      const Real<T> zeta = (products.q - products.p) / (2 * magnitude);
      const Real<T> tangent = (zeta < 0 ? Real<T>(-1) : Real<T>(1)) / (std::abs(zeta) + std::hypot(Real<T>(1), zeta));
      const Real<T> cosine = 1 / std::sqrt(1 + tangent * tangent);
      sine = cosine * tangent;
      half_tangent = sine / (1 + cosine);
    }
  }
  __device__ void rotate(T& x, T& y) const {
    // With the tangent of half of the angle, lengths are kept exactly; rounding errors of cosine and sine would add up.
    const T before = x, other = y * phase;
    x = before - (other + before * half_tangent) * sine;
    y = other + (before - other * half_tangent) * sine;
  }
};

// One block makes the columns of a matrix orthogonal. `infos` is 0, or 1 if that failed.
template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kSmallThreads) orthogonalize_kernel(
    T* const all, int32_t* const infos, const int64_t columns, const int64_t rows, const int64_t length,
    const Real<T> tolerance, const int64_t count) {
  __shared__ int rotated;
  const int64_t players = columns + columns % 2;
  for (int64_t number = blockIdx.x; number < count; number += gridDim.x) {
    T* const matrix = all + number * columns * length;
    bool done = false;
    for (int sweep = 0; sweep < kMostSweeps && !done; ++sweep) {
      if (threadIdx.x == 0) {
        rotated = 0;
      }
      __syncthreads();
      for (int64_t round = 0; round + 1 < players; ++round) {
        for (int64_t i = threadIdx.x; i < players / 2; i += kSmallThreads) {
          const Pair pair(round, i, players);
          if (pair.q >= columns) {
            continue;
          }
          T* const x = matrix + pair.p * length;
          T* const y = matrix + pair.q * length;
          Products<T> products{0, 0, T(0)};
          for (int64_t row = 0; row < rows; ++row) {
            products.add(x[row], y[row]);
          }
          const Rotation<T> rotation(products, tolerance);
          if (rotation.needed) {
            for (int64_t row = 0; row < length; ++row) {
              rotation.rotate(x[row], y[row]);
            }
            atomicOr(&rotated, 1);
          }
        }
        __syncthreads();
      }
      done = rotated == 0;
      __syncthreads();
    }
    if (threadIdx.x == 0) {
      infos[number] = done ? 0 : 1;
    }
  }
}

// A round of larger matrices: one block for each pair. Sets `rotated` of a matrix to 1 if it was not orthogonal.
template <typename T>
__global__ void C10_LAUNCH_BOUNDS_1(kPairThreads) rotate_pairs_kernel(
    T* const all, int32_t* const rotated, const int64_t round, const int64_t columns, const int64_t rows,
    const int64_t length, const Real<T> tolerance, const int64_t count) {
  alignas(16) __shared__ unsigned char room[kPairThreads * sizeof(Products<T>)];
  Products<T>* const sums = reinterpret_cast<Products<T>*>(room);
  const int64_t players = columns + columns % 2, pairs = players / 2;
  const int thread = threadIdx.x;
  for (int64_t i = blockIdx.x; i < count * pairs; i += gridDim.x) {
    const int64_t number = i / pairs;
    const Pair pair(round, i % pairs, players);
    if (pair.q >= columns) {
      continue; // all threads of the block
    }
    T* const x = all + (number * columns + pair.p) * length;
    T* const y = all + (number * columns + pair.q) * length;
    Products<T> products{0, 0, T(0)};
    for (int64_t row = thread; row < rows; row += kPairThreads) {
      products.add(x[row], y[row]);
    }
    sums[thread] = products;
    __syncthreads();
    for (int half = kPairThreads / 2; half > 0; half /= 2) {
      if (thread < half) {
        sums[thread].add(sums[thread + half]);
      }
      __syncthreads();
    }
    const Rotation<T> rotation(sums[0], tolerance);
    if (rotation.needed) {
      for (int64_t row = thread; row < length; row += kPairThreads) {
        rotation.rotate(x[row], y[row]);
      }
      if (thread == 0) {
        atomicOr(&rotated[number], 1);
      }
    }
    __syncthreads();
  }
}

// Makes the columns of each matrix orthogonal. `matrices` is contiguous, and matrices[i][k] is column k of matrix i; its
// first `rows` elements are compared, the others are rotated with them. Returns 0 for each matrix, or 1 if it failed.
at::Tensor orthogonalize(const at::Tensor& matrices, int64_t rows) {
  const int64_t count = matrices.size(0), columns = matrices.size(1), length = matrices.size(2);
  const at::Tensor infos = aten::zeros({count}, matrices.options().dtype(at::kInt));
  MUSA_DISPATCH(matrices.scalar_type(), "orthogonalize", (MUSA_LAPACK_TYPES), {
    scalar_t* const all = matrices.mutable_data_ptr<scalar_t>();
    int32_t* const flags = infos.mutable_data_ptr<int32_t>();
    const auto stream = c10::musa::getCurrentMUSAStream();
    const auto tolerance = static_cast<Real<scalar_t>>(
        std::numeric_limits<Real<scalar_t>>::epsilon() * std::max(4.0, std::sqrt(static_cast<double>(rows))));
    if (columns <= kSmall) {
      orthogonalize_kernel<scalar_t><<<std::min<int64_t>(count, 1 << 16), kSmallThreads, 0, stream>>>(
          all, flags, columns, rows, length, tolerance, count);
      C10_MUSA_KERNEL_LAUNCH_CHECK();
      return;
    }
    const int64_t players = columns + columns % 2, blocks = std::min<int64_t>(count * (players / 2), 1 << 16);
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      infos.zero_();
      for (int64_t round = 0; round + 1 < players; ++round) {
        rotate_pairs_kernel<scalar_t>
            <<<blocks, kPairThreads, 0, stream>>>(all, flags, round, columns, rows, length, tolerance, count);
      }
      C10_MUSA_KERNEL_LAUNCH_CHECK();
      if (!infos.any().item<bool>()) {
        break;
      }
    }
  });
  return infos;
}

// Matrices divided by their largest magnitudes, so that squares neither overflow nor underflow.
struct Scaled {
  at::Tensor matrices, largest, failed;

  explicit Scaled(const at::Tensor& given) : largest(given.abs().amax({1, 2}, /*keepdim=*/true)) {
    failed = largest.isfinite().logical_not_();
    const at::Tensor divisor = largest.masked_fill(failed.logical_or(largest.eq(0)), 1);
    if (given.is_complex()) {
      // A division of complex numbers would invert the divisor, which may be tiny.
      matrices = at::view_as_complex(at::view_as_real(given.resolve_conj()).div(divisor.unsqueeze(3)));
    } else {
      matrices = given.div(divisor);
    }
    matrices.masked_fill_(failed, 0); // no number of rotations would succeed
  }

  // 1 for each matrix that failed, also in the rotations.
  at::Tensor infos(const at::Tensor& of_rotations) const { return of_rotations.masked_fill(failed.view(-1), 1); }
};

// The vectors in the order of `places`.
at::Tensor ordered(const at::Tensor& vectors, const at::Tensor& places) {
  return vectors.gather(1, places.unsqueeze(2).expand(vectors.sizes()));
}

void eigh(
    const at::Tensor& values, const at::Tensor& vectors, const at::Tensor& infos, bool upper, bool /*with_vectors*/) {
  if (vectors.numel() == 0) {
    return;
  }
  const OwnPrecision guard;
  const at::Tensor given = in_one_batch(vectors);
  const at::Tensor triangle = upper ? given.triu(1) : given.tril(-1);
  at::Tensor hermitian = triangle.add(triangle.mH());
  const at::Tensor diagonal = given.diagonal(0, 1, 2);
  hermitian.diagonal(0, 1, 2).copy_(at::real(diagonal));
  const Scaled scaled(hermitian);
  const at::Tensor& matrix = scaled.matrices;
  // The shifted matrix is positive and well conditioned, so its singular vectors are the eigenvectors. A larger shift
  // would cost digits; the root of the norm of the fourth power is near the largest eigenvalue, and not below it.
  const at::Tensor square = matrix.matmul(matrix);
  const at::Tensor bound = at::linalg_vector_norm(square.matmul(square), 2, {1, 2}).sqrt().sqrt();
  const at::Tensor shift = bound.masked_fill(bound.eq(0), 1).mul(2);
  const at::Tensor columns = matrix.mT().clone(at::MemoryFormat::Contiguous);
  columns.diagonal(0, 1, 2).add_(shift.unsqueeze(1));
  infos.copy_(scaled.infos(orthogonalize(columns, columns.size(2))).view_as(infos));
  const at::Tensor units = columns.div(at::linalg_vector_norm(columns, 2, {2}, /*keepdim=*/true));
  // Of the given matrix, for which the shift would cost digits.
  const at::Tensor products = matrix.matmul(units.mT()).mul_(units.mT().conj()).sum(1);
  const auto [sorted, places] = aten::sort(at::real(products), /*stable=*/true, /*dim=*/1, /*descending=*/false);
  values.view(sorted.sizes()).copy_(sorted.mul(scaled.largest.squeeze(2)));
  vectors.copy_(ordered(units, places).mT().view(vectors.sizes()));
}

// Left vectors, singular values and right vectors (each vector a row) of matrices with at least as many rows as columns.
struct Decomposition {
  at::Tensor left, values, right, infos;
};
Decomposition decompose(const at::Tensor& matrices, bool with_vectors, bool full) {
  const int64_t count = matrices.size(0), rows = matrices.size(1), columns = matrices.size(2);
  const Scaled scaled(matrices);
  const at::Tensor& matrix = scaled.matrices;
  Decomposition result;
  at::Tensor square = matrix, qr, tau;
  if (rows > columns) {
    std::tie(qr, tau) = at::geqrf(matrix);
    square = qr.narrow(1, 0, columns).triu();
  }
  // Behind each column one of the identity, which the rotations turn into a right vector.
  const at::Tensor both = aten::zeros({count, columns, with_vectors ? 2 * columns : columns}, square.options());
  const at::Tensor images = both.narrow(2, 0, columns);
  images.copy_(square.mT());
  if (with_vectors) {
    both.narrow(2, columns, columns).diagonal(0, 1, 2).fill_(1);
  }
  result.infos = scaled.infos(orthogonalize(both, columns));
  const at::Tensor norms = at::linalg_vector_norm(images, 2, {2});
  at::Tensor places;
  std::tie(result.values, places) = aten::sort(norms, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  if (with_vectors) {
    const at::Tensor in_order = ordered(both, places);
    result.right = in_order.narrow(2, columns, columns);
    // Columns of rounding errors have no direction: the reflectors of the others complete the basis.
    const at::Tensor lengths = result.values.unsqueeze(2), lost = lengths.le(shortest(matrix.scalar_type()));
    const at::Tensor units = in_order.narrow(2, 0, columns).div(lengths).masked_fill_(lost, 0);
    const auto [reflectors, factors] = at::geqrf(units.mT());
    const at::Tensor signs = at::real(reflectors.diagonal(0, 1, 2)).lt(0); // of real numbers, in complex matrices too
    at::Tensor left = at::linalg_householder_product(reflectors, factors);
    left = left.where(signs.unsqueeze(1).logical_not(), left.neg());
    if (rows > columns) {
      at::Tensor basis = aten::zeros({count, full ? rows : columns, rows}, qr.options()).mT();
      basis.narrow(2, 0, columns).copy_(qr);
      basis = at::linalg_householder_product(basis, tau);
      const at::Tensor first = basis.narrow(2, 0, columns);
      first.copy_(first.matmul(left));
      left = basis;
    }
    result.left = left.mT();
  }
  result.values = result.values.mul(scaled.largest.squeeze(2));
  return result;
}

} // namespace

void _linalg_svd(
    const at::Tensor& A, bool full_matrices, bool compute_uv, std::optional<std::string_view> driver,
    const at::Tensor& U, const at::Tensor& S, const at::Tensor& Vh) {
  TORCH_CHECK(
      !driver.has_value() || *driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda",
      "torch.linalg.svd: unknown driver '", driver.value_or(""), "'. Supported drivers are: gesvd, gesvdj and gesvda");
  if (A.numel() == 0) {
    for (const at::Tensor& vectors : {U, Vh}) {
      if (compute_uv && vectors.numel() != 0) {
        vectors.zero_();
        vectors.diagonal(0, -2, -1).fill_(1);
      }
    }
    return;
  }
  const OwnPrecision guard;
  const at::Tensor matrices = A.reshape({c10::multiply_integers(batch_of(A)), A.size(-2), A.size(-1)});
  const bool tall = A.size(-2) >= A.size(-1);
  const Decomposition result = decompose(tall ? matrices : matrices.mH(), compute_uv, full_matrices);
  at::_linalg_check_errors(result.infos, "linalg.svd", /*is_matrix=*/A.dim() == 2);
  S.copy_(result.values.view(S.sizes()));
  if (compute_uv) {
    const at::Tensor& left = tall ? result.left : result.right;
    const at::Tensor& right = tall ? result.right : result.left;
    U.copy_(left.mT().view(U.sizes()));
    Vh.copy_(right.conj().view(Vh.sizes()));
  }
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(linalg_eigh_stub, &musa_ops_ported::eigh)
} // namespace at::native
