# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The comparison refuses every kind of wrong result of a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.common_device_type import tol, toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo, SampleInput

from tests.conformance import variants
from tests.conformance.comparison import (
    FarApart,
    Mismatch,
    Outcome,
    outcome_of,
    require_near_in_norm,
    require_nearer,
    require_same,
    require_same_outcome,
)
from tests.conformance.places import has_equal_elements, settled
from tests.conformance.tolerances import DEFAULT, Tolerance, tolerance_of
from tests.conformance.transfer import to_device

# Nothing here depends on the execution mode of this process.
pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (torch.ones(3), torch.tensor([1.0, 1.0, 1.001])),
        (torch.ones(3), torch.tensor([1.0, 1.0, float("nan")])),
        (torch.ones(3), torch.ones(3, dtype=torch.float64)),
        (torch.ones(3), torch.ones(3, 1)),
        (torch.ones(3), torch.ones(3).requires_grad_()),
        (torch.ones(3), torch.ones(3, device="meta")),
        (torch.eye(2), torch.eye(2).to_sparse()),
        (torch.eye(2).to_sparse_csr(), 2 * torch.eye(2).to_sparse_csr()),
        (torch.ones(3), 1.0),
        ((torch.ones(3),), [torch.ones(3)]),
        ([torch.ones(3)], [torch.ones(3), torch.ones(3)]),
        ({"a": 1}, {"b": 1}),
        (1, 2),
        (True, False),
        (1.0, 1.0001),
        ("mean", "sum"),
        (torch.Size([2]), torch.Size([3])),
    ],
    ids=str,
)
def test_different_results_are_refused(expected: Any, actual: Any) -> None:
    require_same(expected, expected, "cpu")
    with pytest.raises(Mismatch):
        require_same(expected, actual, "cpu")


# The documented defaults of torch.testing.
@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [
        (torch.float16, 1e-3, 1e-5),
        (torch.bfloat16, 1.6e-2, 1e-5),
        (torch.float32, 1.3e-6, 1e-5),
        (torch.float64, 1e-7, 1e-7),
        (torch.complex64, 1.3e-6, 1e-5),
    ],
    ids=str,
)
@pytest.mark.parametrize("tolerance", [DEFAULT, Tolerance(rtol=0.03, atol=0.02)], ids=["default", "widened"])
def test_a_value_just_outside_is_refused(
    dtype: torch.dtype, rtol: float, atol: float, tolerance: Tolerance
) -> None:
    expected = torch.tensor([64.0, 0.0], dtype=dtype)
    relative = max(rtol, tolerance.rtol) * 64.0 + max(atol, tolerance.atol)
    for index, allowed in enumerate((relative, max(atol, tolerance.atol))):
        # The dtype's spacing around 64 is larger than some of the tolerances.
        step = torch.finfo(dtype).eps * abs(expected[index].item())
        just_inside, just_outside = expected.clone(), expected.clone()
        just_inside[index] += max(0.9 * allowed - step, 0.0)
        just_outside[index] += 1.1 * allowed + step
        require_same(expected, just_inside, "cpu", tolerance=tolerance)
        with pytest.raises(FarApart):
            require_same(expected, just_outside, "cpu", tolerance=tolerance)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_integers_are_exact_under_any_tolerance(dtype: torch.dtype) -> None:
    for expected, actual in ((torch.tensor([99], dtype=dtype), torch.tensor([100], dtype=dtype)), (99, 100)):
        with pytest.raises(FarApart):
            require_same(expected, actual, "cpu", tolerance=Tolerance(rtol=0.1, atol=2.0))


@pytest.mark.parametrize("dtype", [torch.float16, torch.complex64], ids=str)
def test_a_value_that_is_not_close_must_be_nearer_to_the_result_in_float64(dtype: torch.dtype) -> None:
    exact = torch.tensor([64.0], dtype=torch.complex128 if dtype.is_complex else torch.float64)
    off, further = torch.tensor([65.0], dtype=dtype), torch.tensor([66.0], dtype=dtype)
    require_nearer([further], [off], [exact], "cpu")
    with pytest.raises(FarApart, match="the cpu is nearer"):
        require_nearer([off], [further], [exact], "cpu")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.complex64], ids=str)
def test_an_error_must_be_small_beside_the_largest_element(dtype: torch.dtype) -> None:
    wide = torch.complex128 if dtype.is_complex else torch.float64
    exact = torch.tensor([1000.0, 1.0, 1e30], dtype=wide)
    exact[2] = exact[0] if dtype is not torch.float16 else exact[2]  # infinite in float16
    unit, allowed = 1000 * torch.finfo(dtype).eps, 2 if dtype is torch.float16 else 64
    good, bad, cpu = exact.clone(), exact.clone(), exact.to(dtype)
    good[1] += 0.9 * allowed * unit
    bad[1] += 1.1 * allowed * unit
    require_near_in_norm([cpu], [good.to(dtype)], [exact], "cpu")
    with pytest.raises(FarApart, match="off, more than"):
        require_near_in_norm([cpu], [bad.to(dtype)], [exact], "cpu")
    with pytest.raises(FarApart):
        require_near_in_norm([cpu], [torch.full_like(cpu, float("nan"))], [exact], "cpu")
    # The CPU's own error is larger.
    cpu[1] += 0.12 * allowed * unit
    require_near_in_norm([cpu], [bad.to(dtype)], [exact], "cpu")
    with pytest.raises(FarApart):  # an error of the CPU that is not finite permits nothing
        require_near_in_norm([torch.full_like(cpu, float("inf"))], [bad.to(dtype)], [exact], "cpu")
    require_near_in_norm([torch.tensor([3])], [torch.tensor([3])], [torch.tensor([3])], "cpu")
    with pytest.raises(FarApart):
        require_near_in_norm([torch.tensor([3])], [torch.tensor([4])], [torch.tensor([3])], "cpu")


class _Info:
    def __init__(self, *decorators: Any) -> None:
        self.decorators = decorators


def _override(dtype: torch.dtype, number: float) -> toleranceOverride:
    return toleranceOverride({dtype: tol(atol=number, rtol=10 * number)})


@pytest.mark.parametrize(
    ("decorators", "dtype", "expected"),
    [
        ([], torch.float32, 0.0),
        ([_override(torch.float32, 0.01)], torch.float32, 0.01),
        ([_override(torch.float32, 0.01)], torch.float16, 0.0),
        ([DecorateInfo(_override(torch.float32, 0.01), "TestCommon")], torch.float32, 0.01),
        (
            [DecorateInfo(_override(torch.float32, 0.01), "TestCommon", device_type="cuda")],
            torch.float32,
            0.01,
        ),
        ([DecorateInfo(_override(torch.float32, 0.01), "TestCommon", device_type="mps")], torch.float32, 0.0),
        ([DecorateInfo(_override(torch.float32, 0.01), "TestCommon", active_if=False)], torch.float32, 0.0),
        ([DecorateInfo(_override(torch.float32, 0.01), "TestInductorOpInfo")], torch.float32, 0.0),
        ([DecorateInfo(_override(torch.float32, 0.01), "TestOperators", "test_grad")], torch.float32, 0.0),
        (
            [
                DecorateInfo(_override(torch.float32, 0.01), "TestCommon", "test_out"),
                DecorateInfo(_override(torch.float32, 0.02), "TestCommon", "test_numpy_ref"),
            ],
            torch.float32,
            0.02,
        ),
        (
            [
                DecorateInfo(
                    _override(torch.complex32, 0.01), "TestCommon", "test_complex_half_reference_testing"
                )
            ],
            torch.bfloat16,
            0.01,
        ),
    ],
    ids=[
        "none",
        "every test",
        "another dtype",
        "a test of kernels",
        "cuda",
        "another device",
        "inactive",
        "a test of compilers",
        "a test of gradients",
        "the largest",
        "half arithmetic",
    ],
)
def test_overrides_are_those_of_tests_like_ours(
    decorators: list, dtype: torch.dtype, expected: float
) -> None:
    tolerance = tolerance_of(_Info(*decorators), dtype)
    assert (tolerance.atol, tolerance.rtol) == (expected, 10 * expected)


def test_gradients_have_their_own_overrides() -> None:
    info = _Info(DecorateInfo(_override(torch.float32, 0.01), "TestOperators", "test_grad"))
    assert tolerance_of(info, torch.float32, gradients=True) == Tolerance(rtol=0.1, atol=0.01)


def test_the_nearer_of_two_roundings_is_right() -> None:
    exact, rough, fine, wrong = (torch.tensor([value]) for value in (1.0, 1.3, 1.1, 0.6))
    require_nearer(rough.half(), fine.half(), exact.double(), "cpu")
    for farther in (wrong, torch.tensor([float("nan")])):
        with pytest.raises(Mismatch):
            require_nearer(rough.half(), farther.half(), exact.double(), "cpu")
    with pytest.raises(Mismatch):
        require_nearer([rough.half(), torch.tensor(1)], [fine.half(), torch.tensor(2)], [exact] * 2, "cpu")


def test_a_result_left_on_the_cpu_is_refused() -> None:
    with pytest.raises(Mismatch, match="expected a tensor on meta"):
        require_same(torch.ones(2), torch.ones(2), "meta")


def test_nan_equals_nan() -> None:
    require_same(torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0]), "cpu")


@pytest.mark.parametrize(
    "actual",
    [Outcome(value=1), Outcome(error=RuntimeError("x")), Outcome(error=NotImplementedError("x"))],
    ids=["returned", "base class", "derived class"],
)
def test_another_exception_class_is_refused(actual: Outcome) -> None:
    expected = outcome_of(lambda: {}["missing"])
    require_same_outcome(expected, outcome_of(lambda: {}["also missing"]), "cpu")
    with pytest.raises(Mismatch):
        require_same_outcome(expected, actual, "cpu")


class _BrokenOp:
    """Returns a right result to the first call, which is the CPU's, and a wrong one to the second."""

    def __init__(self, spoil: Callable) -> None:
        self._spoil = spoil
        self._calls = 0

    def __call__(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        self._calls += 1
        result = torch.mul(x, 2, out=out)
        return self._spoil(x, result) if self._calls % 2 == 0 else result

    def get_inplace(self) -> Callable:
        def inplace(x: torch.Tensor) -> torch.Tensor:
            self._calls += 1
            return self._spoil(x, x.mul_(2)) if self._calls % 2 == 0 else x.mul_(2)

        return inplace


def _good(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return result


def _wrong_values(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return result + 1e-3


def _writes_its_argument(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    x.detach()[0] = -1
    return result


def _raises(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("not implemented")


def _wrong_gradient(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return result.detach() + (x - x.detach())


def _not_in_place(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return result.clone()


def _sample(requires_grad: bool = False) -> SampleInput:
    return SampleInput(torch.rand(4, 3, requires_grad=requires_grad))


@pytest.mark.parametrize("spoil", [_wrong_values, _writes_its_argument, _raises])
@pytest.mark.parametrize(
    "variant",
    [variants.forward, variants.noncontiguous, variants.expanded],
    ids=lambda variant: variant.__name__,
)
def test_a_broken_operator_is_refused(variant: Callable, spoil: Callable) -> None:
    variant(_BrokenOp(_good), _sample(), "cpu")
    with pytest.raises(Mismatch):
        variant(_BrokenOp(spoil), _sample(), "cpu")


def _rough(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    return result + 2e-2


def test_in_half_precision_the_more_precise_result_decides() -> None:
    sample = SampleInput(torch.rand(4, 3).bfloat16())
    for spoil in (_rough, _writes_its_argument):
        with pytest.raises(Mismatch):
            variants.forward(_BrokenOp(spoil), sample, "cpu")

    class _RoughOnTheCpu(_BrokenOp):
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            self._calls += 1
            return _rough(x, x * 2) if self._calls == 1 else x * 2

    variants.forward(_RoughOnTheCpu(_good), sample, "cpu")


def test_a_wrong_gradient_is_refused() -> None:
    variants.gradient(_BrokenOp(_good), _sample(requires_grad=True), "cpu")
    with pytest.raises(Mismatch):
        variants.gradient(_BrokenOp(_wrong_gradient), _sample(requires_grad=True), "cpu")


@pytest.mark.parametrize("spoil", [_not_in_place, _wrong_values, _raises])
def test_a_broken_in_place_form_is_refused(spoil: Callable) -> None:
    variants.in_place(_BrokenOp(_good), _sample(), "cpu")
    with pytest.raises(Mismatch):
        variants.in_place(_BrokenOp(spoil), _sample(), "cpu")


class _BrokenOut(_BrokenOp):
    """Called once for the reference and then twice per kind of out=."""

    def __call__(self, x: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        self._calls += 1
        result = torch.mul(x, 2, out=out)
        return self._spoil(x, result) if self._calls > 1 and self._calls % 2 == 1 else result


def _ignores_out(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    result.fill_(7)
    return torch.mul(x, 2)


def _moves_out(x: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    result.set_(result.clone())
    return result


@pytest.mark.parametrize("spoil", [_ignores_out, _moves_out, _raises])
def test_a_broken_out_argument_is_refused(spoil: Callable) -> None:
    variants.out_argument(_BrokenOut(_good), _sample(), "cpu")
    with pytest.raises(Mismatch):
        variants.out_argument(_BrokenOut(spoil), _sample(), "cpu")


def test_a_reference_that_raises_is_not_a_pass() -> None:
    def refused(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no cpu kernel")

    with pytest.raises(variants.ReferenceFailed):
        variants.forward(refused, _sample(), "cpu")


def test_arguments_keep_strides_offsets_and_aliasing(device: str) -> None:
    base = torch.arange(24.0).view(4, 6)
    view, overlapping = base[1:, ::2], base.as_strided((3, 3), (1, 1), 2)
    moved, moved_view, moved_overlapping = to_device(device, base, view, overlapping)
    for source, twin in ((base, moved), (view, moved_view), (overlapping, moved_overlapping)):
        assert (source.stride(), source.storage_offset()) == (twin.stride(), twin.storage_offset())
        assert torch.equal(source, twin.cpu())
    moved.fill_(9)
    assert moved_view.eq(9).all()
    assert moved_overlapping.eq(9).all()
    assert not base.eq(9).all()


def test_arguments_keep_conj_and_neg_bits(device: str) -> None:
    conj = torch.randn(3, dtype=torch.complex64).conj()
    neg = conj.imag
    moved_conj, moved_neg = to_device(device, conj, neg)
    assert moved_conj.is_conj()
    assert moved_neg.is_neg()
    require_same(conj, moved_conj, device)
    require_same(neg, moved_neg, device)


class _Operator:
    def __init__(self, name):
        self.name = name


def test_indices_of_equal_elements_may_differ():
    x = torch.tensor([3.0, 1.0, 3.0, float("nan"), float("nan")])
    theirs = torch.return_types.topk(
        (torch.tensor([float("nan"), float("nan"), 3.0]), torch.tensor([3, 4, 0]))
    )
    ours = torch.return_types.topk((theirs.values, torch.tensor([4, 3, 2])))
    mended = settled(_Operator("topk"), (x, (3,), {}), theirs, ours)
    assert torch.equal(mended.indices, theirs.indices)


@pytest.mark.parametrize(
    "wrong",
    [
        [3, 3, 0],  # one element twice
        [3, 4, 1],  # of another value
        [3, 4, 7],  # none
    ],
)
def test_other_indices_may_not_differ(wrong):
    x = torch.tensor([3.0, 1.0, 3.0, float("nan"), float("nan")])
    theirs = torch.return_types.topk(
        (torch.tensor([float("nan"), float("nan"), 3.0]), torch.tensor([3, 4, 0]))
    )
    ours = torch.return_types.topk((theirs.values, torch.tensor(wrong)))
    assert settled(_Operator("topk"), (x, (3,), {}), theirs, ours).indices.tolist() == wrong


def test_a_stable_sort_has_one_order():
    x = torch.tensor([1, 1])
    theirs = torch.sort(x, stable=True)
    ours = torch.return_types.sort((theirs.values, torch.tensor([1, 0])))
    assert settled(_Operator("sort"), (x, (), {"stable": True}), theirs, ours).indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "values", "kwargs", "expected"),
    [
        ("topk", [3.0, 1.0, 3.0], {}, True),
        ("msort", [3.0, 1.0, 3.0], {}, True),
        ("topk", [3.0, 1.0, 2.0], {}, False),
        ("sort", [3.0, 1.0, 3.0], {"stable": True}, False),
        ("sum", [3.0, 1.0, 3.0], {}, False),
    ],
)
def test_gradients_are_compared_unless_equal_elements_share_them(name, values, kwargs, expected):
    assert has_equal_elements(_Operator(name), (torch.tensor(values), (), kwargs)) is expected
