# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchvision's operators in torch, by other formulas than the kernels.

Linear interpolation is a product with a matrix of hat functions, so the mean of the samples of a bin is a
product with two matrices. Gradients come from torch's autograd. Shapes and arguments are those of
torch.ops.torchvision. Everything is computed on the CPU in the dtype of the arguments.
"""

from __future__ import annotations

import math

import torch

HALF_SHIFT = 0.5  # for the aligned operators, whose pixels have their centres at whole numbers


def nms(dets, scores, iou_threshold):
    """Greedy suppression over the matrix of all overlaps."""
    order = torch.sort(scores, stable=True, descending=True).indices
    boxes = dets[order]
    sizes = (torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
             - torch.maximum(boxes[:, None, :2], boxes[None, :, :2])).clamp(min=0)  # fmt: skip
    shared = sizes.prod(-1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    overlapping = (shared / (areas[:, None] + areas[None] - shared)).double() > iou_threshold
    alive = torch.ones(len(boxes), dtype=torch.bool)
    for place in range(len(boxes)):
        if alive[place]:
            alive[place + 1 :] &= ~overlapping[place, place + 1 :]
    return order[alive]


def hats(at, size):
    """Weights of the pixels 0 ... size - 1 at each position: (*at.shape, size)."""
    pixels = torch.arange(size, dtype=at.dtype)
    return (1 - (at[..., None] - pixels).abs()).clamp(min=0)


def _bin_matrix(begin, end, bins, size, ratio):
    """(bins, size): the sums of the samples' weights in each bin; and the number of samples of a bin."""
    step = (end - begin) / bins
    count = ratio if ratio > 0 else math.ceil(step.item())
    if count <= 0:
        return torch.zeros(bins, size, dtype=begin.dtype), 0
    samples = (torch.arange(count, dtype=begin.dtype) + 0.5) * step / count
    at = begin + torch.arange(bins, dtype=begin.dtype)[:, None] * step + samples
    inside = (at >= -1) & (at <= size)
    weights = hats(at.clamp(0, size - 1), size) * inside[..., None]
    return weights.sum(1), count


def _aligned(input, roi, scale, height, width, ratio, shift, widen):
    """(C, height, width): sums of the samples of one region, and their number."""
    x1, y1, x2, y2 = roi[1:] * scale - shift
    if widen:
        x2, y2 = torch.maximum(x2, x1 + 1), torch.maximum(y2, y1 + 1)
    rows, count_y = _bin_matrix(y1, y2, height, input.size(2), ratio)
    columns, count_x = _bin_matrix(x1, x2, width, input.size(3), ratio)
    image = input[int(roi[0])]
    return torch.einsum("ph,chw,qw->cpq", rows, image, columns), count_y * count_x


def _stack(parts, shape, like):
    return torch.stack(parts) if parts else like.new_zeros(shape)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    parts = []
    for roi in rois:
        sums, count = _aligned(
            input, roi, spatial_scale, pooled_height, pooled_width, sampling_ratio,
            HALF_SHIFT if aligned else 0, not aligned,
        )  # fmt: skip
        parts.append(sums / max(count, 1))
    return _stack(parts, (0, input.size(1), pooled_height, pooled_width), input)


def _own_channels(values, pooled_height, pooled_width):
    """(C, P, Q) to (C / (P * Q), P, Q): takes each bin from its own input channel."""
    by_bin = values.unflatten(0, (-1, pooled_height, pooled_width))
    return torch.einsum("cpqpq->cpq", by_bin)


def _mapping(regions, channels, pooled_height, pooled_width):
    places = torch.arange(channels, dtype=torch.int32).view(-1, pooled_height, pooled_width)
    return places.expand(regions, *places.shape).contiguous()


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    parts = []
    for roi in rois:
        sums, count = _aligned(
            input, roi, spatial_scale, pooled_height, pooled_width, sampling_ratio, HALF_SHIFT, False
        )
        parts.append(_own_channels(sums, pooled_height, pooled_width) / count)
    bins = pooled_height * pooled_width
    shape = (0, input.size(1) // bins, pooled_height, pooled_width)
    return _stack(parts, shape, input), _mapping(len(rois), input.size(1), pooled_height, pooled_width)


def _round(value):
    """Rounds to the nearest whole number, halves away from zero."""
    value = value.item()
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _bins(first, extent, bins, size, last):
    """Slices of the pixels of each bin; `last` is the greatest end of one."""
    step = torch.tensor(float(extent)) / bins
    for number in range(bins):
        begin = math.floor((number * step).item()) + first
        end = math.ceil(((number + 1) * step).item()) + first
        yield slice(min(max(begin, 0), last), min(max(end, 0), last))


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    height, width = input.shape[2:]
    parts, places = [], []
    for roi in rois:
        x1, y1, x2, y2 = (_round(value) for value in roi[1:] * spatial_scale)
        values, indices = [], []
        for rows in _bins(y1, max(y2 - y1 + 1, 1), pooled_height, height, height):
            for columns in _bins(x1, max(x2 - x1 + 1, 1), pooled_width, width, width):
                block = input[int(roi[0]), :, rows, columns]
                if block.numel() == 0:
                    values.append(input.new_zeros(input.size(1)))
                    indices.append(torch.full((input.size(1),), -1))
                    continue
                best, place = block.flatten(1).max(1)
                size = block.size(2)
                values.append(best)
                indices.append((rows.start + place // size) * width + columns.start + place % size)
        shape = (input.size(1), pooled_height, pooled_width)
        parts.append(torch.stack(values, 1).view(shape))
        places.append(torch.stack(indices, 1).view(shape).int())
    shape = (0, input.size(1), pooled_height, pooled_width)
    return _stack(parts, shape, input), _stack(places, shape, input.new_zeros(0, dtype=torch.int32))


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width):
    height, width = input.shape[2:]
    bins = pooled_height * pooled_width
    parts = []
    for roi in rois:
        x1, y1, x2, y2 = (_round(value) for value in roi[1:] * spatial_scale)
        means = []
        channels = input[int(roi[0])].unflatten(0, (-1, bins))
        for rows in _bins(y1, max(y2 - y1, 1), pooled_height, height, height - 1):
            for columns in _bins(x1, max(x2 - x1, 1), pooled_width, width, width - 1):
                block = channels[:, len(means), rows, columns].flatten(1)
                means.append(block.sum(1) / max(block.size(1), 1))
        parts.append(torch.stack(means, 1).view(-1, pooled_height, pooled_width))
    shape = (0, input.size(1) // bins, pooled_height, pooled_width)
    return _stack(parts, shape, input), _mapping(len(rois), input.size(1), pooled_height, pooled_width)


def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
    offset_groups, use_mask,
):  # fmt: skip
    """By hat functions of all pixels at each position, which are zero outside the image."""
    images, _, height, width = input.shape
    kernel_h, kernel_w = weight.shape[2:]
    taps = kernel_h * kernel_w
    rows, columns = offset.shape[2:]
    places = offset.view(images, offset_groups, taps, 2, rows, columns)
    k_y = torch.arange(kernel_h, dtype=input.dtype).repeat_interleave(kernel_w) * dilation_h - pad_h
    k_x = torch.arange(kernel_w, dtype=input.dtype).repeat(kernel_h) * dilation_w - pad_w
    out_y = torch.arange(rows, dtype=input.dtype)[:, None] * stride_h
    out_x = torch.arange(columns, dtype=input.dtype) * stride_w
    y = places[:, :, :, 0] + k_y[:, None, None] + out_y
    x = places[:, :, :, 1] + k_x[:, None, None] + out_x
    samples = torch.einsum(
        "ngkpqh,ngchw,ngkpqw->ngckpq",
        hats(y, height), input.unflatten(1, (offset_groups, -1)), hats(x, width),
    )  # fmt: skip
    if use_mask:
        samples = samples * mask.view(images, offset_groups, 1, taps, rows, columns)
    samples = samples.reshape(images, groups, input.size(1) // groups, taps, rows, columns)
    kernels = weight.view(groups, weight.size(0) // groups, -1, taps)
    return torch.einsum("ngckpq,gock->ngopq", samples, kernels).flatten(1, 2) + bias.view(1, -1, 1, 1)
