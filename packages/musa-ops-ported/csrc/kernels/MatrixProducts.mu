// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Matrix products for cases that BLAS libraries do not support: integers, complex numbers, double precision, operands
// without elements. A block computes a tile of a large result from tiles of the operands in shared memory; otherwise one
// thread computes one element. Both add an element's products in the same order.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/LinearAlgebra.h>
#include <ATen/native/TensorIterator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/overlap.h"
#include "engines/pointwise.muh"
#include "kernels/MatrixProducts.h"

namespace musa_ops_ported {
namespace {

// Adds the products in sequence.
template <typename T>
struct SumOfProducts {
  T sum = T(0);

  __device__ void add(T x, T y, bool fused) {
    if constexpr (std::is_floating_point_v<T>) {
      sum = fused ? std::fma(x, y, sum) : sum + x * y;
    } else {
      sum += x * y;
    }
  }
  __device__ T value(bool /*fused*/) const { return sum; }
};
// If fused, each of the four products of real and imaginary parts has its own sum.
template <typename Real>
struct SumOfProducts<c10::complex<Real>> {
  using T = c10::complex<Real>;
  T sum = T(0);
  SumOfProducts<Real> both_real, both_imaginary, first_real, second_real;

  __device__ void add(T x, T y, bool fused) {
    if (!fused) {
      sum += x * y;
      return;
    }
    both_real.add(x.real(), y.real(), fused);
    both_imaginary.add(x.imag(), y.imag(), fused);
    first_real.add(x.real(), y.imag(), fused);
    second_real.add(x.imag(), y.real(), fused);
  }
  __device__ T value(bool fused) const {
    return fused ? T(both_real.sum - both_imaginary.sum, first_real.sum + second_real.sum) : sum;
  }
};

// Returns the operand with lazy conjugation and negation resolved. Copied if it shares memory with the output, which
// is written while operands are read.
at::Tensor readable(const at::Tensor& operand, const at::Tensor& out) {
  const at::Tensor values = operand.resolve_conj().resolve_neg();
  const bool separate = !out.is_alias_of(values) || at::get_overlap_status(out, values) == at::MemOverlapStatus::No;
  return separate ? values : values.clone();
}

// A three-dimensional operand.
template <typename T>
struct Batch {
  T* data;
  int64_t steps[3];

  static Batch of(const at::Tensor& tensor) {
    const at::IntArrayRef strides = tensor.strides();
    if constexpr (std::is_const_v<T>) {
      return {tensor.const_data_ptr<std::remove_const_t<T>>(), {strides[0], strides[1], strides[2]}};
    } else {
      return {tensor.mutable_data_ptr<T>(), {strides[0], strides[1], strides[2]}};
    }
  }
  __device__ T& at(int64_t batch, int64_t row, int64_t column) const {
    return data[batch * steps[0] + row * steps[1] + column * steps[2]];
  }
};

// The product with a factor. One and minus one do not multiply: a complex product of an infinity has NaN.
template <typename T>
__device__ T scaled(const T& value, const T& factor) {
  return factor == T(1) ? value : factor == T(-1) ? -value : factor * value;
}

// out[b, i, j] = beta * added[b, i, j] + alpha * sum over k of first[b, i, k] * second[b, k, j]. If beta is 0,
// `added` is not read.
template <typename scalar_t, typename Sum>
struct Product {
  Batch<const scalar_t> first, second, added;
  Batch<scalar_t> out;
  int64_t batches, rows, columns, depth;
  Sum alpha, beta;
  bool adds, fused;

  __device__ void finish(const SumOfProducts<Sum>& products, int64_t batch, int64_t row, int64_t column) const {
    Sum sum = scaled(products.value(fused), alpha);
    if (adds) {
      sum += scaled(static_cast<Sum>(added.at(batch, row, column)), beta);
    }
    out.at(batch, row, column) = static_cast<scalar_t>(sum);
  }
};

constexpr int kTileThreads = 16; // in each dimension
constexpr int kTileDepth = 16;
template <typename Sum>
constexpr int kElements = c10::is_complex<Sum>::value ? 2 : 4; // of a thread, in each dimension
template <typename Sum>
constexpr int kTile = kTileThreads * kElements<Sum>;

// Copies a tile to room[depth][place], with zeros outside the matrix. Threads of adjacent indices read along the
// dimension whose elements are adjacent.
template <typename Sum, typename Load>
__device__ void load_tile(
    Sum (*room)[kTile<Sum> + 1], int64_t depth, int64_t places, bool along_depth, const Load& load) {
  const unsigned int thread = threadIdx.y * kTileThreads + threadIdx.x;
  for (unsigned int i = thread; i < kTile<Sum> * kTileDepth; i += kTileThreads * kTileThreads) {
    const unsigned int k = along_depth ? i % kTileDepth : i / kTile<Sum>;
    const unsigned int place = along_depth ? i / kTileDepth : i % kTile<Sum>;
    room[k][place] = k < depth && place < places ? static_cast<Sum>(load(place, k)) : Sum(0);
  }
}

template <bool fused, typename scalar_t, typename Sum>
__global__ void C10_LAUNCH_BOUNDS_1(kTileThreads* kTileThreads)
    tiles_kernel(const Product<scalar_t, Sum> p, const int64_t tiles) {
  constexpr int tile = kTile<Sum>, count = kElements<Sum>;
  alignas(16) __shared__ unsigned char rooms[2][kTileDepth * (tile + 1) * sizeof(Sum)];
  const auto x = reinterpret_cast<Sum(*)[tile + 1]>(rooms[0]);
  const auto y = reinterpret_cast<Sum(*)[tile + 1]>(rooms[1]);
  const int64_t across = (p.columns + tile - 1) / tile, down = (p.rows + tile - 1) / tile;
  for (int64_t block = blockIdx.x; block < tiles; block += gridDim.x) {
    const int64_t column = block % across * tile, row = block / across % down * tile, batch = block / (across * down);
    SumOfProducts<Sum> products[count][count];
    for (int64_t start = 0; start < p.depth; start += kTileDepth) {
      const int64_t depth = p.depth - start < kTileDepth ? p.depth - start : kTileDepth;
      load_tile<Sum>(x, depth, p.rows - row, p.first.steps[2] == 1, [&](int64_t place, int64_t k) {
        return p.first.at(batch, row + place, start + k);
      });
      load_tile<Sum>(y, depth, p.columns - column, p.second.steps[1] == 1, [&](int64_t place, int64_t k) {
        return p.second.at(batch, start + k, column + place);
      });
      __syncthreads();
      for (int k = 0; k < depth; ++k) {
        Sum left[count], right[count];
#pragma unroll
        for (int i = 0; i < count; ++i) {
          left[i] = x[k][threadIdx.y + i * kTileThreads];
          right[i] = y[k][threadIdx.x + i * kTileThreads];
        }
#pragma unroll
        for (int i = 0; i < count; ++i) {
#pragma unroll
          for (int j = 0; j < count; ++j) {
            products[i][j].add(left[i], right[j], fused);
          }
        }
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const int64_t own_row = row + threadIdx.y + i * kTileThreads;
        const int64_t own_column = column + threadIdx.x + j * kTileThreads;
        if (own_row < p.rows && own_column < p.columns) {
          p.finish(products[i][j], batch, own_row, own_column);
        }
      }
    }
  }
}

// All tensors are three-dimensional.
template <typename scalar_t, typename Sum>
void multiply(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out, bool fused) {
  const Product<scalar_t, Sum> p{
      Batch<const scalar_t>::of(first),
      Batch<const scalar_t>::of(second),
      Batch<const scalar_t>::of(added),
      Batch<scalar_t>::of(out),
      out.size(0),
      out.size(1),
      out.size(2),
      first.size(2),
      alpha.to<Sum>(),
      beta.to<Sum>(),
      beta.to<Sum>() != Sum(0),
      fused};
  if (std::min({p.rows, p.columns, p.depth}) >= kTileThreads) {
    constexpr int64_t tile = kTile<Sum>;
    const int64_t tiles = p.batches * ((p.rows + tile - 1) / tile) * ((p.columns + tile - 1) / tile);
    const auto launch = [&](auto fuses) {
      tiles_kernel<decltype(fuses)::value, scalar_t, Sum>
          <<<std::min<int64_t>(tiles, 1 << 16), dim3(kTileThreads, kTileThreads), 0,
             c10::musa::getCurrentMUSAStream()>>>(p, tiles);
    };
    if constexpr (std::is_integral_v<Sum>) {
      launch(std::true_type()); // integers are not rounded
    } else {
      fused ? launch(std::true_type()) : launch(std::false_type());
    }
    C10_MUSA_KERNEL_LAUNCH_CHECK();
    return;
  }
  for_each(p.batches * p.rows * p.columns, [=] __device__(int64_t i) {
    const int64_t column = i % p.columns, row = i / p.columns % p.rows, batch = i / (p.columns * p.rows);
    SumOfProducts<Sum> products;
    for (int64_t k = 0; k < p.depth; ++k) {
      products.add(
          static_cast<Sum>(p.first.at(batch, row, k)), static_cast<Sum>(p.second.at(batch, k, column)), p.fused);
    }
    p.finish(products, batch, row, column);
  });
}

// The meta function has already checked the operands' shapes.
void multiply_batches(
    const at::Tensor& first, const at::Tensor& second, const at::Tensor& added, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out, bool batched = false) {
  if (out.numel() == 0) {
    return;
  }
  // The dispatcher resolves neither operands nor the output of matrix products.
  if (out.is_conj() || out.is_neg()) {
    const at::Tensor values = aten::empty(out.sizes(), out.options());
    multiply_batches(first, second, added, beta, alpha, values, batched);
    out.copy_(values);
    return;
  }
  const at::Tensor x = readable(first, out), y = readable(second, out);
  const at::Tensor z = added.resolve_conj().resolve_neg().expand_as(out);
  constexpr int64_t kOwnLoop = 400; // products; torch's CPU kernel multiplies smaller batches without a library
  // If terms cancel, the result consists of rounding errors, so rounding follows the function that torch calls on the CPU:
  // its own loop, which rounds each operation, or a library, whose operations are fused.
  const bool fused = !batched || x.size(1) * x.size(2) * y.size(2) >= kOwnLoop;
  MUSA_DISPATCH(out.scalar_type(), "matrix product", (MUSA_NUMBERS), {
    multiply<scalar_t, op_t>(x, y, z, beta, alpha, out, fused);
  });
}

void add_outer_product(at::TensorIterator& iter, const at::Scalar& beta, const at::Scalar& alpha) {
  if (iter.common_dtype() == at::kBool) {
    const bool adds = beta.to<bool>(), multiplies = alpha.to<bool>();
    pointwise(iter, [=] __host__ __device__(bool added, bool x, bool y) -> bool {
      return (adds && added) || (multiplies && x && y);
    });
    return;
  }
  MUSA_DISPATCH(iter.dtype(), "addr", (MUSA_NUMBERS), {
    const op_t factor = alpha.to<op_t>();
    const op_t of_added = beta.to<op_t>();
    const bool adds = of_added != op_t(0);
    pointwise(iter, [=] __host__ __device__(scalar_t added, scalar_t x, scalar_t y) -> scalar_t {
      const op_t outer = factor * static_cast<op_t>(x) * static_cast<op_t>(y);
      return static_cast<scalar_t>(adds ? of_added * static_cast<op_t>(added) + outer : outer);
    });
  });
}

} // namespace

void bmm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  multiply_batches(self, mat2, out, 0, 1, out, /*batched=*/true);
}

void baddbmm(
    const at::Tensor& self, const at::Tensor& batch1, const at::Tensor& batch2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(batch1, batch2, self, beta, alpha, out, /*batched=*/true);
}

void mm(const at::Tensor& self, const at::Tensor& mat2, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  const at::Tensor batch = out.unsqueeze(0);
  multiply_batches(self.unsqueeze(0), mat2.unsqueeze(0), batch, 0, 1, batch);
}

void addmm(
    const at::Tensor& self, const at::Tensor& mat1, const at::Tensor& mat2, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(mat1.unsqueeze(0), mat2.unsqueeze(0), self, beta, alpha, out.unsqueeze(0));
}

void addmv(
    const at::Tensor& self, const at::Tensor& mat, const at::Tensor& vec, const at::Scalar& beta,
    const at::Scalar& alpha, const at::Tensor& out) {
  check_overlap(out, self);
  multiply_batches(
      mat.unsqueeze(0), vec.unsqueeze(0).unsqueeze(2), self.dim() == 0 ? self : self.unsqueeze(1), beta, alpha,
      out.unsqueeze(0).unsqueeze(2));
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(addr_stub, &musa_ops_ported::add_outer_product)
} // namespace at::native
