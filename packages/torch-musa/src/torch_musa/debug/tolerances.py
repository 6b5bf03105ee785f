# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares two CPU tensors within a tolerance."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# (rtol, atol) per dtype; all other dtypes must be equal. rtol is some thousand rounding errors for
# float32 and float64, and a few for short dtypes. atol only covers results that are zero except for
# rounding.
DEFAULTS = {
    torch.float64: (1e-9, 1e-14),
    torch.float32: (1e-4, 1e-8),
    torch.float16: (1e-2, 1e-6),
    torch.bfloat16: (3e-2, 1e-6),
    torch.complex128: (1e-9, 1e-14),
    torch.complex64: (1e-4, 1e-8),
    torch.float8_e4m3fn: (1.3e-1, 1e-3),
    torch.float8_e5m2: (2.6e-1, 1e-3),
}
CHUNK = 1 << 18  # elements compared at a time: temporaries in float64 take 2 MiB each


class Distance(NamedTuple):
    """The distance between two tensors.

    Attributes:
        count (int): number of elements outside the tolerance.
        numel (int): number of all elements.
        max_abs, max_rel (float): largest absolute and relative error. Both are inf if one of two values is
            not finite and the other is not equal; the relative error also if the expected value is 0.
        index (tuple of int): index of the element with the largest absolute error; () for none.
        actual, expected: the values at that index.
    """

    count: int  # type: ignore[assignment]
    numel: int
    max_abs: float
    max_rel: float
    index: tuple[int, ...]  # type: ignore[assignment]
    actual: object
    expected: object


def merged(
    overrides: Mapping[torch.dtype, tuple[float, float]] | None,
) -> dict[torch.dtype, tuple[float, float]]:
    """Returns the default tolerances, updated with those of a program.

    Args:
        overrides (dict of torch.dtype to pair of float, or None): (rtol, atol).

    Raises:
        TypeError: for a key or a value of a wrong type.
    """
    table = dict(DEFAULTS)
    for dtype, pair in (overrides or {}).items():
        if not isinstance(dtype, torch.dtype) or not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"tolerances are pairs (rtol, atol) for dtypes, but got {dtype!r}: {pair!r}.\n"
                "Fix: tolerances={torch.float32: (1e-4, 1e-8)}"
            )
        table[dtype] = (float(pair[0]), float(pair[1]))
    return table


def distance(actual: torch.Tensor, expected: torch.Tensor, tolerance: tuple[float, float] | None) -> Distance:
    """Compares two strided CPU tensors of the same shape and dtype.

    An element is outside the tolerance if |actual - expected| > atol + rtol * (|expected| +
    rms(expected)). NaN equals NaN.

    Args:
        tolerance (pair of float, or None): (rtol, atol); None if the values must be equal.
    """
    shape = actual.shape
    if actual.is_complex():
        # The last dimension then contains the real and the imaginary part.
        actual, expected = (
            torch.view_as_real(actual.resolve_conj()),
            torch.view_as_real(expected.resolve_conj()),
        )
    if tolerance is None:
        return _unequal(actual, expected, shape)
    flat_a, flat_e = actual.reshape(-1), expected.reshape(-1)
    if torch.equal(flat_a, flat_e):
        return Distance(0, flat_a.numel(), 0.0, 0.0, (), None, None)
    scale = rms(flat_e)
    rtol, atol = tolerance
    count, best, max_abs, max_rel = 0, None, 0.0, 0.0
    for start in range(0, flat_a.numel(), CHUNK):
        a, e = (t[start : start + CHUNK].to(torch.float64) for t in (flat_a, flat_e))
        same = (a == e) | (a.isnan() & e.isnan())
        error = (a - e).abs_()
        error.masked_fill_(error.isnan(), math.inf).masked_fill_(same, 0.0)
        limit = e.abs().add_(scale).mul_(rtol).add_(atol)
        # An infinite reference has an infinite limit, but only the same infinity is correct.
        outside = (error > limit) | (error.isinf() & ~same)
        count += int(outside.sum())
        largest, place = error.max(0)
        if best is None or largest > max_abs:
            best, max_abs = start + int(place), float(largest)
        max_rel = max(max_rel, float((error / e.abs()).masked_fill_(same, 0.0).max()))
    if not max_abs:
        return Distance(0, flat_a.numel(), 0.0, 0.0, (), None, None)
    index = unravel(best, actual.shape)  # type: ignore[arg-type]
    values = flat_a[best].to(torch.float64).item(), flat_e[best].to(torch.float64).item()
    return Distance(count, flat_a.numel(), max_abs, max_rel, index, *values)


def _unequal(actual: torch.Tensor, expected: torch.Tensor, shape: Sequence[int]) -> Distance:
    differs = (actual != expected).reshape(-1)
    count = int(differs.sum())
    if not count:
        return Distance(0, actual.numel(), 0.0, 0.0, (), None, None)
    first = int(differs.to(torch.uint8).argmax())
    index = unravel(first, shape)
    a, e = actual[index].item(), expected[index].item()
    return Distance(count, actual.numel(), abs(float(a) - float(e)), math.nan, index, a, e)


def rms(flat: torch.Tensor) -> float:
    """Returns the root mean square of the finite elements of a 1-d tensor."""
    total, count = 0.0, 0
    for start in range(0, flat.numel(), CHUNK):
        part = flat[start : start + CHUNK].to(torch.float64)
        finite = part[part.isfinite()]
        total += float(finite.square().sum())
        count += finite.numel()
    return math.sqrt(total / count) if count else 0.0


def unravel(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Returns the index of an element from its position in row-major order."""
    index = []
    for size in reversed(shape):
        position, rest = divmod(position, size)
        index.append(rest)
    return tuple(reversed(index))
