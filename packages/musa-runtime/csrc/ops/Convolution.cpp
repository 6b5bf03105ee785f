// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/Tensor.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <musa_runtime/op_pack.h>

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

// Convolutions that no pack serves (double precision, integers), as products of matrices: the elements below each
// position of the window are one column.

namespace musa_runtime {
namespace {

using at::DimVector;
using at::IntArrayRef;
using at::Tensor;

// The sliding window of a convolution from `large` to `small` images. A transposed convolution is the gradient of one.
struct SlidingWindow {
  DimVector stride, padding, dilation, output_padding;
  int64_t groups;

  SlidingWindow(
      c10::SymIntArrayRef stride_, c10::SymIntArrayRef padding_, c10::SymIntArrayRef dilation_,
      c10::SymIntArrayRef output_padding_, const c10::SymInt& groups_)
      : stride(C10_AS_INTARRAYREF_SLOW(stride_)),
        padding(C10_AS_INTARRAYREF_SLOW(padding_)),
        dilation(C10_AS_INTARRAYREF_SLOW(dilation_)),
        output_padding(C10_AS_INTARRAYREF_SLOW(output_padding_)),
        groups(groups_.expect_int()) {
    for (const int64_t step : dilation) {
      TORCH_CHECK(step > 0, "non-positive dilation is not supported");
    }
  }

  DimVector result_sizes(const Tensor& input, const Tensor& weight, bool transposed) const {
    TORCH_CHECK(weight.numel() != 0, "the weight of a convolution needs elements, but has the shape ", weight.sizes());
    DimVector sizes{input.size(0), transposed ? weight.size(1) * groups : weight.size(0)};
    for (size_t i = 0; i < stride.size(); ++i) {
      const auto dim = static_cast<int64_t>(i) + 2;
      const int64_t reach = dilation[i] * (weight.size(dim) - 1) + 1;
      TORCH_CHECK(
          !transposed || output_padding[i] < std::max(stride[i], dilation[i]),
          "output padding must be smaller than either stride or dilation, but got output_padding ", output_padding,
          ", stride ", stride, ", dilation ", dilation);
      sizes.push_back(
          transposed ? (input.size(dim) - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i]
                     : (input.size(dim) + 2 * padding[i] - reach) / stride[i] + 1);
      TORCH_CHECK(
          sizes.back() > 0, "the output of this convolution would have the size ", sizes.back(), " in dimension ", dim,
          "; its input has the shape ", input.sizes());
    }
    return sizes;
  }

  size_t space() const { return stride.size(); }

  // The elements of images below the window: (images, groups, channels of a group * window, positions).
  Tensor columns(const Tensor& images, IntArrayRef window, IntArrayRef positions) const {
    DimVector pads;
    for (size_t i = space(); i-- > 0;) {
      pads.append({padding[i], padding[i]});
    }
    const Tensor padded = at::constant_pad_nd(images, pads, 0);
    const int64_t channels = images.size(1) / groups;
    DimVector sizes{images.size(0), groups, channels},
        strides{padded.stride(0), padded.stride(1) * channels, padded.stride(1)};
    for (size_t i = 0; i < space(); ++i) {
      sizes.push_back(window[i]);
      strides.push_back(padded.stride(static_cast<int64_t>(i) + 2) * dilation[i]);
    }
    for (size_t i = 0; i < space(); ++i) {
      sizes.push_back(positions[i]);
      strides.push_back(padded.stride(static_cast<int64_t>(i) + 2) * stride[i]);
    }
    return padded.as_strided(sizes, strides, padded.storage_offset())
        .reshape(
            {images.size(0), groups, channels * c10::multiply_integers(window), c10::multiply_integers(positions)});
  }

  // The sum of columns at each element of images of these sizes: the transpose of columns().
  Tensor images(const Tensor& columns, IntArrayRef sizes, IntArrayRef window, IntArrayRef positions) const {
    DimVector parts{sizes[0], sizes[1]}, padded(sizes);
    parts.append(window.begin(), window.end());
    parts.append(positions.begin(), positions.end());
    for (size_t i = 0; i < space(); ++i) {
      padded[i + 2] += 2 * padding[i];
    }
    const Tensor parted = columns.reshape(parts);
    const Tensor sum = at::zeros(padded, columns.options());
    DimVector place(space(), 0);
    for (int64_t left = c10::multiply_integers(window); left > 0; --left) {
      Tensor from = parted, to = sum;
      for (size_t i = 0; i < space(); ++i) {
        const auto dim = static_cast<int64_t>(i) + 2;
        const int64_t begin = place[i] * dilation[i];
        from = from.select(2, place[i]);
        to = to.slice(dim, begin, begin + (positions[i] - 1) * stride[i] + 1, stride[i]);
      }
      to.add_(from);
      for (size_t i = space(); i-- > 0 && ++place[i] == window[i];) {
        place[i] = 0;
      }
    }
    Tensor result = sum;
    for (size_t i = 0; i < space(); ++i) {
      result = result.narrow(static_cast<int64_t>(i) + 2, padding[i], sizes[i + 2]);
    }
    return result.contiguous();
  }

  // Images or positions with the channels of a group apart: (images, groups, channels, elements).
  Tensor grouped(const Tensor& images) const {
    return images.reshape(
        {images.size(0), groups, images.size(1) / groups, c10::multiply_integers(images.sizes().slice(2))});
  }
  // (1, groups, rows of a group, columns): the channels that are apart in `small` images are rows.
  Tensor matrices(const Tensor& weight) const {
    const int64_t rows = weight.size(0) / groups;
    return weight.reshape({1, groups, rows, c10::multiply_integers(weight.sizes().slice(1))});
  }

  Tensor small_from_large(const Tensor& large, const Tensor& weight, IntArrayRef sizes) const {
    const Tensor all = columns(large, weight.sizes().slice(2), sizes.slice(2));
    return matrices(weight).matmul(all).reshape(sizes);
  }
  Tensor large_from_small(const Tensor& small, const Tensor& weight, IntArrayRef sizes) const {
    const Tensor all = matrices(weight).mT().matmul(grouped(small));
    return images(all, sizes, weight.sizes().slice(2), small.sizes().slice(2));
  }
  Tensor weight_gradient(const Tensor& small, const Tensor& large, IntArrayRef sizes) const {
    const Tensor all = columns(large, sizes.slice(2), small.sizes().slice(2));
    return grouped(small).matmul(all.mT()).sum(0).reshape(sizes);
  }
};

Tensor convolution_overrideable(
    const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  const SlidingWindow window(stride, padding, dilation, output_padding, groups);
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  const DimVector sizes = window.result_sizes(input, weight, transposed);
  Tensor result =
      transposed ? window.large_from_small(input, weight, sizes) : window.small_from_large(input, weight, sizes);
  if (bias.has_value() && bias->defined()) {
    DimVector channels(sizes.size(), 1);
    channels[1] = bias->numel();
    result.add_(bias->reshape(channels));
  }
  return result.contiguous(input.suggest_memory_format());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward_overrideable(
    const Tensor& grad_output, const Tensor& input, const Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> output_mask) {
  const SlidingWindow window(stride, padding, dilation, output_padding, groups);
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  const DimVector sizes = window.result_sizes(input, weight, transposed);
  TORCH_CHECK(
      grad_output.sizes() == sizes, "grad_output has the shape ", grad_output.sizes(), ", but the convolution has a ",
      "result of the shape ", sizes);
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = transposed ? window.small_from_large(grad_output, weight, input.sizes())
                            : window.large_from_small(grad_output, weight, input.sizes());
    grad_input = grad_input.contiguous(input.suggest_memory_format());
  }
  if (output_mask[1]) {
    grad_weight = transposed ? window.weight_gradient(input, grad_output, weight.sizes())
                             : window.weight_gradient(grad_output, input, weight.sizes());
    grad_weight = grad_weight.contiguous(weight.suggest_memory_format());
  }
  if (output_mask[2]) {
    DimVector others{0};
    for (int64_t dim = 2; dim < grad_output.dim(); ++dim) {
      others.push_back(dim);
    }
    grad_bias = grad_output.sum(others);
  }
  return {grad_input, grad_weight, grad_bias};
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::convolution_overrideable", TORCH_FN(convolution_overrideable))
      .impl("aten::convolution_backward_overrideable", TORCH_FN(convolution_backward_overrideable));
}

} // namespace
} // namespace musa_runtime
