# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Bad arguments raise errors with the values and the change that fixes the call."""

from __future__ import annotations

import pytest
import torch

from tests.harness.subprocesses import run_forked


def zeros(*shape, dtype=torch.float32, device="musa"):
    return torch.zeros(*shape, dtype=dtype, device=device)


CONVOLUTION = (1, 1, 1, 1, 1, 1, 1, 1, True)


def convolution(**changes):
    tensors = {
        "input": zeros(1, 4, 5, 5), "weight": zeros(2, 4, 3, 3), "offset": zeros(1, 18, 5, 5),
        "mask": zeros(1, 9, 5, 5), "bias": zeros(2),
    }  # fmt: skip
    tensors.update(changes)
    return tuple(tensors.values())


CALLS = {
    "boxes of three numbers": ("nms", lambda: (zeros(4, 3), zeros(4), 0.5), r"boxes of shape \(N, 4\)"),
    "scores of two dimensions": (
        "nms",
        lambda: (zeros(4, 4), zeros(4, 1), 0.5),
        "scores should be a 1d tensor",
    ),
    "fewer scores": ("nms", lambda: (zeros(4, 4), zeros(3), 0.5), "same number of elements"),
    "whole numbers": ("nms", lambda: (zeros(4, 4, dtype=torch.int64), zeros(4), 0.5), "floating-point dtype"),
    "scores of another dtype": (
        "nms",
        lambda: (zeros(4, 4), zeros(4, dtype=torch.float64), 0.5),
        "same type",
    ),
    "scores on the CPU": (
        "nms",
        lambda: (zeros(4, 4), zeros(4, device="cpu"), 0.5),
        "on one device.*\n?.*Fix: ",
    ),
    "an image of three dimensions": (
        "roi_align",
        lambda: (zeros(3, 5, 5), zeros(1, 5), 1.0, 2, 2, 2, False),
        r"shape \(N, C, H, W\)",
    ),
    "regions of four numbers": (
        "roi_align",
        lambda: (zeros(1, 3, 5, 5), zeros(1, 4), 1.0, 2, 2, 2, False),
        r"shape \(K, 5\)",
    ),
    "regions of another dtype": (
        "roi_align",
        lambda: (zeros(1, 3, 5, 5), zeros(1, 5).double(), 1.0, 2, 2, 2, False),
        "same type as input",
    ),
    "an output without elements": (
        "roi_pool",
        lambda: (zeros(1, 3, 5, 5), zeros(1, 5), 1.0, 0, 2),
        "positive output size",
    ),
    "channels that are no multiple of the bins": (
        "ps_roi_align",
        lambda: (zeros(1, 3, 5, 5), zeros(1, 5), 1.0, 2, 2, 2),
        "multiple of pooling height",
    ),
    "another count of channels": (
        "ps_roi_pool",
        lambda: (zeros(1, 5, 5, 5), zeros(1, 5), 1.0, 2, 2),
        "multiple of pooling height",
    ),
    "a gradient of another shape": (
        "_roi_align_backward",
        lambda: (zeros(2, 3, 2, 2), zeros(1, 5), 1.0, 2, 2, 1, 3, 5, 5, 2, False),
        "expected a gradient of shape",
    ),
    "indices as numbers with a point": (
        "_roi_pool_backward",
        lambda: (zeros(1, 3, 2, 2), zeros(1, 5), zeros(1, 3, 2, 2), 1.0, 2, 2, 1, 3, 5, 5),
        "argmax as the forward operator gave it",
    ),
    "a weight of other channels": (
        "deform_conv2d",
        lambda: (*convolution(weight=zeros(2, 3, 3, 3)), *CONVOLUTION),
        "do not match",
    ),
    "too few offsets": (
        "deform_conv2d",
        lambda: (*convolution(offset=zeros(1, 16, 5, 5)), *CONVOLUTION),
        r"offset of shape \(1, 18, 5, 5\)",
    ),
    "a mask of another size": (
        "deform_conv2d",
        lambda: (*convolution(mask=zeros(1, 9, 4, 5)), *CONVOLUTION),
        r"mask of shape \(1, 9, 5, 5\)",
    ),
    "no stride": ("deform_conv2d", lambda: (*convolution(), 0, *CONVOLUTION[1:]), "stride must be positive"),
    "offset groups that do not divide": (
        "deform_conv2d",
        lambda: (*convolution(), *CONVOLUTION[:7], 3, True),
        "must divide the input channels",
    ),
    "a kernel larger than the input": (
        "deform_conv2d",
        lambda: (*convolution(input=zeros(1, 4, 1, 1)), 1, 1, 0, 0, 1, 1, 1, 1, True),
        "larger than the padded input",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_argument_is_named(ops, name):
    op, arguments, message = CALLS[name]
    with pytest.raises(RuntimeError, match=message):
        getattr(ops, op)(*arguments())


def test_an_image_that_does_not_exist_is_an_assertion_of_the_device():
    """In a process of its own, because the device cannot be used afterwards."""
    done = run_forked(
        "import torch\n"
        "images = torch.zeros(2, 3, 5, 5, device='musa')\n"
        "rois = torch.tensor([[2.0, 0, 0, 4, 4]], device='musa')\n"
        "torch.ops.torchvision.roi_align(images, rois, 1.0, 2, 2, 2, False)\n"
        "torch.musa.synchronize()\n"
    )
    assert done.returncode != 0
    assert "image index of a region is out of range" in done.stderr
