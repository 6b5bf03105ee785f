# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Under torch.autocast the operators compute in float32 and return the dtype of their input."""

from __future__ import annotations

import pytest
import torch

from tests.musa_ops_vision.cases import WITH_GRADIENT, boxes

# The first case of each operator.
FIRST = {case.op: case for case in reversed(WITH_GRADIENT)}


def first(result):
    return result if isinstance(result, torch.Tensor) else result[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("op", FIRST)
def test_halves_compute_in_float32(ops, op, dtype):
    operator = getattr(ops, op)
    arguments = FIRST[op].with_tensors(lambda t: t.to("musa", dtype))
    with torch.autocast("musa", dtype=dtype):
        found = first(operator(*arguments))
    wide = [value.float() if isinstance(value, torch.Tensor) else value for value in arguments]
    assert found.dtype == dtype
    assert torch.equal(found, first(operator(*wide)).to(dtype))


def test_dtypes_may_differ(ops):
    """Features in float16 from earlier layers and boxes in float32 are an error without autocast."""
    images = torch.randn(1, 2, 8, 8, device="musa", dtype=torch.float16, requires_grad=True)
    regions = torch.tensor([[0.0, 1, 1, 6, 6]], device="musa")
    with torch.autocast("musa"):
        out = ops.roi_align(images, regions, 1.0, 2, 2, 2, True)
    assert out.dtype == torch.float16
    out.sum().backward()
    assert images.grad.dtype == torch.float16 and images.grad.sum().item() == pytest.approx(8, abs=0.05)
    with pytest.raises(RuntimeError, match="same type"):
        ops.roi_align(images, regions, 1.0, 2, 2, 2, True)


def test_nms(ops):
    dets = boxes(60, 50).to("musa", torch.float16)
    scores = torch.rand(60, device="musa")
    with torch.autocast("musa"):
        kept = ops.nms(dets, scores, 0.5)
    assert torch.equal(kept, ops.nms(dets.float(), scores, 0.5))
