// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Softmax and its logarithm, with gradients.
#include <ATen/core/Tensor.h>

#include <limits>

#include "engines/contiguous.h"
#include "engines/dispatch.h"
#include "engines/lines.h"
#include "engines/rows.muh"
#include "kernels.h"

namespace musa_ops_ported {
namespace {

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

template <typename In, typename Out, bool logarithm>
void forward_of(const at::Tensor& in, int64_t dim, const at::Tensor& out) {
  const Lines lines(in, dim);
  const In* const from = in.const_data_ptr<In>();
  Out* const to = out.mutable_data_ptr<Out>();
  each_row<at::opmath_type<In>>(lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, const auto& all) {
    const int64_t start = lines.start(line);
    softmax_line<In, Out, logarithm>(from + start, to + start, lines.size, lines.stride, first, step, all);
  });
}

template <typename In, typename Out, bool logarithm>
void backward_of(const at::Tensor& gradient, const at::Tensor& output, int64_t dim, const at::Tensor& out) {
  const Lines lines(output, dim);
  const Out* const g = gradient.const_data_ptr<Out>();
  const Out* const y = output.const_data_ptr<Out>();
  In* const to = out.mutable_data_ptr<In>();
  each_row<at::opmath_type<Out>>(lines.count, lines.size, [=] __device__(int64_t line, int64_t first, int64_t step, const auto& all) {
    const int64_t start = lines.start(line);
    softmax_gradient_line<In, Out, logarithm>(g + start, y + start, to + start, lines.size, lines.stride, first, step, all);
  });
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
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType, const at::Tensor& grad_input) {
  backward<false>(grad_output, output, dim, grad_input);
}
void _log_softmax_backward_data(
    const at::Tensor& grad_output, const at::Tensor& output, int64_t dim, at::ScalarType, const at::Tensor& out) {
  backward<true>(grad_output, output, dim, out);
}

} // namespace musa_ops_ported
