// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Softmax and its logarithm, with gradients: threads of a block share a line, or have one each where lines are short.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>

#include <limits>

#include "engines/dispatch.h"
#include "engines/lines.h"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

constexpr int kSoftmaxThreads = 128;

template <typename T, typename Combine>
__device__ C10_ALWAYS_INLINE T over_block(T value, T* shared, const Combine& combine) {
  constexpr int kStep = 16;
  shared[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x < kSoftmaxThreads / kStep) {
    for (int i = 1; i < kStep; ++i) {
      value = combine(value, shared[threadIdx.x + i * (kSoftmaxThreads / kStep)]);
    }
    shared[kSoftmaxThreads + threadIdx.x] = value;
  }
  __syncthreads();
  value = shared[kSoftmaxThreads];
  for (int i = 1; i < kSoftmaxThreads / kStep; ++i) {
    value = combine(value, shared[kSoftmaxThreads + i]);
  }
  __syncthreads();
  return value;
}

// One line's share of a thread: from `first` on in steps of `step`; `all` makes the threads' values one.
template <typename In, typename Out, bool logarithm, typename All>
__device__ C10_ALWAYS_INLINE void softmax_line(
    const In* in, Out* out, int64_t size, int64_t stride, int64_t first, int64_t step, const All& all) {
  using Real = at::opmath_type<In>;
  Real largest = -std::numeric_limits<Real>::infinity();
  for (int64_t k = first; k < size; k += step) {
    const Real x = static_cast<Real>(in[k * stride]);
    largest = x > largest || x != x ? x : largest;
  }
  largest = all(largest, [](Real a, Real b) { return b > a || b != b ? b : a; });
  Real sum = 0;
  for (int64_t k = first; k < size; k += step) {
    sum += std::exp(static_cast<Real>(in[k * stride]) - largest);
  }
  sum = all(sum, [](Real a, Real b) { return a + b; });
  if constexpr (logarithm) {
    const Real shift = largest + std::log(sum);
    for (int64_t k = first; k < size; k += step) {
      out[k * stride] = static_cast<Out>(static_cast<Real>(in[k * stride]) - shift);
    }
  } else {
    for (int64_t k = first; k < size; k += step) {
      out[k * stride] = static_cast<Out>(std::exp(static_cast<Real>(in[k * stride]) - largest) / sum);
    }
  }
}

template <typename In, typename Out, bool logarithm, typename All>
__device__ C10_ALWAYS_INLINE void softmax_gradient_line(
    const Out* gradient, const Out* output, In* out, int64_t size, int64_t stride, int64_t first, int64_t step, const All& all) {
  using Real = at::opmath_type<Out>;
  Real sum = 0;
  for (int64_t k = first; k < size; k += step) {
    const Real g = static_cast<Real>(gradient[k * stride]);
    sum += logarithm ? g : g * static_cast<Real>(output[k * stride]);
  }
  sum = all(sum, [](Real a, Real b) { return a + b; });
  for (int64_t k = first; k < size; k += step) {
    const Real g = static_cast<Real>(gradient[k * stride]);
    const Real y = static_cast<Real>(output[k * stride]);
    out[k * stride] = static_cast<In>(logarithm ? g - std::exp(y) * sum : (g - sum) * y);
  }
}

template <typename Real, typename F>
__global__ void C10_LAUNCH_BOUNDS_1(kSoftmaxThreads) block_per_line(const Lines lines, const F f) {
  __shared__ Real shared[kSoftmaxThreads + 16];
  for (int64_t line = blockIdx.x; line < lines.count; line += gridDim.x) {
    f(lines.start(line), threadIdx.x, kSoftmaxThreads, [&](Real value, const auto& combine) {
      return over_block(value, shared, combine);
    });
  }
}
template <typename Real, typename F>
__global__ void C10_LAUNCH_BOUNDS_1(kSoftmaxThreads) thread_per_line(const Lines lines, const F f) {
  for (int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; line < lines.count;
       line += int64_t(gridDim.x) * blockDim.x) {
    f(lines.start(line), 0, 1, [](Real value, const auto&) { return value; });
  }
}

template <typename Real, typename F>
void each_line(const Lines& lines, const F& f) {
  const auto stream = c10::musa::getCurrentMUSAStream();
  constexpr int64_t most = 1 << 16;
  if (lines.size > 1024 && lines.count < 4096) {
    block_per_line<Real, F><<<std::min(lines.count, most), kSoftmaxThreads, 0, stream>>>(lines, f);
  } else {
    const int64_t blocks = (lines.count + kSoftmaxThreads - 1) / kSoftmaxThreads;
    thread_per_line<Real, F><<<std::min(blocks, most), kSoftmaxThreads, 0, stream>>>(lines, f);
  }
  C10_MUSA_KERNEL_LAUNCH_CHECK();
}

template <typename In, typename Out, bool logarithm>
void forward_of(const at::Tensor& in, int64_t dim, const at::Tensor& out) {
  const Lines lines(in, dim);
  const In* const from = in.const_data_ptr<In>();
  Out* const to = out.mutable_data_ptr<Out>();
  each_line<at::opmath_type<In>>(lines, [=] __device__(int64_t start, int64_t first, int64_t step, const auto& all) {
    softmax_line<In, Out, logarithm>(from + start, to + start, lines.size, lines.stride, first, step, all);
  });
}

template <typename In, typename Out, bool logarithm>
void backward_of(const at::Tensor& gradient, const at::Tensor& output, int64_t dim, const at::Tensor& out) {
  const Lines lines(output, dim);
  const Out* const g = gradient.const_data_ptr<Out>();
  const Out* const y = output.const_data_ptr<Out>();
  In* const to = out.mutable_data_ptr<In>();
  each_line<at::opmath_type<Out>>(lines, [=] __device__(int64_t start, int64_t first, int64_t step, const auto& all) {
    softmax_gradient_line<In, Out, logarithm>(g + start, y + start, to + start, lines.size, lines.stride, first, step, all);
  });
}

at::Tensor dense_like(const at::Tensor& out) {
  return out.is_contiguous() ? out : at::empty_like(out, at::MemoryFormat::Contiguous);
}
void give(const at::Tensor& made, const at::Tensor& out) {
  if (!made.is_same(out)) {
    out.copy_(made);
  }
}

template <bool logarithm>
void forward(const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  if (self.numel() == 0) {
    return;
  }
  const at::Tensor in = self.contiguous();
  const at::Tensor made = dense_like(out);
  MUSA_DISPATCH(self.scalar_type(), "softmax", (MUSA_FLOATING), {
    if (out.scalar_type() == self.scalar_type()) {
      forward_of<scalar_t, scalar_t, logarithm>(in, dim, made);
    } else {
      forward_of<scalar_t, op_t, logarithm>(in, dim, made); // half types to float
    }
  });
  give(made, out);
}

template <bool logarithm>
void backward(const at::Tensor& gradient, const at::Tensor& output, int64_t dim, const at::Tensor& out) {
  if (gradient.numel() == 0) {
    return;
  }
  const at::Tensor g = gradient.contiguous();
  const at::Tensor y = output.contiguous();
  const at::Tensor made = dense_like(out);
  MUSA_DISPATCH(out.scalar_type(), "softmax_backward", (MUSA_FLOATING), {
    if (out.scalar_type() == g.scalar_type()) {
      backward_of<scalar_t, scalar_t, logarithm>(g, y, dim, made);
    } else {
      backward_of<scalar_t, op_t, logarithm>(g, y, dim, made);
    }
  });
  give(made, out);
}

} // namespace

void _softmax(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out) {
  forward<false>(self, dim, out);
}
void _log_softmax(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out) {
  forward<true>(self, dim, out);
}
void _softmax_backward_data(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType, const at::Tensor& grad_input) {
  backward<false>(grad_output, output, dim, grad_input);
}
void _log_softmax_backward_data(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType, const at::Tensor& out) {
  backward<true>(grad_output, output, dim, out);
}

} // namespace musa_ops_ported
