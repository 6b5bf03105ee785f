# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Convolutions whose sizes differ in all dimensions, in all layouts, and their gradients equal the CPU's."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

FORWARD = "aten::convolution_overrideable"
BACKWARD = "aten::convolution_backward_overrideable"

IMAGE, FILTER = (9, 7, 8), (2, 3, 4)
PLAIN: dict[str, tuple[int, ...]] = {}
# In each dimension another stride, padding and dilation.
WINDOWS = {"stride": (2, 3, 1), "padding": (1, 0, 2), "dilation": (3, 1, 2)}
OUTPUT_PADDING = (1, 2, 0)

# The order of the dimensions in memory. torch has no memory format for 1-d images.
LAYOUTS = {
    "contiguous": lambda x: x.contiguous(),
    "channels last": lambda x: x.movedim(1, -1).contiguous().movedim(-1, 1),
}


def numbers(*shape: int) -> torch.Tensor:
    """Returns small integers, whose sums of products are exact in every order."""
    return torch.randint(-3, 4, shape).float()


def results(function, image, weight, bias, gradient, device, **options):
    """Returns the output and the gradients of all operands."""
    leaves = [tensor.to(device).requires_grad_() for tensor in (image, weight, bias)]
    out = function(*leaves, **options)
    return [out.detach(), *torch.autograd.grad(out, leaves, gradient.to(device))]


@pytest.mark.parametrize("weight_layout", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("transposed", [False, True], ids=["convolution", "transposed"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_values_and_gradients_are_the_cpus(musa, calls_of, dims, transposed, layout, weight_layout):
    function = getattr(functional, f"conv{'_transpose' if transposed else ''}{dims}d")
    for windows, groups in ((PLAIN, 1), (WINDOWS, 2)):
        options = {name: values[:dims] for name, values in windows.items()}
        if transposed and windows:
            options["output_padding"] = OUTPUT_PADDING[:dims]
        options["groups"] = groups
        image = LAYOUTS[layout](numbers(2, 4, *IMAGE[:dims]))
        sizes = (4, 6 // groups) if transposed else (6, 4 // groups)
        weight, bias = LAYOUTS[weight_layout](numbers(*sizes, *FILTER[:dims])), numbers(6)
        gradient = numbers(*function(image, weight, bias, **options).shape)
        operands = (function, image, weight, bias, gradient)
        expected = results(*operands, "cpu", **options)
        before = calls_of(FORWARD), calls_of(BACKWARD)
        found = results(*operands, "musa", **options)
        assert (calls_of(FORWARD), calls_of(BACKWARD)) == (before[0] + 1, before[1] + 1)
        for name, here, there in zip(("output", "image", "filter", "bias"), expected, found, strict=True):
            torch.testing.assert_close(
                there.cpu(), here, msg=lambda text, name=name, at=options: f"{name}, {at}: {text}"
            )
