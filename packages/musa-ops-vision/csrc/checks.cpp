// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "checks.h"

#include <c10/util/Exception.h>

namespace musa_ops_vision {

void check_alike(const char* op, std::initializer_list<Named> tensors) {
  const Named& first = *tensors.begin();
  TORCH_CHECK(
      at::isFloatingType(first.tensor.scalar_type()), op, ": expected ", first.name,
      " of a floating-point dtype, but got ", first.tensor.scalar_type(), ".\nFix: ", first.name, ".float()");
  for (const Named& other : tensors) {
    TORCH_CHECK(
        other.tensor.device() == first.tensor.device(), op, ": expected all tensors on one device, but ", first.name,
        " is on ", first.tensor.device(), " and ", other.name, " on ", other.tensor.device(), ".\nFix: ", other.name,
        ".to(\"", first.tensor.device(), "\")");
    TORCH_CHECK(
        other.tensor.scalar_type() == first.tensor.scalar_type(), op, ": expected ", other.name,
        " to have the same type as ", first.name, ", ", first.tensor.scalar_type(), ", but got ",
        other.tensor.scalar_type(), ".\nFix: ", other.name, ".to(", first.name, ".dtype)");
  }
}

void check_boxes(const at::Tensor& dets, const at::Tensor& scores) {
  TORCH_CHECK(
      dets.dim() == 2 && dets.size(1) == 4, "nms: expected boxes of shape (N, 4), as x1, y1, x2, y2, but got ",
      dets.sizes());
  TORCH_CHECK(scores.dim() == 1, "nms: scores should be a 1d tensor, got ", scores.sizes());
  TORCH_CHECK(
      dets.size(0) == scores.size(0), "nms: boxes and scores should have same number of elements in dimension 0, got ",
      dets.size(0), " and ", scores.size(0));
  check_alike("nms", {{"boxes", dets}, {"scores", scores}});
}

namespace {

void check_rois(const char* op, const at::Tensor& rois, int64_t pooled_height, int64_t pooled_width) {
  TORCH_CHECK(
      rois.dim() == 2 && rois.size(1) == 5, op,
      ": expected rois of shape (K, 5), as index of the image, x1, y1, x2, y2, but got ", rois.sizes());
  TORCH_CHECK(
      pooled_height > 0 && pooled_width > 0, op, ": expected a positive output size, but got ", pooled_height, " x ",
      pooled_width);
}

} // namespace

RegionSizes check_regions(
    const char* op, const at::Tensor& input, const at::Tensor& rois, int64_t pooled_height, int64_t pooled_width) {
  TORCH_CHECK(input.dim() == 4, op, ": expected an input of shape (N, C, H, W), but got ", input.sizes());
  check_rois(op, rois, pooled_height, pooled_width);
  check_alike(op, {{"input", input}, {"rois", rois}});
  return {rois.size(0), input.size(0), input.size(1), input.size(2), input.size(3), pooled_height, pooled_width};
}

RegionSizes check_region_gradient(
    const char* op, const at::Tensor& grad, const at::Tensor& rois, int64_t pooled_height, int64_t pooled_width,
    int64_t batches, int64_t channels, int64_t height, int64_t width) {
  check_rois(op, rois, pooled_height, pooled_width);
  check_alike(op, {{"grad", grad}, {"rois", rois}});
  TORCH_CHECK(
      grad.dim() == 4 && grad.size(0) == rois.size(0) && grad.size(2) == pooled_height && grad.size(3) == pooled_width,
      op, ": expected a gradient of shape (", rois.size(0), ", channels, ", pooled_height, ", ", pooled_width,
      "), but got ", grad.sizes());
  TORCH_CHECK(
      batches >= 0 && channels >= 0 && height >= 0 && width >= 0, op, ": a size of the input is negative: ", batches,
      ", ", channels, ", ", height, ", ", width);
  return {rois.size(0), batches, channels, height, width, pooled_height, pooled_width};
}

int64_t check_position_sensitive(const char* op, const RegionSizes& sizes) {
  TORCH_CHECK(
      sizes.channels % sizes.bins() == 0, op,
      ": input channels must be a multiple of pooling height * pooling width, "
      "but got ",
      sizes.channels, " channels and ", sizes.pooled_height, " * ", sizes.pooled_width);
  return sizes.channels / sizes.bins();
}

void check_indices(const char* op, const char* name, const at::Tensor& indices, const at::Tensor& grad) {
  TORCH_CHECK(
      indices.scalar_type() == at::kInt && indices.device() == grad.device() && indices.sizes() == grad.sizes(), op,
      ": expected ", name, " as the forward operator gave it, of dtype Int, on ", grad.device(), " and of shape ",
      grad.sizes(), ", but got ", indices.scalar_type(), " on ", indices.device(), " of shape ", indices.sizes());
}

Convolution check_convolution(
    const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset, const at::Tensor& mask,
    const at::Tensor& bias, int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilation_h,
    int64_t dilation_w, int64_t groups, int64_t offset_groups, bool use_mask) {
  const char* const op = "deform_conv2d";
  TORCH_CHECK(
      input.dim() == 4 && weight.dim() == 4 && offset.dim() == 4 && (!use_mask || mask.dim() == 4), op,
      ": expected tensors of 4 dimensions, but got input ", input.sizes(), ", weight ", weight.sizes(), ", offset ",
      offset.sizes(), use_mask ? ", mask " : "", use_mask ? mask.sizes() : at::IntArrayRef());
  if (use_mask) {
    check_alike(op, {{"input", input}, {"weight", weight}, {"offset", offset}, {"bias", bias}, {"mask", mask}});
  } else {
    check_alike(op, {{"input", input}, {"weight", weight}, {"offset", offset}, {"bias", bias}});
  }
  TORCH_CHECK(stride_h > 0 && stride_w > 0, op, ": stride must be positive, but got ", stride_h, " x ", stride_w);
  TORCH_CHECK(pad_h >= 0 && pad_w >= 0, op, ": padding must not be negative, but got ", pad_h, " x ", pad_w);
  TORCH_CHECK(
      dilation_h > 0 && dilation_w > 0, op, ": dilation must be positive, but got ", dilation_h, " x ", dilation_w);
  TORCH_CHECK(
      weight.size(2) > 0 && weight.size(3) > 0, op, ": the kernel must have elements, but its weight is ",
      weight.sizes());
  TORCH_CHECK(
      groups > 0 && input.size(1) % groups == 0 && weight.size(0) % groups == 0 &&
          weight.size(1) * groups == input.size(1),
      op, ": input channels ", input.size(1), ", weight ", weight.sizes(), " and groups ", groups,
      " do not match: the weight must have shape (out channels, input channels / groups, kernel height, kernel width)");
  TORCH_CHECK(
      offset_groups > 0 && input.size(1) % offset_groups == 0, op, ": offset groups (", offset_groups,
      ") must divide the input channels (", input.size(1), ")");
  Convolution c{
      input.size(0),
      input.size(1),
      input.size(2),
      input.size(3),
      weight.size(0),
      weight.size(2),
      weight.size(3),
      0,
      0,
      stride_h,
      stride_w,
      pad_h,
      pad_w,
      dilation_h,
      dilation_w,
      groups,
      offset_groups,
      use_mask};
  c.out_h = (c.height + 2 * pad_h - (dilation_h * (c.kernel_h - 1) + 1)) / stride_h + 1;
  c.out_w = (c.width + 2 * pad_w - (dilation_w * (c.kernel_w - 1) + 1)) / stride_w + 1;
  TORCH_CHECK(
      c.out_h > 0 && c.out_w > 0, op, ": the output would have no elements: ", c.out_h, " x ", c.out_w,
      "; the kernel is larger than the padded input of shape ", input.sizes());
  const at::IntArrayRef offsets = offset.sizes();
  TORCH_CHECK(
      offsets == at::IntArrayRef({c.batches, offset_groups * 2 * c.taps(), c.out_h, c.out_w}), op,
      ": expected an offset of shape (", c.batches, ", ", offset_groups * 2 * c.taps(), ", ", c.out_h, ", ", c.out_w,
      "), the second being 2 * offset groups * kernel height * kernel width, but got ", offsets);
  TORCH_CHECK(
      !use_mask || mask.sizes() == at::IntArrayRef({c.batches, offset_groups * c.taps(), c.out_h, c.out_w}), op,
      ": expected a mask of shape (", c.batches, ", ", offset_groups * c.taps(), ", ", c.out_h, ", ", c.out_w,
      "), the second being offset groups * kernel height * kernel width, but got ", mask.sizes());
  TORCH_CHECK(
      bias.dim() == 1 && bias.size(0) == c.out_channels, op, ": expected a bias of shape (", c.out_channels,
      "), but got ", bias.sizes());
  return c;
}

} // namespace musa_ops_vision
