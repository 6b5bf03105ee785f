# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fake kernels have the shapes and dtypes of the real ones: torch.library.opcheck, and compiled functions."""

from __future__ import annotations

import pytest
import torch

from tests.musa_ops_vision.cases import CASES, WITH_GRADIENT, generator

# test_autograd_registration is for devices of torch's own list: "NYI devices other than CPU/CUDA/XPU".
UTILITIES = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
FIRST = {case.op: case for case in reversed(CASES)}
WITH_BACKWARD = {case.op: case for case in reversed(WITH_GRADIENT)}


@pytest.mark.parametrize("op", FIRST)
def test_opcheck(ops, op):
    """Schema, fake tensors, and tracing of both directions with symbolic sizes."""
    case = FIRST["nms"] if op == "nms" else WITH_BACKWARD[op]
    if op == "nms":
        case = next(c for c in CASES if c.op == "nms" and c.name.startswith("65-"))
    arguments = list(case.with_tensors(lambda t: t.to("musa", torch.float32)))
    for place in case.differentiable:
        arguments[place].requires_grad_()
    torch.library.opcheck(getattr(ops, op).default, tuple(arguments), test_utils=UTILITIES)


@pytest.mark.parametrize("op", WITH_BACKWARD)
def test_opcheck_of_the_backward_operator(ops, op):
    case = WITH_BACKWARD[op]
    arguments = case.with_tensors(lambda t: t.to("musa", torch.float32))
    out = getattr(ops, op)(*arguments)
    out, *indices = [out] if isinstance(out, torch.Tensor) else out
    if op == "deform_conv2d":
        backward = (torch.ones_like(out), *arguments)
    else:
        sizes = arguments[0].shape
        scale, *rest = arguments[2:5]
        more = arguments[5:]
        backward = {
            "roi_align": (out, arguments[1], scale, *rest, *sizes, *more),
            "ps_roi_align": (out, arguments[1], *indices, scale, *rest, *more, *sizes),
        }.get(op, (out, arguments[1], *indices, scale, *rest, *sizes))
    torch.library.opcheck(getattr(ops, f"_{op}_backward").default, backward, test_utils=UTILITIES)


def test_a_compiled_function_has_the_results_and_gradients_of_eager_mode(ops):
    images = torch.randn(2, 3, 9, 9, generator=generator(0)).to("musa").requires_grad_()
    regions = torch.tensor([[0.0, 1, 1, 6, 6], [1, 0, 2, 7, 7]], device="musa")

    def function(images, regions):
        kept = ops.nms(regions[:, 1:], regions[:, 0] + 1, 0.5)
        pooled = ops.roi_align(images.relu(), regions[kept], 0.5, 2, 2, 2, True)
        return pooled * 2

    eager = function(images, regions)
    (expected,) = torch.autograd.grad(eager.square().sum(), images)
    compiled = torch.compile(function, backend="aot_eager")(images, regions)
    (found,) = torch.autograd.grad(compiled.square().sum(), images)
    assert torch.equal(compiled, eager)
    torch.testing.assert_close(found, expected)
