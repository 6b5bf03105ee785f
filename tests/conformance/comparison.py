# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares the outcome of a call on the device with the CPU's.

Python types, devices, dtypes, layouts, shapes and values are compared, or the class of the exception if the
CPU raises one. Strides are not compared, because torch does not promise equal strides across devices.
tolerances.py defines how close values must be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .tolerances import DEFAULT, Tolerance

_COMPRESSED_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_COMPRESSED_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)


class Mismatch(AssertionError):
    """The device's behaviour differs from the CPU's."""


class FarApart(Mismatch):
    """The results are of the same kind, but their values differ."""


@dataclass
class Outcome:
    """The value that a call returned, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None


def outcome_of(call: Callable[[], Any]) -> Outcome:
    """Run `call`. An exception is an outcome to compare, so it is not propagated."""
    try:
        return Outcome(value=call())
    except Exception as error:  # noqa: BLE001 - whatever the reference raises, the device must raise too
        return Outcome(error=error)


def require_same_outcome(
    expected: Outcome,
    actual: Outcome,
    device: str,
    *,
    values: bool = True,
    tolerance: Tolerance = DEFAULT,
) -> None:
    """Raise Mismatch unless both calls returned equal results or raised exceptions of one class."""
    if expected.error is not None and actual.error is not None:
        if type(expected.error) is not type(actual.error):
            raise Mismatch(
                f"cpu raised {_describe(expected.error)}\nbut {device} raised {_describe(actual.error)}"
            ) from actual.error
        return
    if expected.error is not None:
        raise Mismatch(
            f"cpu raised {_describe(expected.error)}\nbut {device} returned {_brief(actual.value)}"
        )
    if actual.error is not None:
        raise Mismatch(
            f"cpu returned a result, but {device} raised {_describe(actual.error)}"
        ) from actual.error
    require_same(expected.value, actual.value, device, values=values, tolerance=tolerance)


def require_same(
    expected: Any,
    actual: Any,
    device: str,
    *,
    values: bool = True,
    tolerance: Tolerance = DEFAULT,
    path: str = "result",
) -> None:
    """Raise Mismatch unless `actual`, computed on `device`, equals `expected`, computed on the CPU.

    With `values` False only types, dtypes, layouts and shapes are compared (random and uninitialised
    results).
    """
    if type(expected) is not type(actual):
        raise Mismatch(f"{path}: cpu gives a {type(expected).__name__}, {device} a {type(actual).__name__}")
    if isinstance(expected, torch.Tensor):
        _require_same_tensor(expected, actual, device, values, tolerance, path)
    elif isinstance(expected, dict):
        if list(expected) != list(actual):
            raise Mismatch(f"{path}: cpu gives keys {list(expected)}, {device} {list(actual)}")
        for key in expected:
            inner = f"{path}[{key!r}]"
            require_same(expected[key], actual[key], device, values=values, tolerance=tolerance, path=inner)
    elif isinstance(expected, (list, tuple)):
        if len(expected) != len(actual):
            raise Mismatch(f"{path}: cpu gives {len(expected)} items, {device} {len(actual)}")
        for index, (left, right) in enumerate(zip(expected, actual)):
            inner = f"{path}[{index}]"
            require_same(left, right, device, values=values, tolerance=tolerance, path=inner)
    elif isinstance(expected, torch.device):
        if actual.type != _twin_device(expected, device):
            raise Mismatch(f"{path}: cpu gives {expected}, {device} gives {actual}")
    elif values and isinstance(expected, (int, float, complex)) and not isinstance(expected, bool):
        _require_close(expected, actual, device, tolerance, path)
    elif values and expected != actual:
        raise Mismatch(f"{path}: cpu gives {_brief(expected)}, {device} gives {_brief(actual)}")


def _rounded_parts(
    expected: Any, actual: Any, precise: Any, device: str
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yield the number of each tensor that may be rounded, with its values on the CPU, on the device and in
    double precision, all in host memory. Raise Mismatch unless all else is equal.
    """
    require_same(expected, actual, device, values=False)
    parts = zip(*map(_tensors, (expected, actual, precise)), strict=True)
    for index, (left, right, exact) in enumerate(parts):
        right = right.cpu()
        if left.is_floating_point() or left.is_complex():
            yield index, left, right, exact
        else:
            require_same(left, right, "cpu", path=f"result[{index}]")


def require_nearer(
    expected: Any, actual: Any, precise: Any, device: str, *, tolerance: Tolerance = DEFAULT
) -> None:
    """Raise Mismatch unless every element that is not close to the CPU's is nearer than the CPU's to
    `precise`, the CPU's result in double precision. Torch's own tests compare two ways of rounding like this.
    """
    for index, left, right, exact in _rounded_parts(expected, actual, precise, device):
        rtol, atol = tolerance.for_value(left)
        close = torch.isclose(right, left, rtol=rtol, atol=atol, equal_nan=True)
        # False where any of them is NaN.
        wide = torch.complex128 if left.is_complex() else torch.float64
        error = (right.to(wide) - exact.to(wide)).abs()
        nearer = error <= (left.to(wide) - exact.to(wide)).abs()
        if not (close | nearer).all():
            worst = error[~(close | nearer)].max()
            raise FarApart(
                f"result[{index}]: {device} is up to {worst} off, the cpu is nearer to the exact value"
            )


# Multiples of the dtype's precision, relative to the largest magnitude, and of the CPU's largest error. Half
# types are computed in float32 and rounded once.
_ERRORS_OF_ROUNDING = {2: 2, 4: 64, 8: 64}
_ERRORS_OF_THE_CPU = 10


def require_near_in_norm(expected: Any, actual: Any, precise: Any, device: str) -> None:
    """Raise Mismatch unless the largest error of each tensor is small relative to its largest magnitude.

    For algorithms of linear algebra, which promise no digits for small elements beside large ones. An error
    may have a multiple of the dtype's precision, or of the CPU's own error. `precise` is the CPU's result in
    double precision.
    """
    for index, left, right, exact in _rounded_parts(expected, actual, precise, device):
        precision = torch.finfo(left.dtype)
        rounded = exact.to(left.dtype)
        # Both may be infinite: the dtype may be too narrow for the exact value.
        known = (rounded == right) | ((rounded != rounded) & (right != right))
        finite = rounded.isfinite()
        size = exact.abs().masked_fill(~finite, 0).max() if exact.numel() else 0.0
        theirs = (left.to(exact.dtype) - exact).abs().masked_fill(~finite, 0)
        theirs = theirs.masked_fill(~theirs.isfinite(), 0)
        limit = max(
            _ERRORS_OF_ROUNDING[precision.bits // 8] * precision.eps * float(size),
            _ERRORS_OF_THE_CPU * float(theirs.max()) if theirs.numel() else 0.0,
        )
        near = (right.to(exact.dtype) - exact).abs() <= limit
        if not (known | near).all():
            worst = (right.to(exact.dtype) - exact).abs()[~(known | near)].max()
            raise FarApart(f"result[{index}]: {device} is up to {worst} off, more than {limit}")


def _tensors(value: Any) -> list[torch.Tensor]:
    parts = [value] if isinstance(value, torch.Tensor) else value
    if not isinstance(parts, (list, tuple)) or not all(
        isinstance(part, torch.Tensor) and part.layout is torch.strided for part in parts
    ):
        raise Mismatch("only tensors and lists of them can be judged by a more precise result")
    return [part.detach() for part in parts]


def _require_same_tensor(
    expected: torch.Tensor, actual: torch.Tensor, device: str, values: bool, tolerance: Tolerance, path: str
) -> None:
    if actual.device.type != _twin_device(expected.device, device):
        raise Mismatch(f"{path}: expected a tensor on {device}, got one on {actual.device}")
    for attribute in ("dtype", "layout", "is_quantized", "is_nested", "requires_grad"):
        left, right = getattr(expected, attribute), getattr(actual, attribute)
        if left != right:
            raise Mismatch(f"{path}.{attribute}: cpu gives {left}, {device} gives {right}")
    if expected.is_nested:
        parts, inner = (list(expected.unbind()), list(actual.unbind())), f"{path}.unbind()"
        require_same(*parts, device, values=values, tolerance=tolerance, path=inner)
        return
    if expected.shape != actual.shape:
        raise Mismatch(
            f"{path}.shape: cpu gives {tuple(expected.shape)}, {device} gives {tuple(actual.shape)}"
        )
    if not values:
        return
    for name, left, right in _dense_parts(expected.detach(), actual.detach()):
        left, right = (part.cpu().resolve_conj().resolve_neg() for part in (left, right))
        # The common case, which is far cheaper to check than closeness.
        if (
            left.dtype == right.dtype
            and left.shape == right.shape
            and torch.equal(_bytes(left), _bytes(right))
        ):
            continue
        _require_close(left, right, device, tolerance, path + name)


def _dense_parts(
    expected: torch.Tensor, actual: torch.Tensor
) -> list[tuple[str, torch.Tensor, torch.Tensor]]:
    if expected.is_quantized:
        scale = [("", expected.dequantize(), actual.dequantize())]
        return scale + [(".int_repr()", expected.int_repr(), actual.int_repr())]
    if expected.layout is torch.sparse_coo:
        # Only the coalesced form is unique: which duplicates remain separate is not promised.
        expected, actual = expected.coalesce(), actual.coalesce()
        return [
            (".indices()", expected.indices(), actual.indices()),
            (".values()", expected.values(), actual.values()),
        ]
    if expected.layout in _COMPRESSED_ROWS:
        names = ("crow_indices", "col_indices", "values")
    elif expected.layout in _COMPRESSED_COLUMNS:
        names = ("ccol_indices", "row_indices", "values")
    else:
        return [("", expected, actual)]
    return [(f".{name}()", getattr(expected, name)(), getattr(actual, name)()) for name in names]


def _require_close(expected: Any, actual: Any, device: str, tolerance: Tolerance, path: str) -> None:
    rtol, atol = tolerance.for_value(expected)
    try:
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        raise FarApart(f"{path} ({device} against cpu): {error}") from None


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)


def _twin_device(expected: torch.device, device: str) -> str:
    return torch.device(device).type if expected.type == "cpu" else expected.type


def _describe(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {' | '.join(lines[:3])[:400]}"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + " ..."
