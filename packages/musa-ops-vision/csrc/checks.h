// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Argument checks. Each raises c10::Error with the actual values and the change that fixes the call.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/macros/Macros.h>

#include <cstdint>
#include <initializer_list>
#include <utility>

namespace musa_ops_vision {

struct Named {
  const char* name;
  const at::Tensor& tensor;
};

// Checks that all tensors have the device and dtype of the first, which must have a floating-point dtype.
void check_alike(const char* op, std::initializer_list<Named> tensors);

// Checks dets (N, 4) and scores (N), and that their dtype and device match.
void check_boxes(const at::Tensor& dets, const at::Tensor& scores);

// Sizes that all operators over regions of images use.
struct RegionSizes {
  int64_t regions, batches, channels, height, width, pooled_height, pooled_width;

  C10_HOST_DEVICE int64_t bins() const { return pooled_height * pooled_width; }
  // Number of elements of one channel of an image.
  C10_HOST_DEVICE int64_t plane() const { return height * width; }
};

// Checks input (N, C, H, W) and rois (K, 5), and returns the sizes.
RegionSizes check_regions(
    const char* op, const at::Tensor& input, const at::Tensor& rois, int64_t pooled_height, int64_t pooled_width);

// The same for gradients: grad (K, ..., pooled_height, pooled_width) and rois.
RegionSizes check_region_gradient(
    const char* op, const at::Tensor& grad, const at::Tensor& rois, int64_t pooled_height, int64_t pooled_width,
    int64_t batches, int64_t channels, int64_t height, int64_t width);

// Returns the output channels of a position-sensitive operator: input channels / bins.
int64_t check_position_sensitive(const char* op, const RegionSizes& sizes);

// Checks that `indices` is int32 and has the device and shape of grad.
void check_indices(const char* op, const char* name, const at::Tensor& indices, const at::Tensor& grad);

struct Convolution {
  int64_t batches, channels, height, width;
  int64_t out_channels, kernel_h, kernel_w, out_h, out_w;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int64_t groups, offset_groups;
  bool use_mask;

  C10_HOST_DEVICE int64_t taps() const { return kernel_h * kernel_w; }
  C10_HOST_DEVICE int64_t pixels() const { return out_h * out_w; }
};

Convolution check_convolution(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset, const at::Tensor& mask,
    const at::Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilation_h,
    int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask);

} // namespace musa_ops_vision
