# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Convolutions that no pack serves are composed of products on the device, in every dtype."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.harness.device import computes_float64
from tests.harness.skips import skip_permanently


@pytest.fixture(autouse=True)
def composed(musa):
    torch.manual_seed(0)
    with musa.ops.prefer("aten::convolution*", "runtime"):
        yield


def numbers(*shape, dtype):
    return torch.randint(-5, 6, shape) if dtype is torch.int64 else torch.randn(*shape, dtype=dtype)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("space", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.int64], ids=str)
def test_results_and_gradients(dtype, space, groups, transposed):
    differentiable = dtype is not torch.int64
    if transposed and not differentiable:
        return  # torch's CPU has no transposed convolution of integers
    call = getattr(F, f"conv{'_transpose' if transposed else ''}{space}d")
    for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (3, 2, 2), (1, 1, 2)):
        window = (3, 2, 3)[:space]
        x = numbers(2, 4, *(9, 8, 7)[:space], dtype=dtype)
        weight = numbers(*((4, 6 // groups) if transposed else (6, 4 // groups)), *window, dtype=dtype)
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        if transposed and stride > 1:
            settings["output_padding"] = 1
        operands = [x, weight, numbers(6, dtype=dtype)]
        here = [each.clone().requires_grad_(differentiable) for each in operands]
        there = [each.to("musa").requires_grad_(differentiable) for each in operands]
        expected, result = call(*here, **settings), call(*there, **settings)
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
        if differentiable:
            cotangent = torch.randn_like(expected)
            expected.backward(cotangent)
            result.backward(cotangent.to("musa"))
            for left, right in zip(here, there):
                torch.testing.assert_close(right.grad.cpu(), left.grad, rtol=1e-4, atol=1e-4)


def test_layout_of_channels_last():
    x = torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last)
    weight = torch.randn(3, 4, 3, 3)
    assert F.conv2d(x.to("musa"), weight.to("musa")).is_contiguous(memory_format=torch.channels_last)


def test_no_images():
    for x in (torch.empty(0, 4, 6, 6), torch.empty(0, 4, 6, 6, dtype=torch.float64)):
        assert F.conv2d(x.to("musa"), torch.ones(3, 4, 3, 3, dtype=x.dtype, device="musa")).shape == (
            0,
            3,
            4,
            4,
        )


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: torch.ops.aten.convolution(
            x, w[:, :, :0], None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1
        ),
        lambda x, w: F.conv2d(x, w, dilation=(0, 1)),
        lambda x, w: F.conv2d(x[:, :, :2, :2], w),
        lambda x, w: F.conv_transpose2d(x, w, output_padding=1),
        lambda x, w: F.conv_transpose2d(x[:, :, :1, :1], w, padding=2),
        lambda x, w: torch.ops.aten.convolution_backward(
            x[..., :3, :3], x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False]
        ),
    ],
    ids=["no window", "no dilation", "small image", "output padding", "no result", "other gradient"],
)
def test_arguments_that_the_cpu_refuses(call):
    x, weight = torch.randn(2, 4, 5, 5), torch.randn(4, 4, 3, 3)
    for device in ("cpu", "musa"):
        with pytest.raises(RuntimeError):
            call(x.to(device), weight.to(device))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_in_a_graph(musa, dtype):
    if dtype is torch.float64 and not computes_float64():
        skip_permanently("float64")
    x, weight = (torch.randn(*shape, dtype=dtype, device="musa") for shape in ((2, 4, 6, 6), (3, 4, 3, 3)))
    graph = musa.MUSAGraph()
    with musa.ops.prefer("*", "mudnn", "ported", "runtime"), musa.graph(graph):
        result = F.conv2d(x, weight)
    x.copy_(torch.randn(2, 4, 6, 6, dtype=dtype))
    graph.replay()
    torch.testing.assert_close(result.cpu(), F.conv2d(x.cpu(), weight.cpu()), rtol=1e-4, atol=1e-4)
