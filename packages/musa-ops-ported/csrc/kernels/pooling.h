// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Pooling windows: the inputs of an output, and the outputs of an input.
#pragma once

#include "kernels/volume.h"

namespace musa_ops_ported {

enum class WindowKind { Sliding, Adaptive, Fractional };

struct Windows {
  WindowKind kind = WindowKind::Adaptive;
  int64_t in[kSpatial], out[kSpatial];
  int64_t kernel[kSpatial] = {1, 1, 1}, stride[kSpatial] = {1, 1, 1}, padding[kSpatial] = {0, 0, 0};
  int64_t dilation[kSpatial] = {1, 1, 1};

  Windows(WindowKind kind, const Volume& input, const Volume& output) : kind(kind) {
    std::copy_n(input.size, kSpatial, in);
    std::copy_n(output.size, kSpatial, out);
  }
  // Sets a sliding window from torch's arguments: one number for all dimensions or one per dimension. An empty stride
  // means the kernel size.
  void slide(
      int spatial, at::IntArrayRef kernels, at::IntArrayRef strides, at::IntArrayRef paddings,
      at::IntArrayRef dilations) {
    const auto set = [&](int64_t* to, at::IntArrayRef values) {
      for (int d = 0; d < spatial; ++d) {
        to[kSpatial - spatial + d] = values.size() == 1 ? values[0] : values[d];
      }
    };
    set(kernel, kernels);
    set(stride, strides.empty() ? kernels : strides);
    set(padding, paddings);
    set(dilation, dilations);
  }

  // The extent of a sliding window, including the padding.
  C10_HOST_DEVICE Span padded(int d, int64_t o) const {
    const int64_t begin = o * stride[d] - padding[d];
    const int64_t end = begin + (kernel[d] - 1) * dilation[d] + 1;
    return {begin, end < in[d] + padding[d] ? end : in[d] + padding[d], dilation[d]};
  }
  C10_HOST_DEVICE Span inputs(int d, int64_t o) const {
    if (kind == WindowKind::Adaptive) {
      return {quotient(o * in[d], out[d]), quotient((o + 1) * in[d] + out[d] - 1, out[d])};
    }
    Span span = padded(d, o);
    if (span.begin < 0) {
      span.begin += (-span.begin + span.step - 1) / span.step * span.step;
    }
    span.end = span.end < in[d] ? span.end : in[d];
    return span;
  }
  // A range that contains all outputs whose window includes input i; with dilation or fractional windows also others.
  C10_HOST_DEVICE Span outputs(int d, int64_t i) const {
    Span span{0, out[d]};
    if (kind == WindowKind::Adaptive) {
      span = {quotient(i * out[d], in[d]), quotient((i + 1) * out[d] + in[d] - 1, in[d])};
    } else if (kind == WindowKind::Sliding) {
      const int64_t reach = i + padding[d] - (kernel[d] - 1) * dilation[d];
      span = {reach <= 0 ? 0 : quotient(reach + stride[d] - 1, stride[d]), quotient(i + padding[d], stride[d]) + 1};
    } else if (out[d] > 1 && in[d] > kernel[d]) {
      // Window o starts less than one element from o * step.
      const int64_t steps = out[d] - 1, length = in[d] - kernel[d];
      const int64_t first = i - kernel[d] - 1;
      span = {first <= 0 ? 0 : quotient(first * steps, length), quotient((i + 1) * steps, length) + 2};
    }
    span.end = span.end < out[d] ? span.end : out[d];
    return span;
  }
};

// grad_input[i] is the sum of the gradients of the outputs whose index is i.
void max_pool_gradient(
    const at::Tensor& gradient, const at::Tensor& indices, const Windows& windows, int spatial,
    const at::Tensor& grad_input);

} // namespace musa_ops_ported
