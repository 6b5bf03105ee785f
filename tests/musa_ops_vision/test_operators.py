# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each operator and its gradient give the results of the reference, in all dtypes."""

from __future__ import annotations

import pytest
import torch

from tests.musa_ops_vision.cases import CASES, WITH_GRADIENT, Case, boxes, rois

# float32 and float64: sums have another order. Half types: the reference computes in float64 from rounded
# operands, so only the result's rounding remains, and for the convolution that of its columns.
TOLERANCES = {
    torch.float64: (1e-11, 1e-11),
    torch.float32: (1e-4, 1e-4),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (6e-2, 6e-2),
}
HALVES = (torch.float16, torch.bfloat16)


def outputs(result) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def assert_same(found, expected, dtype) -> None:
    found, expected = outputs(found), outputs(expected)
    assert len(found) == len(expected)
    for here, there in zip(found, expected):
        assert here.device.type == "musa" and here.is_contiguous()
        if there.dtype.is_floating_point:
            assert here.dtype == dtype
            absolute, relative = TOLERANCES[dtype]
            torch.testing.assert_close(
                here.cpu().double(), there.double(), atol=absolute, rtol=relative, equal_nan=True
            )
        else:
            assert here.dtype == there.dtype
            torch.testing.assert_close(here.cpu(), there, rtol=0, atol=0)


def reference_dtype(dtype):
    return torch.float64 if dtype in HALVES else dtype


def on_grid(case: Case, dtype) -> Case:
    """The case in a dtype, converted back, so that both sides have the same numbers."""
    return Case(case.name, case.op, case.with_tensors(lambda t: t.to(dtype)), case.differentiable)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results(ops, case, dtype):
    case = on_grid(case, dtype)
    operator = getattr(ops, case.op)
    found = operator(*case.with_tensors(lambda t: t.to("musa")))
    wide = reference_dtype(dtype)
    if case.op == "nms" and dtype in HALVES:
        wide = torch.float32  # as in the kernel, because nms compares without a tolerance
    assert_same(found, case.reference(*case.with_tensors(lambda t: t.to(wide))), dtype)


def gradients(function, arguments, places, device, dtype):
    moved = [
        value.detach().to(device, dtype) if isinstance(value, torch.Tensor) else value for value in arguments
    ]
    for place in places:
        moved[place].requires_grad_()
    out = outputs(function(*moved))[0]
    if device == "cpu" and not out.requires_grad:  # the reference has no regions, or only empty ones
        return [None for _ in places]
    weights = torch.linspace(-1, 1, max(out.numel(), 1), dtype=torch.float64)[: out.numel()].view(out.shape)
    out.backward(weights.to(out.dtype).to(device))
    return [moved[place].grad for place in places]


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("case", WITH_GRADIENT, ids=str)
def test_gradients(ops, case, dtype):
    case = on_grid(case, dtype)
    found = gradients(getattr(ops, case.op), case.arguments, case.differentiable, "musa", dtype)
    wide = reference_dtype(dtype)
    expected = gradients(case.reference, case.arguments, case.differentiable, "cpu", wide)
    for here, there in zip(found, expected):
        if there is None:  # the result does not depend on the argument
            there = torch.zeros_like(here, device="cpu", dtype=wide)
        assert here.dtype == dtype
        scale = max(there.abs().max().item(), 1) if there.numel() else 1
        absolute, relative = TOLERANCES[dtype]
        torch.testing.assert_close(here.cpu().to(wide), there, atol=absolute * scale, rtol=relative)


@pytest.mark.parametrize("case", [c for c in WITH_GRADIENT if 0 not in c.arguments[0].shape], ids=str)
def test_gradcheck(ops, case):
    """Numerical derivatives in float64. Candidates of a maximum differ by more than the step."""
    operator = getattr(ops, case.op)
    moved = case.with_tensors(lambda t: t.to("musa"))
    places = case.differentiable

    def function(*variables):
        changed = list(moved)
        for place, variable in zip(places, variables):
            changed[place] = variable
        return outputs(operator(*changed))[0]

    if len(moved[1]) == 0:
        return  # the result is empty; test_gradients has the gradient, which is zero
    variables = tuple(moved[place].detach().requires_grad_() for place in places)
    torch.autograd.gradcheck(function, variables, fast_mode=True, nondet_tol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_strided_arguments_give_the_same_bits(ops, case):
    """Every second element of a tensor, and tensors that begin inside a storage."""
    operator = getattr(ops, case.op)

    def strided(tensor):
        wide = tensor.new_zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 1).to("musa", torch.float32)
        view = wide[..., 1::2]
        view.copy_(tensor)
        return view

    dense = outputs(operator(*case.with_tensors(lambda t: t.to("musa", torch.float32))))
    for here, there in zip(outputs(operator(*case.with_tensors(strided))), dense):
        assert torch.equal(here.nan_to_num(), there.nan_to_num())


def test_channels_last_images_give_the_same_bits(ops):
    images = torch.randn(2, 9, 12, 12, device="musa")
    regions = rois(5, 2, 12).to("musa", torch.float32)
    dense = ops.roi_align(images, regions, 1.0, 3, 3, 2, True)
    last = ops.roi_align(images.to(memory_format=torch.channels_last), regions, 1.0, 3, 3, 2, True)
    assert torch.equal(dense, last)


@pytest.mark.parametrize("case", WITH_GRADIENT, ids=str)
def test_deterministic_gradients_repeat_and_are_those_of_atomic_additions(ops, case):
    places = case.differentiable
    operator = getattr(ops, case.op)
    atomic = gradients(operator, case.arguments, places, "musa", torch.float32)
    torch.use_deterministic_algorithms(True)
    try:
        first = gradients(operator, case.arguments, places, "musa", torch.float32)
        second = gradients(operator, case.arguments, places, "musa", torch.float32)
    finally:
        torch.use_deterministic_algorithms(False)
    for a, b, c in zip(first, second, atomic):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c, atol=1e-3, rtol=1e-4)


def test_a_second_derivative_is_refused_by_name(ops):
    images = torch.randn(1, 2, 8, 8, device="musa", requires_grad=True)
    regions = torch.tensor([[0.0, 1, 1, 6, 6]], device="musa")
    out = ops.roi_align(images, regions, 1.0, 2, 2, 2, True).square().sum()
    (first,) = torch.autograd.grad(out, images, create_graph=True)
    with pytest.raises(RuntimeError, match="_roi_align_backward"):
        first.sum().backward()


def test_boxes_beyond_one_round_of_comparisons(ops, monkeypatch):
    """More boxes than are compared at a time: 64 MiB of bits hold all pairs of 23,170 boxes."""
    count = 24_000
    # Columns of boxes far apart: each overlaps its neighbours alone, so the result is known.
    begin = torch.arange(count, device="musa", dtype=torch.float32) * 10
    dets = torch.stack([begin, torch.zeros_like(begin), begin + 16, torch.ones_like(begin)], 1)
    scores = torch.linspace(1, 0, count, device="musa")
    kept = ops.nms(dets, scores, 0.2)  # neighbours share 6 of 26
    assert kept.tolist() == list(range(0, count, 2))


@pytest.mark.full
def test_images_with_more_than_2_to_the_31_elements(ops):
    images = torch.empty(1, 1, 46_400, 46_400, dtype=torch.float16, device="musa")
    images[0, 0, -4:, -4:] = 3
    regions = torch.tensor([[0.0, 46_397, 46_397, 46_399, 46_399]], device="musa")
    # float16 cannot represent such coordinates: the scale computes them from small ones.
    regions[:, 1:] /= 46_397
    out = ops.roi_align(images, regions.half(), 46_397.0, 1, 1, 1, False)
    assert out.item() == 3


def test_results_are_on_the_device_of_the_arguments(ops, two_devices):
    dets = boxes(20, 30).to("musa:1", torch.float32)
    assert ops.nms(dets, dets[:, 0].contiguous(), 0.5).device == torch.device("musa:1")
    images = torch.randn(1, 4, 6, 6, device="musa:1")
    out, places = ops.roi_pool(images, rois(3, 1, 6).to("musa:1", torch.float32), 1.0, 2, 2)
    assert out.device == places.device == torch.device("musa:1")
