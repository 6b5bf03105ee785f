# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operands of any rank give the CPU's result, or an error of the same class as on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tests.conformance import operators, variants
from tests.conformance.comparison import Mismatch, outcome_of, require_same, require_same_outcome
from tests.conformance.decompositions import compare_invariants
from tests.conformance.tolerances import tolerance_of
from tests.conformance.transfer import tensors_in, to_device
from tests.harness.device import host_can_address_device_memory

# Beyond the limits of the vendor's library (8 dimensions), of one index kernel (10 indices), and 16.
_RANKS = (0, 9, 11, 16, 20)
_SAMPLED_EVERY = 6
# A wrong index or count makes the device unusable if the host cannot check values.
_CHECKED_BY_KERNELS = frozenset(("repeat_interleave", "bincount"))
_UNINITIALISED = frozenset(("resize_",))  # The elements that it adds are not initialized.
# For 0-d operands, torch's kernel of the first reads a size that does not exist and crashes on every device;
# on the CPU, that of the second uses such a size as a length of 2^64 - 1.
_WRONG_WITHOUT_DIMENSIONS = frozenset(("_chunk_cat", "_batch_norm_with_update"))
_LIMITED_ON_CPU = frozenset(("nn.functional.gelu",))  # oneDNN takes 12 dimensions
_SUMS_OF_MANY = frozenset(("_unsafe_masked_index_put_accumulate",))  # a thousand summands each, in any order


def _left_out(rank: int, permuted: bool) -> frozenset[str]:
    return (
        _CHECKED_BY_KERNELS
        | _UNINITIALISED
        | (_WRONG_WITHOUT_DIMENSIONS if rank == 0 else frozenset())
        | (_LIMITED_ON_CPU if rank > 12 else frozenset())
        | (_SUMS_OF_MANY if permuted else frozenset())
    )


@contextmanager
def _order(provider: str) -> Iterator[None]:
    last = "host" if host_can_address_device_memory() else "host-copy"
    with torch.musa.ops.prefer("*", provider, *(("ported",) if provider == "mudnn" else ()), last):
        yield


def _of_rank(rank: int, permuted: bool) -> Any:
    def convert(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.dim() == 0:
            return value
        value = value.detach()
        if rank == 0:
            return value.reshape(-1)[0] if value.numel() else value
        if value.dim() > rank:
            return value
        if not permuted:
            return value.reshape((1,) * (rank - value.dim()) + tuple(value.shape))
        # No two dimensions can be merged into one, and the operand is broadcast along none.
        shape = (2,) * min(rank, 11) + (1,) * (rank - min(rank, 11))
        flat = value.reshape(-1)
        if not flat.numel():
            return value
        filled = flat[torch.arange(2 ** min(rank, 11)) % flat.numel()].reshape(shape)
        return filled.permute(*range(1, rank, 2), *range(0, rank, 2))

    return convert


def _is_index(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)


def _judge(op: Any, sample: Any, device: str) -> None:
    moved = to_device(device, sample.input, sample.args, sample.kwargs)
    expected = outcome_of(lambda: op(sample.input, *sample.args, **sample.kwargs))
    tensors = tensors_in((sample.input, sample.args, sample.kwargs))
    if isinstance(expected.error, IndexError) or (
        expected.error is not None and any(_is_index(each) for each in tensors)
    ):
        # It may be an index out of range: a kernel cannot raise for it, and makes the device unusable.
        return
    with torch.device(device):
        actual = outcome_of(lambda: op(moved[0], *moved[1], **moved[2]))
    values = op.full_name not in operators.RANDOM | operators.UNINITIALISED
    if values and expected.error is None and actual.error is None:
        actual.value = variants.settled(
            op, (sample.input, sample.args, sample.kwargs), expected.value, actual.value
        )
        compare_invariants(op, expected, actual, device)
    if not values:
        require_same_outcome(expected, actual, device, values=False)
        return
    wide = sample.transform(variants.doubled)
    variants.require_same_outcome_or_near(
        op,
        expected,
        actual,
        lambda: op(wide.input, *wide.args, **wide.kwargs),
        device,
        tolerance=tolerance_of(op, torch.float32),
    )


@pytest.mark.parametrize(
    ("rank", "permuted"),
    # 2,048 elements in 11 dimensions of 2; results of more dimensions would have millions.
    [*((rank, False) for rank in _RANKS), *((rank, True) for rank in _RANKS if 0 < rank <= 11)],
)
@pytest.mark.parametrize("provider", ["mudnn", "ported"])
def test_operands_of_any_rank(provider: str, rank: int, permuted: bool, device: str, full: bool) -> None:
    failures, judged = [], 0
    left_out = _left_out(rank, permuted)
    cases = [case for case in operators.float_cases() if case.name not in left_out]
    start = (_RANKS.index(rank) * 2 + permuted) % _SAMPLED_EVERY
    with _order(provider):
        for case in cases if full else cases[start::_SAMPLED_EVERY]:
            sample = next(iter(case.samples(full)), None)
            if sample is None:
                continue
            judged += 1
            try:
                _judge(case.op, sample.transform(_of_rank(rank, permuted)), device)
            except Mismatch as error:
                failures.append(f"{case.name}: {str(error)[:300]}")
    assert not failures, "\n".join(failures)
    assert judged > 50


@pytest.mark.parametrize("rank", [9, 11, 20])
def test_indexing_with_a_tensor_for_each_of_many_dimensions(rank: int, device: str) -> None:
    shape = (2, 3) + (1,) * (rank - 4) + (2, 2)
    x = torch.arange(24).reshape(shape)
    index = tuple(torch.arange(5) % size for size in shape)
    there = tuple(each.to(device) for each in index)
    with _order("ported"):
        assert torch.equal(x.to(device)[there].cpu(), x[index])
        values = torch.arange(5)
        put = x.to(device).index_put(there, values.to(device), accumulate=True)
        assert torch.equal(put.cpu(), x.index_put(index, values, accumulate=True))
        y = x.to(device)
        y[there] = 7
        expected = x.clone()
        expected[index] = 7
        assert torch.equal(y.cpu(), expected)


@pytest.mark.parametrize("provider", ["mudnn", "ported"])
@pytest.mark.parametrize(
    "function",
    [
        torch.exp,
        lambda x: x + x.transpose(0, 1),
        lambda x: x.sum(tuple(range(0, 18, 2))),
        lambda x: x.masked_select(x > 50),
        lambda x: torch.isin(x, torch.arange(9.0, device=x.device)),
        lambda x: x.clone(memory_format=torch.contiguous_format),
    ],
    ids=["unary", "binary", "sum", "masked_select", "isin", "clone"],
)
def test_eighteen_dimensions_that_cannot_be_merged(provider: str, function: Any, device: str) -> None:
    x = torch.arange(2.0**18).remainder(97).reshape((2,) * 18).permute(*range(0, 18, 2), *range(1, 18, 2))
    y = x.to(device)
    assert y.stride() == x.stride()
    with _order(provider):
        require_same(function(x), function(y), device)
