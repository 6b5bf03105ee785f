// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Average pooling over sliding or adaptive windows. In the backward pass each input gathers the gradients of the
// windows that contain it.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "kernels/AveragePool.h"
#include "kernels/pooling.h"

namespace musa_ops_ported {
namespace {

struct AverageWindows : Windows {
  bool include_padding = true;
  int64_t divisor_override = 0; // 0: not given

  using Windows::Windows;

  C10_HOST_DEVICE int64_t width(int d, int64_t o) const {
    const Span span = kind == WindowKind::Sliding && include_padding ? padded(d, o) : inputs(d, o);
    return span.end - span.begin;
  }
  C10_HOST_DEVICE int64_t divisor(int64_t z, int64_t y, int64_t x) const {
    return divisor_override != 0 ? divisor_override : width(0, z) * width(1, y) * width(2, x);
  }
};

void average(const at::Tensor& self, const AverageWindows& windows, int spatial, const at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  const Volume in(self, spatial), to(out, spatial);
  MUSA_DISPATCH(self.scalar_type(), "avg_pool", (MUSA_FLOATING, at::kLong), {
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const result = out.mutable_data_ptr<scalar_t>();
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place o = to.place(i);
      const scalar_t* const plane = from + in.plane(o);
      const Span zs = windows.inputs(0, o.at[0]), ys = windows.inputs(1, o.at[1]), xs = windows.inputs(2, o.at[2]);
      op_t sum = 0;
      bool empty = true;
      for (int64_t z = zs.begin; z < zs.end; ++z) {
        for (int64_t y = ys.begin; y < ys.end; ++y) {
          for (int64_t x = xs.begin; x < xs.end; ++x) {
            sum += static_cast<op_t>(plane[in.inside(z, y, x)]);
            empty = false;
          }
        }
      }
      // A window entirely in the padding has divisor 0 and average 0.
      const op_t divisor = empty ? op_t(1) : static_cast<op_t>(windows.divisor(o.at[0], o.at[1], o.at[2]));
      result[to.offset(o)] = static_cast<scalar_t>(sum / divisor);
    });
  });
}

void average_gradient(
    const at::Tensor& gradient, const AverageWindows& windows, int spatial, const at::Tensor& grad_input) {
  at::DimVector shape(grad_input.sizes().slice(0, grad_input.dim() - spatial));
  shape.append(gradient.sizes().end() - spatial, gradient.sizes().end());
  musa_runtime::check_shape("avg_pool_backward", "grad_output", gradient, shape);
  const Volume out(gradient, spatial), in(grad_input, spatial);
  MUSA_DISPATCH(gradient.scalar_type(), "avg_pool_backward", (MUSA_FLOATING), {
    const scalar_t* const from = gradient.const_data_ptr<scalar_t>();
    scalar_t* const result = grad_input.mutable_data_ptr<scalar_t>();
    for_each(in.count(), [=] __device__(int64_t i) {
      const Place at = in.place(i);
      const scalar_t* const plane = from + out.plane(at);
      const Span zs = windows.outputs(0, at.at[0]), ys = windows.outputs(1, at.at[1]);
      const Span xs = windows.outputs(2, at.at[2]);
      op_t sum = 0;
      for (int64_t z = zs.begin; z < zs.end; ++z) {
        for (int64_t y = ys.begin; y < ys.end; ++y) {
          for (int64_t x = xs.begin; x < xs.end; ++x) {
            sum += static_cast<op_t>(plane[out.inside(z, y, x)]) / static_cast<op_t>(windows.divisor(z, y, x));
          }
        }
      }
      result[in.offset(at)] = static_cast<scalar_t>(sum);
    });
  });
}

AverageWindows sliding(
    const at::Tensor& input, const at::Tensor& output, int spatial, at::IntArrayRef kernel, at::IntArrayRef stride,
    at::IntArrayRef padding, bool include_padding, std::optional<int64_t> divisor_override) {
  AverageWindows windows(WindowKind::Sliding, Volume(input, spatial), Volume(output, spatial));
  windows.slide(spatial, kernel, stride, padding, {1});
  windows.include_padding = include_padding;
  windows.divisor_override = divisor_override.value_or(0);
  return windows;
}

void adaptive(const at::Tensor& self, at::IntArrayRef output_size, int spatial, at::Tensor& out) {
  const int64_t dims = self.dim();
  TORCH_CHECK(
      static_cast<int>(output_size.size()) == spatial, "adaptive_avg_pool", spatial, "d: output_size must have ",
      spatial, " elements, but got ", output_size.size());
  TORCH_CHECK(
      dims == spatial + 1 || dims == spatial + 2, "adaptive_avg_pool", spatial, "d(): Expected ", spatial + 1, "D or ",
      spatial + 2, "D tensor, but got ", self.sizes());
  for (int64_t d = dims - spatial; d < dims; ++d) {
    TORCH_CHECK(
        self.size(d) > 0, "adaptive_avg_pool", spatial,
        "d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", self.sizes(),
        " with dimension ", d, " being empty");
  }
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(), "expected dtype ", self.scalar_type(), " for `output` but got dtype ",
      out.scalar_type());
  at::DimVector shape(self.sizes());
  std::copy(output_size.begin(), output_size.end(), shape.end() - spatial);
  if (spatial == 2 && dims == 4) {
    out.resize_(shape, self.suggest_memory_format());
  } else {
    out.resize_(shape);
  }
  if (out.numel() > 0) {
    average(self, AverageWindows(WindowKind::Adaptive, Volume(self, spatial), Volume(out, spatial)), spatial, out);
  }
}

void adaptive_gradient(const at::Tensor& gradient, const at::Tensor& self, int spatial, at::Tensor& grad_input) {
  const char* const name = spatial == 2 ? "adaptive_avg_pool2d_backward" : "adaptive_avg_pool3d_backward";
  const int64_t dims = gradient.dim();
  for (int64_t d = 1; d < dims; ++d) {
    TORCH_CHECK(
        gradient.size(d) > 0, name,
        "(): Expected grad_output to have non-zero size for non-batch dimensions, but "
        "grad_output has sizes ",
        gradient.sizes(), " with dimension ", d, " being empty");
  }
  TORCH_CHECK(
      dims == spatial + 1 || dims == spatial + 2, name, "(): Expected ", spatial + 1, "D or ", spatial + 2,
      "D tensor, but got ", gradient.sizes());
  TORCH_CHECK(
      dims == self.dim(), name, "(): Expected grad_output and input to have the same rank, but got ", gradient.sizes(),
      " and ", self.sizes());
  TORCH_CHECK(
      self.scalar_type() == gradient.scalar_type(), "expected dtype ", self.scalar_type(),
      " for `grad_output` but got dtype ", gradient.scalar_type());
  TORCH_CHECK(
      self.scalar_type() == grad_input.scalar_type(), "expected dtype ", self.scalar_type(),
      " for `grad_input` but got dtype ", grad_input.scalar_type());
  if (spatial == 2 && dims == 4) {
    grad_input.resize_(self.sizes(), self.suggest_memory_format());
  } else {
    grad_input.resize_(self.sizes());
  }
  if (grad_input.numel() > 0) {
    const AverageWindows windows(WindowKind::Adaptive, Volume(self, spatial), Volume(gradient, spatial));
    average_gradient(gradient, windows, spatial, grad_input);
  }
}

} // namespace

void avg_pool2d(
    const at::Tensor& self, int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW, bool ceil_mode,
    bool count_include_pad, std::optional<int64_t> divisor_override, const at::Tensor& out) {
  average(self, sliding(self, out, 2, {kH, kW}, {dH, dW}, {padH, padW}, count_include_pad, divisor_override), 2, out);
}
void avg_pool2d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override,
    const at::Tensor& grad_input) {
  average_gradient(
      grad_output, sliding(self, grad_output, 2, kernel_size, stride, padding, count_include_pad, divisor_override), 2,
      grad_input);
}
void avg_pool3d(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride, at::IntArrayRef padding,
    bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override, const at::Tensor& out) {
  average(self, sliding(self, out, 3, kernel_size, stride, padding, count_include_pad, divisor_override), 3, out);
}
void avg_pool3d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef stride,
    at::IntArrayRef padding, bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override,
    const at::Tensor& grad_input) {
  average_gradient(
      grad_output, sliding(self, grad_output, 3, kernel_size, stride, padding, count_include_pad, divisor_override), 3,
      grad_input);
}

at::Tensor& adaptive_avg_pool2d_out(const at::Tensor& self, at::IntArrayRef output_size, at::Tensor& out) {
  adaptive(self, output_size, 2, out);
  return out;
}
at::Tensor _adaptive_avg_pool2d(const at::Tensor& self, at::IntArrayRef output_size) {
  at::Tensor out = aten::empty({0}, self.options());
  adaptive(self, output_size, 2, out);
  return out;
}
at::Tensor& adaptive_avg_pool3d_out(const at::Tensor& self, at::IntArrayRef output_size, at::Tensor& out) {
  adaptive(self, output_size, 3, out);
  return out;
}
at::Tensor _adaptive_avg_pool3d(const at::Tensor& self, at::IntArrayRef output_size) {
  at::Tensor out = aten::empty({0}, self.options());
  adaptive(self, output_size, 3, out);
  return out;
}
at::Tensor _adaptive_avg_pool2d_backward(const at::Tensor& grad_output, const at::Tensor& self) {
  at::Tensor grad_input = aten::empty({0}, self.options());
  adaptive_gradient(grad_output, self, 2, grad_input);
  return grad_input;
}
at::Tensor& adaptive_avg_pool3d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::Tensor& grad_input) {
  adaptive_gradient(grad_output, self, 3, grad_input);
  return grad_input;
}
at::Tensor _adaptive_avg_pool3d_backward(const at::Tensor& grad_output, const at::Tensor& self) {
  at::Tensor grad_input = aten::empty({0}, self.options());
  adaptive_gradient(grad_output, self, 3, grad_input);
  return grad_input;
}

} // namespace musa_ops_ported
