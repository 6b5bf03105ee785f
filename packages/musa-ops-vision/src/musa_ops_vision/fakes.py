# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fake kernels: compute shapes and dtypes of results, for torch.compile and torch.export."""

import torch


def nms(dets, scores, iou_threshold):
    """Returns indices of kept boxes: int64, of data-dependent size."""
    torch._check(
        dets.dim() == 2 and dets.size(1) == 4,
        lambda: f"nms: expected boxes of shape (N, 4), got {dets.shape}",
    )
    torch._check(scores.dim() == 1, lambda: f"nms: scores should be a 1d tensor, got {scores.shape}")
    torch._check(dets.size(0) == scores.size(0), lambda: "nms: boxes and scores differ in number")
    kept = torch.library.get_ctx().new_dynamic_size()
    return dets.new_empty(kept, dtype=torch.int64)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    """Returns (K, C, pooled height, pooled width)."""
    _check_regions("roi_align", input, rois)
    return input.new_empty((rois.size(0), input.size(1), pooled_height, pooled_width))


def roi_align_backward(
    grad, rois, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width,
    sampling_ratio, aligned,
):  # fmt: skip
    """Returns the shape of the input."""
    return grad.new_empty((batch_size, channels, height, width))


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """Returns the maxima and their int32 indices, both (K, C, pooled height, pooled width)."""
    _check_regions("roi_pool", input, rois)
    return _with_indices(input, (rois.size(0), input.size(1), pooled_height, pooled_width))


def roi_pool_backward(
    grad, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    """Returns the shape of the input."""
    return grad.new_empty((batch_size, channels, height, width))


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    """Returns means and their input channels, int32, both (K, C / bins, pooled height, pooled width)."""
    return _by_position("ps_roi_align", input, rois, pooled_height, pooled_width)


def ps_roi_align_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, sampling_ratio, batch_size,
    channels, height, width,
):  # fmt: skip
    """Returns the shape of the input."""
    return grad.new_empty((batch_size, channels, height, width))


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    """As ps_roi_align."""
    return _by_position("ps_roi_pool", input, rois, pooled_height, pooled_width)


def ps_roi_pool_backward(
    grad, rois, channel_mapping, spatial_scale, pooled_height, pooled_width, batch_size, channels, height,
    width,
):  # fmt: skip
    """Returns the shape of the input."""
    return grad.new_empty((batch_size, channels, height, width))


def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
    offset_groups, use_mask,
):  # fmt: skip
    """Returns (N, out channels, height and width of the offsets)."""
    return input.new_empty((input.size(0), weight.size(0), *offset.shape[-2:]))


def deform_conv2d_backward(
    grad, input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
    offset_groups, use_mask,
):  # fmt: skip
    """Returns the shapes of the five tensors."""
    return tuple(tensor.new_empty(tensor.shape) for tensor in (input, weight, offset, mask, bias))


def _check_regions(op, input, rois):
    torch._check(
        rois.dim() == 2 and rois.size(1) == 5,
        lambda: f"{op}: expected rois of shape (K, 5), got {rois.shape}",
    )
    torch._check(
        input.dtype == rois.dtype,
        lambda: f"{op}: expected rois to have the same type as input, {input.dtype}, but got {rois.dtype}",
    )


def _with_indices(input, shape):
    return input.new_empty(shape), input.new_empty(shape, dtype=torch.int32)


def _by_position(op, input, rois, pooled_height, pooled_width):
    _check_regions(op, input, rois)
    bins = pooled_height * pooled_width
    torch._check(
        input.size(1) % bins == 0,
        lambda: f"{op}: input channels must be a multiple of pooling height * pooling width",
    )
    return _with_indices(input, (rois.size(0), input.size(1) // bins, pooled_height, pooled_width))
