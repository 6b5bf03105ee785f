// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Max pooling over windows of equal size at fractional distances: a random sample in [0, 1) per plane and dimension
// determines the window starts.
#include <ATen/core/Tensor.h>
#include <ATen/native/FractionalMaxPooling.h>

#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/FractionalMaxPool.h"
#include "kernels/pooling.h"

namespace musa_ops_ported {
namespace {

// The start of window o. The last window ends at the end of the input.
template <typename T>
__device__ C10_ALWAYS_INLINE int64_t window_begin(const Windows& windows, int d, int64_t o, T sample) {
  const int64_t length = windows.in[d] - windows.kernel[d];
  if (o == windows.out[d] - 1) {
    return length;
  }
  const T step = static_cast<T>(length) / static_cast<T>(windows.out[d] - 1);
  return static_cast<int64_t>((static_cast<T>(o) + sample) * step) - static_cast<int64_t>(sample * step);
}

Windows windows_of(const at::Tensor& input, const at::Tensor& output, int spatial, at::IntArrayRef kernel) {
  Windows windows(WindowKind::Fractional, Volume(input, spatial), Volume(output, spatial));
  windows.slide(spatial, kernel, {1}, {0}, {1});
  return windows;
}

void fractional(
    const at::Tensor& self, const at::Tensor& samples, int spatial, at::IntArrayRef kernel, const at::Tensor& out,
    const at::Tensor& indices) {
  if (out.numel() == 0) {
    return;
  }
  const Windows windows = windows_of(self, out, spatial, kernel);
  const Volume in(self, spatial), to(out, spatial), places(indices, spatial);
  const int64_t batch = samples.stride(0), channel = samples.stride(1), dimension = samples.stride(2);
  MUSA_DISPATCH(self.scalar_type(), "fractional_max_pool", (MUSA_FLOATING), {
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    const scalar_t* const sampled = samples.const_data_ptr<scalar_t>();
    scalar_t* const result = out.mutable_data_ptr<scalar_t>();
    int64_t* const place = indices.mutable_data_ptr<int64_t>();
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place o = to.place(i);
      const scalar_t* const plane = from + in.plane(o);
      const scalar_t* const sample = sampled + o.batch * batch + o.channel * channel;
      int64_t begin[kSpatial] = {0, 0, 0};
      for (int d = kSpatial - spatial; d < kSpatial; ++d) {
        // The samples are ordered (x, y) in two dimensions and (z, y, x) in three.
        const int which = spatial == 2 ? kSpatial - 1 - d : d;
        begin[d] = window_begin(windows, d, o.at[d], static_cast<op_t>(sample[which * dimension]));
      }
      op_t best = -std::numeric_limits<op_t>::infinity();
      int64_t where = in.number(begin[0], begin[1], begin[2]);
      for (int64_t z = begin[0]; z < begin[0] + windows.kernel[0]; ++z) {
        for (int64_t y = begin[1]; y < begin[1] + windows.kernel[1]; ++y) {
          for (int64_t x = begin[2]; x < begin[2] + windows.kernel[2]; ++x) {
            const op_t value = static_cast<op_t>(plane[in.inside(z, y, x)]);
            if (value > best || value != value) {
              best = value;
              where = in.number(z, y, x);
            }
          }
        }
      }
      result[to.offset(o)] = static_cast<scalar_t>(best);
      place[places.offset(o)] = where;
    });
  });
}

void fractional_gradient(
    const at::Tensor& gradient, const at::Tensor& self, at::IntArrayRef kernel, const at::Tensor& indices, int spatial,
    const at::Tensor& grad_input) {
  if (grad_input.numel() > 0) {
    max_pool_gradient(gradient, indices, windows_of(self, gradient, spatial, kernel), spatial, grad_input);
  }
}

void fractional_gradient_3d(
    const at::Tensor& gradient, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef output_size,
    const at::Tensor& indices, at::Tensor& grad_input) {
  TORCH_CHECK(
      self.dim() == 4 || self.dim() == 5, "fractional_max_pool3d_backward(): expected a 4D or 5D input, but got ",
      self.sizes());
  const char* const names[] = {"time", "height", "width"};
  for (int d = 0; d < 3; ++d) {
    TORCH_CHECK(
        gradient.dim() == self.dim() && output_size[d] == gradient.size(d - 3),
        "fractional_max_pool3d_backward(): gradOutput ", names[d], " unexpected");
  }
  grad_input.resize_(self.sizes());
  fractional_gradient(gradient, self, kernel, indices, 3, grad_input);
}

} // namespace

void fractional_max_pool2d(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef output_size, const at::Tensor& random_samples,
    const at::Tensor& output, const at::Tensor& indices) {
  at::native::fractional_max_pool_check_shape<2>(self, random_samples);
  fractional(self, random_samples, 2, kernel_size, output, indices);
}
void fractional_max_pool2d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef output_size,
    const at::Tensor& indices, const at::Tensor& grad_input) {
  fractional_gradient(grad_output, self, kernel_size, indices, 2, grad_input);
}
void fractional_max_pool3d(
    const at::Tensor& self, int64_t poolSizeT, int64_t poolSizeH, int64_t poolSizeW, int64_t outputT, int64_t outputH,
    int64_t outputW, const at::Tensor& random_samples, int64_t numBatch, int64_t numPlanes, int64_t inputT,
    int64_t inputH, int64_t inputW, const at::Tensor& output, const at::Tensor& indices) {
  at::native::fractional_max_pool_check_shape<3>(self, random_samples);
  fractional(self, random_samples, 3, {poolSizeT, poolSizeH, poolSizeW}, output, indices);
}
at::Tensor fractional_max_pool3d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef output_size,
    const at::Tensor& indices) {
  at::Tensor grad_input = aten::empty({0}, self.options());
  fractional_gradient_3d(grad_output, self, kernel_size, output_size, indices, grad_input);
  return grad_input;
}
at::Tensor& fractional_max_pool3d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef output_size,
    const at::Tensor& indices, at::Tensor& grad_input) {
  fractional_gradient_3d(grad_output, self, kernel_size, output_size, indices, grad_input);
  return grad_input;
}

} // namespace musa_ops_ported
