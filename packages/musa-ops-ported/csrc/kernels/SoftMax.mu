// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// softmax and log_softmax, with their gradients.
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include <limits>
#include <type_traits>

#include "engines/contiguous.h"
#include "engines/dispatch.h"
#include "engines/lines.h"
#include "engines/rows.muh"
#include "kernels/SoftMax.h"

namespace musa_ops_ported {
namespace {

// Largest block on a discrete GPU: its threads hold rows of up to 8192 elements in registers.
constexpr int kMostThreads = 512;

struct Largest {
  template <typename Real>
  __device__ Real operator()(Real a, Real b) const {
    return b > a || b != b ? b : a;
  }
};

// For a row that fits into the registers of a block's threads: reads it once.
template <typename In, typename Out, bool logarithm>
__device__ C10_ALWAYS_INLINE void softmax_kept(
    const In* in, Out* out, int64_t size, int64_t stride, int64_t first, int64_t step, const SharedRow& all) {
  using Real = at::opmath_type<In>;
  Real x[kKept];
  keep_row(x, in, stride, first, size, step, -std::numeric_limits<Real>::infinity());
  Real largest = x[0];
#pragma unroll
  for (int i = 1; i < kKept; ++i) {
    largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
  }
  largest = all(largest, Largest());
  Real sum = 0;
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    x[i] -= largest;
    const Real power = std::exp(x[i]);
    sum += power;
    x[i] = logarithm ? x[i] : power;
  }
  sum = all(sum, Plus());
  const Real shift = logarithm ? std::log(sum) : Real(0);
  write_row(out, stride, first, size, step, [&](int i) { return logarithm ? x[i] - shift : x[i] / sum; });
}

// Reads a longer row twice. In the first pass each thread tracks the largest element and the sum of exp(element -
// largest), which is rescaled when a larger element occurs. NaN never compares as larger, but makes the sum NaN.
template <typename In, typename Out, bool logarithm>
__device__ C10_ALWAYS_INLINE void softmax_read_twice(
    const In* in, Out* out, int64_t size, int64_t stride, int64_t first, int64_t step, const SharedRow& all) {
  using Real = at::opmath_type<In>;
  constexpr Real least = -std::numeric_limits<Real>::infinity();
  const auto load = [&](int64_t k) { return static_cast<Real>(in[k * stride]); };
  Real own = least, sum = 0;
  in_groups<8, Real>(first, size, step, load, [&](int64_t, int n, const Real* x) {
    Real top = own;
    for (int i = 0; i < n; ++i) {
      top = x[i] > top ? x[i] : top;
    }
    const Real from = top == least ? Real(0) : top; // avoids infinity - infinity
    sum *= top > own ? std::exp(own - from) : Real(1);
    Real some = 0;
    for (int i = 0; i < n; ++i) {
      some += std::exp(x[i] - from);
    }
    sum += some;
    own = top;
  });
  const Real largest = all(own, Largest());
  sum = all(own == largest || sum == Real(0) ? sum : sum * std::exp(own - largest), Plus());
  const Real shift = logarithm ? largest + std::log(sum) : largest;
  in_groups<8, Real>(first, size, step, load, [&](int64_t k, int n, const Real* x) {
    for (int i = 0; i < n; ++i) {
      out[(k + i * step) * stride] = static_cast<Out>(logarithm ? x[i] - shift : std::exp(x[i] - shift) / sum);
    }
  });
}

// Processes this thread's share of a line: from `first` in steps of `step`; `all` combines values across threads.
template <typename In, typename Out, bool logarithm, typename All>
__device__ C10_ALWAYS_INLINE void softmax_line(
    const In* in, Out* out, int64_t size, int64_t stride, int64_t first, int64_t step, const All& all) {
  using Real = at::opmath_type<In>;
  if constexpr (std::is_same_v<All, SharedRow>) {
    if (keeps_row(all, size)) {
      softmax_kept<In, Out, logarithm>(in, out, size, stride, first, step, all);
    } else {
      softmax_read_twice<In, Out, logarithm>(in, out, size, stride, first, step, all);
    }
    return;
  }
  Real largest = -std::numeric_limits<Real>::infinity();
  for (int64_t k = first; k < size; k += step) {
    const Real x = static_cast<Real>(in[k * stride]);
    largest = x > largest || x != x ? x : largest;
  }
  largest = all(largest, Largest());
  Real sum = 0;
  for (int64_t k = first; k < size; k += step) {
    sum += std::exp(static_cast<Real>(in[k * stride]) - largest);
  }
  sum = all(sum, Plus());
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
    const Out* gradient, const Out* output, In* out, int64_t size, int64_t stride, int64_t first, int64_t step,
    const All& all) {
  using Real = at::opmath_type<Out>;
  if constexpr (std::is_same_v<All, SharedRow>) {
    if (keeps_row(all, size)) {
      Real g[kKept], y[kKept];
      keep_row(g, gradient, stride, first, size, step, Real(0));
      keep_row(y, output, stride, first, size, step, Real(0));
      Real sum = 0;
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        sum += logarithm ? g[i] : g[i] * y[i];
      }
      sum = all(sum, Plus());
      write_row(out, stride, first, size, step, [&](int i) {
        return logarithm ? g[i] - std::exp(y[i]) * sum : (g[i] - sum) * y[i];
      });
      return;
    }
  }
  Real sum = 0;
  for (int64_t k = first; k < size; k += step) {
    const Real g = static_cast<Real>(gradient[k * stride]);
    sum += logarithm ? g : g * static_cast<Real>(output[k * stride]);
  }
  sum = all(sum, Plus());
  if constexpr (std::is_same_v<All, SharedRow>) {
    in_groups<4, Sums<Real, 2>>(
        first, size, step,
        [&](int64_t k) {
          return Sums<Real, 2>{{static_cast<Real>(gradient[k * stride]), static_cast<Real>(output[k * stride])}};
        },
        [&](int64_t k, int n, const Sums<Real, 2>* of) {
          for (int i = 0; i < n; ++i) {
            const Real g = of[i].at[0], y = of[i].at[1];
            out[(k + i * step) * stride] = static_cast<In>(logarithm ? g - std::exp(y) * sum : (g - sum) * y);
          }
        });
    return;
  }
  for (int64_t k = first; k < size; k += step) {
    const Real g = static_cast<Real>(gradient[k * stride]);
    const Real y = static_cast<Real>(output[k * stride]);
    out[k * stride] = static_cast<In>(logarithm ? g - std::exp(y) * sum : (g - sum) * y);
  }
}

template <typename In, typename Out, bool logarithm>
void forward_lines(const Lines& lines, const In* const from, Out* const to) {
  using Real = at::opmath_type<In>;
  each_row<Real, kMostThreads>(
      lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, const auto& all) {
        const int64_t start = lines.start(line);
        softmax_line<In, Out, logarithm>(from + start, to + start, lines.size, lines.stride, first, step, all);
      });
}

template <typename In, typename Out, bool logarithm>
void backward_lines(const Lines& lines, const Out* const g, const Out* const y, In* const to) {
  using Real = at::opmath_type<Out>;
  each_row<Real, kMostThreads>(
      lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, const auto& all) {
        const int64_t start = lines.start(line);
        softmax_gradient_line<In, Out, logarithm>(
            g + start, y + start, to + start, lines.size, lines.stride, first, step, all);
      });
}

template <typename In, typename Out, bool logarithm>
void forward_of(const at::Tensor& in, int64_t dim, const at::Tensor& out) {
  const Lines lines(in, dim);
  forward_lines<In, Out, logarithm>(lines, in.const_data_ptr<In>(), out.mutable_data_ptr<Out>());
}

template <typename In, typename Out, bool logarithm>
void backward_of(const at::Tensor& gradient, const at::Tensor& output, int64_t dim, const at::Tensor& out) {
  const Lines lines(output, dim);
  backward_lines<In, Out, logarithm>(
      lines, gradient.const_data_ptr<Out>(), output.const_data_ptr<Out>(), out.mutable_data_ptr<In>());
}

template <bool logarithm>
void forward(const at::Tensor& self, int64_t dim, const at::Tensor& out) {
  if (self.numel() == 0) {
    return;
  }
  const at::Tensor in = self.contiguous();
  write_contiguous(out, [&](const at::Tensor& made) {
    MUSA_DISPATCH(self.scalar_type(), "softmax", (MUSA_FLOATING), {
      if (out.scalar_type() == self.scalar_type()) {
        forward_of<scalar_t, scalar_t, logarithm>(in, dim, made);
      } else {
        forward_of<scalar_t, op_t, logarithm>(in, dim, made); // half types to float
      }
    });
  });
}

template <bool logarithm>
void backward(const at::Tensor& gradient, const at::Tensor& output, int64_t dim, const at::Tensor& out) {
  musa_runtime::check_shape("softmax_backward", "grad_output", gradient, output.sizes());
  if (gradient.numel() == 0) {
    return;
  }
  const at::Tensor g = gradient.contiguous();
  const at::Tensor y = output.contiguous();
  write_contiguous(out, [&](const at::Tensor& made) {
    MUSA_DISPATCH(out.scalar_type(), "softmax_backward", (MUSA_FLOATING), {
      if (out.scalar_type() == g.scalar_type()) {
        backward_of<scalar_t, scalar_t, logarithm>(g, y, dim, made);
      } else {
        backward_of<scalar_t, op_t, logarithm>(g, y, dim, made);
      }
    });
  });
}

} // namespace

void _softmax(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out) {
  forward<false>(self, dim, out);
}
void _log_softmax(const at::Tensor& self, int64_t dim, bool half_to_float, const at::Tensor& out) {
  forward<true>(self, dim, out);
}
void _softmax_backward_data(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType,
    const at::Tensor& grad_input) {
  backward<false>(grad_output, output, dim, grad_input);
}
void _log_softmax_backward_data(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType, const at::Tensor& out) {
  backward<true>(grad_output, output, dim, out);
}

} // namespace musa_ops_ported
