// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Max pooling with indices, over sliding or adaptive windows.
#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Pool.h>
#include <musa_runtime/argument_checks.h>

#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/divisor.h"
#include "engines/for_each.muh"
#include "kernels/MaxPool.h"
#include "kernels/pooling.h"

namespace musa_ops_ported {
namespace {

// Output positions in memory order and their windows, computed in the integer type Index.
template <typename Index>
struct MaxPlan {
  Windows windows;
  Volume in;
  bool deep, channels_last;
  Divisor<Index> channels, sizes[kSpatial];

  MaxPlan(const Windows& windows, const Volume& in, const Volume& out, int spatial, bool channels_last)
      : windows(windows),
        in(in),
        deep(spatial == kSpatial),
        channels_last(channels_last),
        channels(out.channels),
        sizes{Divisor<Index>(out.size[0]), Divisor<Index>(out.size[1]), Divisor<Index>(out.size[2])} {}

  __device__ C10_ALWAYS_INLINE Index split(const Divisor<Index>& by, Index size, Index& index) const {
    const Index rest = by.quotient(index), digit = index - rest * size;
    index = rest;
    return digit;
  }
  template <int d>
  __device__ C10_ALWAYS_INLINE Index at(Index& index) const {
    return split(sizes[d], static_cast<Index>(windows.out[d]), index);
  }
  __device__ C10_ALWAYS_INLINE Index channel(Index& index) const {
    return split(channels, static_cast<Index>(in.channels), index);
  }
  // As Windows::inputs, for sliding and adaptive windows.
  template <int d>
  __device__ C10_ALWAYS_INLINE void window(Index o, Index& begin, Index& end, Index& step) const {
    if (windows.kind == WindowKind::Adaptive) {
      const auto in = static_cast<Index>(windows.in[d]), out = static_cast<Index>(windows.out[d]);
      begin = sizes[d].quotient(o * in);
      end = sizes[d].quotient((o + 1) * in + out - 1);
      step = 1;
      return;
    }
    step = static_cast<Index>(windows.dilation[d]);
    begin = o * static_cast<Index>(windows.stride[d]) - static_cast<Index>(windows.padding[d]);
    end = begin + static_cast<Index>(windows.kernel[d] - 1) * step + 1;
    end = end < static_cast<Index>(windows.in[d]) ? end : static_cast<Index>(windows.in[d]);
    while (begin < 0) {
      begin += step;
    }
  }
};

template <typename Index>
void maximum_of(const at::Tensor& self, const MaxPlan<Index>& plan, const at::Tensor& out, const at::Tensor& indices) {
  MUSA_DISPATCH(self.scalar_type(), "max_pool", (MUSA_REAL), {
    // The smallest value of the dtype.
    using Limits = std::numeric_limits<op_t>;
    constexpr op_t least = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const result = out.mutable_data_ptr<scalar_t>();
    int64_t* const place = indices.mutable_data_ptr<int64_t>();
    for_each(out.numel(), [=] __device__(int64_t i) {
      Index rest = static_cast<Index>(i);
      Index channel = plan.channels_last ? plan.channel(rest) : 0;
      Index xs, x_end, x_step, ys, y_end, y_step, zs = 0, z_end = 1, z_step = 1;
      plan.template window<2>(plan.template at<2>(rest), xs, x_end, x_step);
      plan.template window<1>(plan.template at<1>(rest), ys, y_end, y_step);
      if (plan.deep) {
        plan.template window<0>(plan.template at<0>(rest), zs, z_end, z_step);
      }
      channel = plan.channels_last ? channel : plan.channel(rest);
      const Index plane =
          rest * static_cast<Index>(plan.in.batch_stride) + channel * static_cast<Index>(plan.in.channel_stride);
      const auto height = static_cast<Index>(plan.in.size[1]), width = static_cast<Index>(plan.in.size[2]);
      const auto x_stride = static_cast<Index>(plan.in.stride[2]);
      op_t best = least;
      Index where = (zs * height + ys) * width + xs;
      const auto compare = [&](op_t value, Index number) {
        if (value > best || value != value) {
          best = value;
          where = number;
        }
      };
      for (Index z = zs; z < z_end; z += z_step) {
        for (Index y = ys; y < y_end; y += y_step) {
          const Index number = (z * height + y) * width;
          const Index row =
              plane + z * static_cast<Index>(plan.in.stride[0]) + y * static_cast<Index>(plan.in.stride[1]);
          // Issues three loads at a time. Past the window's end they repeat the first element, which does not change
          // the maximum.
          for (Index x = xs; x < x_end; x += 3 * x_step) {
            const Index x1 = x + x_step < x_end ? x + x_step : x, x2 = x + 2 * x_step < x_end ? x + 2 * x_step : x;
            const op_t first = static_cast<op_t>(from[row + x * x_stride]);
            const op_t second = static_cast<op_t>(from[row + x1 * x_stride]);
            const op_t third = static_cast<op_t>(from[row + x2 * x_stride]);
            compare(first, number + x);
            compare(second, number + x1);
            compare(third, number + x2);
          }
        }
      }
      result[i] = static_cast<scalar_t>(best);
      place[i] = where;
    });
  });
}

bool in_32_bits(const Windows& windows, const Volume& in, int64_t outputs) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t last = (in.batches - 1) * in.batch_stride + (in.channels - 1) * in.channel_stride;
  bool fits = outputs <= most;
  for (int d = 0; d < kSpatial; ++d) {
    last += (in.size[d] - 1) * in.stride[d];
    // The loops may compute indices up to this bound before they end.
    fits = fits && windows.in[d] + 2 * windows.padding[d] + (windows.kernel[d] + 3) * windows.dilation[d] <= most &&
        (windows.kind != WindowKind::Adaptive || (windows.in[d] + 1) * (windows.out[d] + 1) <= most);
  }
  return fits && last <= most && in.count() <= most;
}

void maximum_of(
    const at::Tensor& self, const Windows& windows, int spatial, const at::Tensor& out, const at::Tensor& indices) {
  const auto format = spatial == 3 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  const bool contiguous = out.is_contiguous() && indices.is_contiguous();
  const bool channels_last = !contiguous && out.is_contiguous(format) && indices.is_contiguous(format);
  if (!contiguous && !channels_last) {
    const at::Tensor values = aten::empty(out.sizes(), out.options()),
                     places = aten::empty(out.sizes(), indices.options());
    maximum_of(self, windows, spatial, values, places);
    out.copy_(values);
    indices.copy_(places);
    return;
  }
  const Volume in(self, spatial), to(out, spatial);
  if (in_32_bits(windows, in, out.numel())) {
    maximum_of(self, MaxPlan<int32_t>(windows, in, to, spatial, channels_last), out, indices);
  } else {
    maximum_of(self, MaxPlan<int64_t>(windows, in, to, spatial, channels_last), out, indices);
  }
}

Windows sliding(
    const at::Tensor& input, const at::Tensor& output, int spatial, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation) {
  Windows windows(WindowKind::Sliding, Volume(input, spatial), Volume(output, spatial));
  windows.slide(spatial, kernel, stride, padding, dilation);
  return windows;
}

void adaptive(const at::Tensor& self, int spatial, const at::Tensor& out, const at::Tensor& indices) {
  if (out.numel() > 0) {
    maximum_of(self, Windows(WindowKind::Adaptive, Volume(self, spatial), Volume(out, spatial)), spatial, out, indices);
  }
}

void adaptive_gradient(
    const at::Tensor& gradient, const at::Tensor& self, const at::Tensor& indices, int spatial,
    const at::Tensor& grad_input) {
  if (grad_input.numel() > 0) {
    const Windows windows(WindowKind::Adaptive, Volume(self, spatial), Volume(gradient, spatial));
    max_pool_gradient(gradient, indices, windows, spatial, grad_input);
  }
}

struct Triple {
  int64_t t, h, w;
};
Triple triple(at::IntArrayRef values, const char* message) {
  TORCH_CHECK(values.size() == 1 || values.size() == 3, message);
  return values.size() == 1 ? Triple{values[0], values[0], values[0]} : Triple{values[0], values[1], values[2]};
}

// Checked arguments of max_pool3d, and the size of its output.
struct Sliding3d {
  Triple kernel, stride, padding, dilation;
  int64_t channels, in[3], out[3];

  Sliding3d(
      const at::Tensor& input, at::IntArrayRef kernel_size, at::IntArrayRef strides, at::IntArrayRef paddings,
      at::IntArrayRef dilations, bool ceil_mode) {
    kernel = triple(kernel_size, "max_pool3d: kernel_size must either be a single int, or a tuple of three ints");
    stride = strides.empty()
        ? kernel
        : triple(strides, "max_pool3d: stride must either be omitted, a single int, or a tuple of three ints");
    padding = triple(paddings, "max_pool3d: padding must either be a single int, or a tuple of three ints");
    dilation = triple(dilations, "max_pool3d: dilation must be either a single int, or a tuple of three ints");
    TORCH_CHECK(input.dim() == 4 || input.dim() == 5, "non-empty 4D or 5D (batch mode) tensor expected for input");
    channels = input.size(-4);
    const int64_t kernels[] = {kernel.t, kernel.h, kernel.w}, steps[] = {stride.t, stride.h, stride.w};
    const int64_t pads[] = {padding.t, padding.h, padding.w}, gaps[] = {dilation.t, dilation.h, dilation.w};
    for (int d = 0; d < 3; ++d) {
      in[d] = input.size(d - 3);
      out[d] = at::native::pooling_output_shape<int64_t>(in[d], kernels[d], pads[d], steps[d], gaps[d], ceil_mode);
    }
  }
};

void max_pool3d(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode, at::Tensor& out, at::Tensor& indices) {
  const Sliding3d s(self, kernel_size, stride, padding, dilation, ceil_mode);
  at::native::pool3d_shape_check(
      self, s.channels, s.kernel.t, s.kernel.h, s.kernel.w, s.stride.t, s.stride.h, s.stride.w, s.padding.t,
      s.padding.h, s.padding.w, s.dilation.t, s.dilation.h, s.dilation.w, s.in[0], s.in[1], s.in[2], s.out[0], s.out[1],
      s.out[2], "max_pool3d_with_indices()");
  at::DimVector shape(self.sizes());
  std::copy_n(s.out, 3, shape.end() - 3);
  // Only rank 5 has a channels-last format.
  const auto format = self.dim() == 5 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous;
  for (at::Tensor* result : {&out, &indices}) {
    if (format == at::MemoryFormat::Contiguous) {
      aten::resize_output(*result, shape);
    } else {
      result->resize_(shape, format);
    }
  }
  if (out.numel() > 0) {
    maximum_of(self, sliding(self, out, 3, kernel_size, stride, padding, dilation), 3, out, indices);
  }
}

void max_pool3d_gradient(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices,
    at::Tensor& grad_input) {
  const Sliding3d s(self, kernel_size, stride, padding, dilation, ceil_mode);
  at::native::pool3d_shape_check(
      self, s.channels, s.kernel.t, s.kernel.h, s.kernel.w, s.stride.t, s.stride.h, s.stride.w, s.padding.t,
      s.padding.h, s.padding.w, s.dilation.t, s.dilation.h, s.dilation.w, s.in[0], s.in[1], s.in[2], s.out[0], s.out[1],
      s.out[2], "max_pool3d_with_indices_backward()");
  const int64_t dimensions = self.dim();
  for (const at::Tensor* tensor : {&grad_output, &indices}) {
    at::check_dim_size(*tensor, dimensions, dimensions - 4, s.channels);
    for (int d = 0; d < 3; ++d) {
      at::check_dim_size(*tensor, dimensions, dimensions - 3 + d, s.out[d]);
    }
  }
  if (self.dim() == 5) {
    grad_input.resize_(self.sizes(), self.suggest_memory_format());
  } else {
    grad_input.resize_(self.sizes());
  }
  if (grad_input.numel() > 0) {
    max_pool_gradient(
        grad_output, indices, sliding(self, grad_output, 3, kernel_size, stride, padding, dilation), 3, grad_input);
  }
}

} // namespace

void max_pool_gradient(
    const at::Tensor& gradient, const at::Tensor& indices, const Windows& windows, int spatial,
    const at::Tensor& grad_input) {
  at::DimVector shape(grad_input.sizes().slice(0, grad_input.dim() - spatial));
  shape.append(gradient.sizes().end() - spatial, gradient.sizes().end());
  musa_runtime::check_shape("max_pool_backward", "grad_output", gradient, shape);
  musa_runtime::check_shape("max_pool_backward", "indices", indices, shape);
  const Volume out(gradient, spatial), places(indices, spatial), in(grad_input, spatial);
  MUSA_DISPATCH(gradient.scalar_type(), "max_pool_backward", (MUSA_FLOATING), {
    const scalar_t* const from = gradient.const_data_ptr<scalar_t>();
    const int64_t* const places_from = indices.const_data_ptr<int64_t>();
    scalar_t* const result = grad_input.mutable_data_ptr<scalar_t>();
    for_each(in.count(), [=] __device__(int64_t i) {
      const Place at = in.place(i);
      const scalar_t* const plane = from + out.plane(at);
      const int64_t* const where = places_from + places.plane(at);
      const int64_t number = in.number(at.at[0], at.at[1], at.at[2]);
      const Span zs = windows.outputs(0, at.at[0]), ys = windows.outputs(1, at.at[1]);
      const Span xs = windows.outputs(2, at.at[2]);
      op_t sum = 0;
      for (int64_t z = zs.begin; z < zs.end; ++z) {
        for (int64_t y = ys.begin; y < ys.end; ++y) {
          for (int64_t x = xs.begin; x < xs.end; ++x) {
            if (where[places.inside(z, y, x)] == number) {
              sum += static_cast<op_t>(plane[out.inside(z, y, x)]);
            }
          }
        }
      }
      result[in.offset(at)] = static_cast<scalar_t>(sum);
    });
  });
}

void max_pool2d_with_indices(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& out, const at::Tensor& indices) {
  if (out.numel() > 0) {
    maximum_of(self, sliding(self, out, 2, kernel_size, stride, padding, dilation), 2, out, indices);
  }
}
void max_pool2d_with_indices_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices,
    const at::Tensor& grad_input) {
  if (grad_input.numel() > 0) {
    max_pool_gradient(
        grad_output, indices, sliding(self, grad_output, 2, kernel_size, stride, padding, dilation), 2, grad_input);
  }
}

std::tuple<at::Tensor, at::Tensor> max_pool3d_with_indices(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode) {
  at::Tensor out = aten::empty({0}, self.options());
  at::Tensor indices = aten::empty({0}, self.options().dtype(at::kLong));
  max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
  return {out, indices};
}
std::tuple<at::Tensor&, at::Tensor&> max_pool3d_with_indices_out(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
    at::IntArrayRef dilation, bool ceil_mode, at::Tensor& out, at::Tensor& indices) {
  max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode, out, indices);
  return std::tuple<at::Tensor&, at::Tensor&>(out, indices);
}
at::Tensor max_pool3d_with_indices_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices) {
  at::Tensor grad_input = aten::empty({0}, self.options());
  max_pool3d_gradient(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input);
  return grad_input;
}
at::Tensor& max_pool3d_with_indices_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode, const at::Tensor& indices,
    at::Tensor& grad_input) {
  max_pool3d_gradient(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input);
  return grad_input;
}

void adaptive_max_pool2d(
    const at::Tensor& self, at::IntArrayRef output_size, const at::Tensor& out, const at::Tensor& indices) {
  adaptive(self, 2, out, indices);
}
void adaptive_max_pool3d(
    const at::Tensor& self, at::IntArrayRef output_size, const at::Tensor& out, const at::Tensor& indices) {
  adaptive(self, 3, out, indices);
}
void adaptive_max_pool2d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& indices, const at::Tensor& grad_input) {
  adaptive_gradient(grad_output, self, indices, 2, grad_input);
}
void adaptive_max_pool3d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, const at::Tensor& indices, const at::Tensor& grad_input) {
  adaptive_gradient(grad_output, self, indices, 3, grad_input);
}

} // namespace musa_ops_ported
