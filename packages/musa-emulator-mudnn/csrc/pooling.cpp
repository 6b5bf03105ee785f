// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Pooling.
#include <ATen/EmptyTensor.h>
#include <ATen/ScalarOps.h>
#include <ATen/native/Pool.h>
#include <ATen/ops/_adaptive_avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/_adaptive_avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool2d_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/adaptive_max_pool3d_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool2d_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_backward_cpu_dispatch.h>
#include <ATen/ops/avg_pool3d_cpu_dispatch.h>
#include <ATen/ops/clamp_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/max_pool2d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool2d_with_indices_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_backward_cpu_dispatch.h>
#include <ATen/ops/max_pool3d_with_indices_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/round_cpu_dispatch.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using Mode = Pooling::Mode;
using Type = Tensor::Type;

struct Window {
  Mode mode;
  size_t space; // number of spatial dimensions
  std::vector<int64_t> kernel, pad, stride, dilation;
  std::optional<int64_t> divisor;
  bool ceil; // derived from the output's size, because muDNN has no setter for it

  bool takes_maximum() const { return mode == Mode::MAXPOOL || mode == Mode::ADAPTIVE_MAXPOOL; }
  bool slides() const {
    return mode == Mode::MAXPOOL || mode == Mode::AVGPOOL_COUNT_PAD || mode == Mode::AVGPOOL_COUNT_WITHOUT_PAD;
  }
  bool counts_pad() const { return mode == Mode::AVGPOOL_COUNT_PAD; }
};

// Derives the window from the sizes of both operands. Returns false if a check fails.
bool fit(Call& call, Window& window, const Tensor& large, const Tensor& small) {
  if (!call.require(
          TensorAccess::present(large) && TensorAccess::present(small), Status::INVALID_PARAMETER,
          "an operand is absent") ||
      !call.require(
          has_type(small, {TensorAccess::type(large)}), Status::INVALID_PARAMETER, "the operands differ in type")) {
    return false;
  }
  const at::Tensor whole = alias_channels_second(large);
  const at::Tensor pooled = alias_channels_second(small);
  if (!window.slides()) {
    window.space = static_cast<size_t>(std::max<int64_t>(whole.dim() - 2, 0));
  }
  const auto space = static_cast<int64_t>(window.space);
  const int64_t before = whole.dim() - space; // batch and channels, or channels only
  if (!call.require(
          space >= 1 && space <= 3, Status::INVALID_PARAMETER,
          "the window or the operands have no spatial dimensions") ||
      !call.require(
          (before == 1 || before == 2) && pooled.dim() == whole.dim() &&
              std::equal(whole.sizes().begin(), whole.sizes().begin() + before, pooled.sizes().begin()),
          Status::INVALID_PARAMETER, "the operands differ in batch or channels, or do not match the window")) {
    return false;
  }
  if (window.mode == Mode::GLOBAL_AVGPOOL) {
    const auto rest = pooled.sizes().slice(static_cast<size_t>(before));
    return call.require(
        std::all_of(rest.begin(), rest.end(), [](int64_t size) { return size == 1; }), Status::INVALID_PARAMETER,
        "the output of global pooling does not have one element per channel");
  }
  if (!window.slides()) {
    return true;
  }
  bool floors = true;
  bool ceils = true;
  for (size_t i = 0; i < window.space; ++i) {
    const int64_t size = whole.size(before + static_cast<int64_t>(i));
    const int64_t wanted = pooled.size(before + static_cast<int64_t>(i));
    const auto count = [&](bool ceil) {
      return at::native::pooling_output_shape_pad_lr<int64_t>(
          size, window.kernel[i], window.pad[i], window.pad[i], window.stride[i], window.dilation[i], ceil);
    };
    floors = floors && wanted == count(false);
    ceils = ceils && wanted == count(true);
    if (!call.require(
            window.pad[i] <= ((window.kernel[i] - 1) * window.dilation[i] + 1) / 2, Status::INVALID_PARAMETER,
            "a window may be entirely in the padding")) {
      return false;
    }
  }
  window.ceil = !floors;
  return call.require(floors || ceils, Status::INVALID_PARAMETER, "the pooled sizes do not match the window") &&
      call.require(
          window.takes_maximum() ||
              std::all_of(window.dilation.begin(), window.dilation.end(), [](int64_t step) { return step == 1; }),
          Status::NOT_SUPPORTED, "average pooling does not support dilation");
}

bool accept_indices(Call& call, const Window& window, const Tensor& indices, const Tensor& small) {
  return !window.takes_maximum() ||
      call.require(
          TensorAccess::present(indices) && has_type(indices, {Type::INT64}) &&
              alias_channels_second(indices).sizes() == alias_channels_second(small).sizes(),
          Status::INVALID_PARAMETER, "the indices are not an INT64 tensor of the pooled shape");
}

// One spatial dimension is handled as two, the first of size 1; the indices are the same.
at::Tensor plane_of(const Tensor& tensor, size_t space) {
  const at::Tensor result = alias_channels_second(tensor);
  return space == 1 && result.defined() ? result.unsqueeze(-2) : result;
}

void widen(Window& window) {
  if (window.space != 1) {
    return;
  }
  window.space = 2;
  if (window.slides()) {
    window.kernel.insert(window.kernel.begin(), 1);
    window.stride.insert(window.stride.begin(), 1);
    window.dilation.insert(window.dilation.begin(), 1);
    window.pad.insert(window.pad.begin(), 0);
  }
}

at::Tensor as_float(const at::Tensor& tensor) {
  at::Tensor result = new_tensor(tensor.sizes(), at::kFloat);
  at::native::copy_(result, tensor);
  return result;
}

// For 3-d and adaptive average pooling, torch's out= functions ignore or change the strides of the output. So these are
// computed in new tensors and copied.
void maximum(const Window& window, at::Tensor& out, at::Tensor& indices, const at::Tensor& in) {
  const auto size = out.sizes().slice(out.sizes().size() - window.space);
  if (window.space == 2) {
    if (window.slides()) {
      ops::max_pool2d_with_indices_out(
          out, indices, in, window.kernel, window.stride, window.pad, window.dilation, window.ceil);
    } else {
      ops::adaptive_max_pool2d_out(out, indices, in, size);
    }
    return;
  }
  const auto [values, positions] = window.slides()
      ? ops::max_pool3d_with_indices(in, window.kernel, window.stride, window.pad, window.dilation, window.ceil)
      : ops::adaptive_max_pool3d(in, size);
  at::native::copy_(out, values);
  at::native::copy_(indices, positions);
}

void mean(const Window& window, at::Tensor& out, const at::Tensor& in) {
  if (!window.slides()) {
    const auto size = out.sizes().slice(out.sizes().size() - window.space);
    at::native::copy_(
        out, window.space == 2 ? ops::_adaptive_avg_pool2d(in, size) : ops::_adaptive_avg_pool3d(in, size));
  } else if (window.space == 2) {
    ops::avg_pool2d_out(
        out, in, window.kernel, window.stride, window.pad, window.ceil, window.counts_pad(), window.divisor);
  } else {
    at::native::copy_(
        out,
        ops::avg_pool3d(
            in, window.kernel, window.stride, window.pad, window.ceil, window.counts_pad(), window.divisor));
  }
}

bool reduced(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}

// torch supports 3-d average pooling for FLOAT and DOUBLE only.
bool needs_float(const Window& window, const at::Tensor& tensor) {
  return window.slides() && window.space == 3 && reduced(tensor);
}

// For quantized values: the average of the values they represent, in steps of the output's scale.
void mean_of_steps(const Window& window, at::Tensor& out, const at::Tensor& in, double ratio) {
  at::Tensor result = new_tensor(out.sizes(), at::kFloat);
  mean(window, result, as_float(in));
  ops::mul_(result, at::native::wrapped_scalar_tensor(ratio));
  ops::round_(result);
  const bool is_signed = out.scalar_type() == at::kChar;
  ops::clamp_(result, at::Scalar(is_signed ? -128 : 0), at::Scalar(is_signed ? 127 : 255));
  at::native::copy_(out, result);
}

// The gradient functions use only the shape of the input, which grad_in has too.
void maximum_backward(
    const Window& window, at::Tensor& grad_in, const at::Tensor& grad_out, const at::Tensor& indices) {
  if (window.space == 2) {
    if (window.slides()) {
      ops::max_pool2d_with_indices_backward_out(
          grad_in, grad_out, grad_in, window.kernel, window.stride, window.pad, window.dilation, window.ceil, indices);
    } else {
      ops::adaptive_max_pool2d_backward_out(grad_in, grad_out, grad_in, indices);
    }
    return;
  }
  const at::Tensor gradient = grad_out.contiguous();
  const at::Tensor positions = indices.contiguous(); // torch assumes that they are contiguous
  at::native::copy_(
      grad_in,
      window.slides()
          ? ops::max_pool3d_with_indices_backward(
                gradient, grad_in, window.kernel, window.stride, window.pad, window.dilation, window.ceil, positions)
          : ops::adaptive_max_pool3d_backward(gradient, grad_in, positions));
}

void mean_backward(const Window& window, at::Tensor& grad_in, const at::Tensor& grad_out) {
  if (!window.slides()) {
    at::native::copy_(
        grad_in,
        window.space == 2 ? ops::_adaptive_avg_pool2d_backward(grad_out, grad_in)
                          : ops::_adaptive_avg_pool3d_backward(grad_out, grad_in));
  } else if (window.space == 2) {
    ops::avg_pool2d_backward_out(
        grad_in, grad_out, grad_in, window.kernel, window.stride, window.pad, window.ceil, window.counts_pad(),
        window.divisor);
  } else {
    at::native::copy_(
        grad_in,
        ops::avg_pool3d_backward(
            grad_out.contiguous(), grad_in, window.kernel, window.stride, window.pad, window.ceil, window.counts_pad(),
            window.divisor));
  }
}

Window make_window(
    Mode mode, const std::vector<int>& kernel, const std::vector<int>& pad, const std::vector<int>& stride,
    const std::vector<int>& dilation, int divisor) {
  return {
      mode,
      kernel.size(),
      {kernel.begin(), kernel.end()},
      {pad.begin(), pad.end()},
      {stride.begin(), stride.end()},
      {dilation.begin(), dilation.end()},
      divisor > 0 ? std::optional<int64_t>(divisor) : std::nullopt,
      false};
}

} // namespace

Status Pooling::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Pooling::SetNdInfo(
    std::initializer_list<int> kernel, std::initializer_list<int> pad, std::initializer_list<int> stride,
    std::initializer_list<int> dilation) {
  if (pad.size() != kernel.size() || stride.size() != kernel.size() || dilation.size() != kernel.size()) {
    return Status::INVALID_PARAMETER;
  }
  return SetNdInfo(static_cast<int>(kernel.size()), kernel.begin(), pad.begin(), stride.begin(), dilation.begin());
}

Status Pooling::SetNdInfo(int count, const int* kernel, const int* pad, const int* stride, const int* dilation) {
  if (count < 1 || count > 3 || kernel == nullptr || pad == nullptr || stride == nullptr || dilation == nullptr) {
    return Status::INVALID_PARAMETER;
  }
  for (int i = 0; i < count; ++i) {
    if (kernel[i] < 1 || pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) {
      return Status::INVALID_PARAMETER;
    }
  }
  kernel_.assign(kernel, kernel + count);
  pad_.assign(pad, pad + count);
  stride_.assign(stride, stride + count);
  dilation_.assign(dilation, dilation + count);
  return Status::SUCCESS;
}

Status Pooling::SetDivisor(int divisor) { // 0: the size of the window, according to the mode
  if (divisor < 0) {
    return Status::INVALID_PARAMETER;
  }
  divisor_ = divisor;
  return Status::SUCCESS;
}

Status Pooling::Run(Handle& handle, Tensor& out, const Tensor& in, Tensor& indices) const {
  return call<"musa::dnn::Pooling::Run">(handle, {&out, &in, &indices}, [&](Call& call) {
    Window window = make_window(mode_, kernel_, pad_, stride_, dilation_, divisor_);
    if (!fit(call, window, in, out) || !accept_indices(call, window, indices, out)) {
      return call.status();
    }
    const bool floating = has_type(in, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE});
    const bool steps = has_type(in, {Type::QINT8, Type::UINT8});
    if (!call.require(
            floating || (mode_ != Mode::ADAPTIVE_MAXPOOL && steps) ||
                (mode_ == Mode::MAXPOOL && has_type(in, {Type::INT8})),
            Status::NOT_SUPPORTED, "the mode does not support this type")) {
      return call.status();
    }
    return call.enqueue([window, steps, out = out, in = in, indices = indices] {
      Window plane = window;
      widen(plane);
      at::Tensor result = plane_of(out, window.space);
      const at::Tensor source = plane_of(in, window.space);
      if (plane.takes_maximum()) {
        at::Tensor positions = plane_of(indices, window.space);
        const Outputs given(result, positions);
        maximum(plane, result, positions, source);
        given.keep();
      } else if (steps) {
        mean_of_steps(plane, result, source, static_cast<double>(TensorAccess::scale(in)) / TensorAccess::scale(out));
      } else if (needs_float(plane, source)) {
        at::Tensor wide = new_tensor(result.sizes(), at::kFloat);
        mean(plane, wide, as_float(source));
        at::native::copy_(result, wide);
      } else {
        const Outputs given(result);
        mean(plane, result, source);
        given.keep();
      }
    });
  });
}

Status Pooling::RunBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& indices) const {
  return call<"musa::dnn::Pooling::RunBwd">(handle, {&grad_in, &grad_out, &indices}, [&](Call& call) {
    Window window = make_window(mode_, kernel_, pad_, stride_, dilation_, divisor_);
    if (!fit(call, window, grad_in, grad_out) || !accept_indices(call, window, indices, grad_out) ||
        !call.require(
            has_type(grad_in, {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE}), Status::NOT_SUPPORTED,
            "the gradients do not have a floating type")) {
      return call.status();
    }
    return call.enqueue([window, grad_in = grad_in, grad_out = grad_out, indices = indices] {
      Window plane = window;
      widen(plane);
      at::Tensor result = plane_of(grad_in, window.space);
      const at::Tensor gradient = plane_of(grad_out, window.space);
      const Outputs given(result);
      if (plane.takes_maximum()) {
        maximum_backward(plane, result, gradient, plane_of(indices, window.space));
      } else if (needs_float(plane, result)) {
        at::Tensor wide = new_tensor(result.sizes(), at::kFloat);
        mean_backward(plane, wide, as_float(gradient));
        at::native::copy_(result, wide);
      } else {
        mean_backward(plane, result, gradient);
      }
      given.keep();
    });
  });
}

} // namespace musa::dnn
