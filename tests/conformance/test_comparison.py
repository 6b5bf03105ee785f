# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The judge itself: everything that a wrong device could do must be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from tests.conformance import variants
from tests.conformance.comparison import Mismatch, Outcome, outcome_of, require_same, require_same_outcome
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
    """Right the first time it is called, which is the CPU's turn, and wrong the second."""

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
