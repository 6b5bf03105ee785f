# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls an operator in each form on the CPU and on the device with the same arguments, and compares outcomes.

Each function takes one sample and raises Mismatch when the device behaves differently from the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import operators
from .comparison import (
    FarApart,
    Mismatch,
    Outcome,
    outcome_of,
    require_near_in_norm,
    require_nearer,
    require_same,
    require_same_outcome,
)
from .decompositions import compare_invariants, invariants
from .float_statistics import with_float_statistics
from .places import settled
from .tolerances import DEFAULT, Tolerance
from .transfer import tensors_in, to_device

# Their tensors of indices must be on the CPU, whatever the device of the input.
_WITH_HOST_ARGUMENTS = ("tensor_split",)


# Some of their samples name no device and have no tensor to take it from.
_FACTORIES = ("arange", "linspace", "logspace")


# If intermediate results are rounded to these dtypes, the CPU's own result may be the less precise one: half
# types, and sums of complex products, whose terms cancel.
_MAY_BE_WORSE = (torch.float16, torch.bfloat16, torch.complex64)
_DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


class ReferenceFailed(AssertionError):
    """The CPU refused a sample that its own database lists, so there is no result to compare with."""


def forward(
    op: Callable,
    sample: Any,
    device: str,
    *,
    values: bool = True,
    may_raise: bool = False,
    tolerance: Tolerance = DEFAULT,
) -> None:
    """The plain call. `may_raise`: the sample was transformed, so the CPU is free to refuse it."""
    on_cpu, on_device = _twin_arguments(op, sample, device)
    expected = outcome_of(lambda: _call(op, on_cpu))
    if expected.error is not None and not may_raise:
        raise ReferenceFailed(f"the cpu reference raised {expected.error!r}") from expected.error
    if getattr(op, "name", None) in _FACTORIES:
        # If the arguments name no device, the result is on the default device.
        with torch.device(device):
            actual = outcome_of(lambda: _call(op, on_device))
    else:
        actual = outcome_of(lambda: _call(op, on_device))
    if expected.error is None:
        arguments = (sample.input, sample.args, sample.kwargs)
        expected.value = with_float_statistics(op, arguments, expected.value, device)
    if values and expected.error is None and actual.error is None:
        actual.value = settled(op, on_cpu, expected.value, actual.value)
        compare_invariants(op, expected, actual, device)
    try:
        require_same_outcome(expected, actual, device, values=values, tolerance=tolerance)
        # A kernel that runs on aliased memory could write to an argument that it must only read.
        _require_same_arguments(on_cpu, on_device, tolerance)
    except FarApart:
        if not _amplifies(op) and not any(tensor.dtype in _MAY_BE_WORSE for tensor in tensors_in(on_cpu)):
            raise
        wide, _ = _twin_arguments(op, sample.transform(doubled), "cpu")
        exact = outcome_of(lambda: _call(op, wide))
        if exact.error is not None:
            raise
        precise = invariants(op, exact.value)
        _require_near(op, expected.value, actual.value, precise, device, tolerance)
        require_nearer(*map(tensors_in, (on_cpu, on_device, wide)), device, tolerance=tolerance)


def gradient(op: Callable, sample: Any, device: str, *, tolerance: Tolerance = DEFAULT) -> None:
    """The gradients of every differentiable input, for one fixed cotangent."""
    on_cpu, on_device = _twin_arguments(op, sample, device)
    outputs = _differentiable(sample.output_process_fn_grad(_call(op, on_cpu)))
    if not outputs:
        return
    torch.manual_seed(1)
    cotangents = [
        torch.randn_like(out) if out.layout is torch.strided and not out.is_nested else out.detach().clone()
        for out in outputs
    ]
    (device_cotangents,) = to_device(device, cotangents)
    expected = outcome_of(lambda: _gradients(outputs, on_cpu, cotangents))
    actual = outcome_of(
        lambda: _gradients(
            _differentiable(sample.output_process_fn_grad(_call(op, on_device))), on_device, device_cotangents
        )
    )
    try:
        require_same_outcome(expected, actual, device, tolerance=tolerance)
    except FarApart:
        wide, _ = _twin_arguments(op, sample.transform(doubled), "cpu")
        exact = outcome_of(
            lambda: _gradients(
                _differentiable(sample.output_process_fn_grad(_call(op, wide))),
                wide,
                [doubled(cotangent) for cotangent in cotangents],
            )
        )
        if exact.error is not None or None in expected.value:
            raise
        _require_near(op, expected.value, actual.value, exact.value, device, tolerance)


def _amplifies(op: Any) -> bool:
    return getattr(op, "full_name", None) in operators.AMPLIFY_ROUNDING


def _require_near(
    op: Any, expected: Any, actual: Any, precise: Any, device: str, tolerance: Tolerance
) -> None:
    if _amplifies(op):
        require_near_in_norm(expected, actual, precise, device)
    else:
        require_nearer(expected, actual, precise, device, tolerance=tolerance)


def require_same_outcome_or_near(
    op: Any, expected: Outcome, actual: Outcome, precise: Callable, device: str, *, tolerance: Tolerance
) -> None:
    """As require_same_outcome; results whose rounding errors are amplified may differ as their norm allows.

    `precise` computes the CPU's result in double precision.
    """
    try:
        require_same_outcome(expected, actual, device, tolerance=tolerance)
    except FarApart:
        exact = outcome_of(precise)
        if not _amplifies(op) or exact.error is not None:
            raise
        require_near_in_norm(*(tensors_in(outcome.value) for outcome in (expected, actual, exact)), device)


def in_place(op: Callable, sample: Any, device: str, *, tolerance: Tolerance = DEFAULT) -> None:
    """The in-place form. It must return the tensor that it was given, with the CPU's values."""
    on_cpu, on_device = _twin_arguments(op, sample, device)
    inplace = op.get_inplace()
    expected = outcome_of(lambda: _call(inplace, on_cpu))
    actual = outcome_of(lambda: _call(inplace, on_device))
    require_same_outcome(expected, actual, device, tolerance=tolerance)
    if expected.error is None and (expected.value is on_cpu[0]) != (actual.value is on_device[0]):
        raise Mismatch(f"the in-place form on {device} does not return the tensor that it was given")
    _require_same_arguments(on_cpu, on_device, tolerance)


def out_argument(op: Callable, sample: Any, device: str, *, tolerance: Tolerance = DEFAULT) -> None:
    """The out= form: right-sized, empty (to be resized), transposed (strides kept) and of another dtype."""
    reference = outcome_of(lambda: _call(op, _twin_arguments(op, sample, "cpu")[1]))
    if reference.error is not None:
        raise ReferenceFailed(f"the cpu reference raised {reference.error!r}") from reference.error
    results = [result for result in tensors_in(reference.value) if result.layout is torch.strided]
    for kind, make_out in _OUT_KINDS.items():
        outs = [make_out(result.detach()) for result in results]
        if any(out is None for out in outs):
            continue
        # The result must not depend on the previous content of the memory.
        (device_outs,) = to_device(device, outs)
        on_cpu, on_device = _twin_arguments(op, sample, device)
        cpu_pointers, device_pointers = _pointers(outs), _pointers(device_outs)
        is_tuple = isinstance(reference.value, (tuple, list))
        expected = outcome_of(lambda: _call(op, on_cpu, out=_packed(outs, is_tuple)))  # noqa: B023
        actual = outcome_of(lambda: _call(op, on_device, out=_packed(device_outs, is_tuple)))  # noqa: B023
        try:
            try:
                require_same_outcome(expected, actual, device, values=False)
                if expected.error is None:
                    returned = [invariants(op, outcome.value) for outcome in (expected, actual)]
                    require_same(*returned, device, tolerance=tolerance)
                    written = [invariants(op, tensors) for tensors in (outs, device_outs)]
                    require_same(*written, device, tolerance=tolerance, path="out")
            except FarApart:
                if _agree(reference.value, expected.value, tolerance):
                    raise
                # The CPU's out= form differs from its own plain form, which then is the reference.
                require_same_outcome(reference, actual, device, tolerance=tolerance)
                require_same(results, device_outs, device, tolerance=tolerance, path="out")
            if expected.error is None:
                _require_same_places(outs, device_outs, cpu_pointers, device_pointers, device)
        except Mismatch as mismatch:
            raise Mismatch(f"with out= {kind}: {mismatch}") from mismatch


def _agree(left: Any, right: Any, tolerance: Tolerance) -> bool:
    return outcome_of(lambda: require_same(left, right, "cpu", tolerance=tolerance)).error is None


def noncontiguous(op: Callable, sample: Any, device: str, *, tolerance: Tolerance = DEFAULT) -> None:
    """Every tensor argument strided with gaps and at an offset."""
    forward(op, sample.transform(_with_gaps), device, may_raise=True, tolerance=tolerance)


def expanded(op: Callable, sample: Any, device: str, *, tolerance: Tolerance = DEFAULT) -> None:
    """Every tensor argument broadcast along its first dimension: overlapping memory, stride 0."""
    forward(op, sample.transform(_expanded), device, may_raise=True, tolerance=tolerance)


def zero_size(
    op: Callable, sample: Any, device: str, *, values: bool = True, tolerance: Tolerance = DEFAULT
) -> None:
    """Every tensor argument cut to length 0 along its first dimension."""
    emptied = sample.transform(_emptied)
    forward(op, emptied, device, values=values, may_raise=True, tolerance=tolerance)


def zero_size_like_meta(op: Callable, sample: Any, device: str) -> None:
    """As zero_size, for operators that the CPU's library refuses: shapes and dtypes are those of torch's meta
    functions."""
    first, args, kwargs = _emptied(sample.input), sample.args, sample.kwargs
    found = []
    for place in ("meta", device):
        outcome = outcome_of(lambda place=place: op(*to_device(place, first), *args, **kwargs))
        if place == "meta" and isinstance(outcome.error, TypeError):
            raise outcome.error
        shapes = [(tensor.shape, tensor.dtype) for tensor in tensors_in(outcome.value)]
        found.append(shapes if outcome.error is None else type(outcome.error))
    if found[0] != found[1]:
        raise Mismatch(f"meta returned {found[0]}, but {device} returned {found[1]}")


def arguments_on(op: Callable, sample: Any, device: str) -> tuple:
    """The sample's input, args and kwargs on `device`, except arguments that must be on the CPU."""
    if getattr(op, "name", None) in _WITH_HOST_ARGUMENTS:
        (moved,) = to_device(device, sample.input)
        return (moved, *to_device("cpu", sample.args, sample.kwargs))
    return to_device(device, sample.input, sample.args, sample.kwargs)


def _twin_arguments(op: Callable, sample: Any, device: str) -> tuple[tuple, tuple]:
    # The CPU run gets copies too: some operators write to their inputs, and samples are used more than once.
    on_cpu = to_device("cpu", sample.input, sample.args, sample.kwargs)
    return on_cpu, arguments_on(op, sample, device)


def _require_same_arguments(on_cpu: tuple, on_device: tuple, tolerance: Tolerance) -> None:
    for index, (left, right) in enumerate(zip(tensors_in(on_cpu), tensors_in(on_device))):
        path = f"tensor argument {index}, after the call"
        require_same(left, right, right.device.type, tolerance=tolerance, path=path)


def _call(op: Callable, arguments: tuple, **extra: Any) -> Any:
    first, args, kwargs = arguments
    return op(first, *args, **kwargs, **extra)


def _differentiable(value: Any) -> list[torch.Tensor]:
    return [tensor for tensor in tensors_in(value) if tensor.requires_grad]


def _gradients(outputs: list[torch.Tensor], arguments: tuple, cotangents: list[torch.Tensor]) -> tuple:
    inputs = [tensor for tensor in tensors_in(arguments) if tensor.requires_grad]
    return torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)


def _right_sized(result: torch.Tensor) -> torch.Tensor:
    return torch.full_like(result, 1)


def _to_be_resized(result: torch.Tensor) -> torch.Tensor:
    return result.new_empty(0)


def _transposed(result: torch.Tensor) -> torch.Tensor | None:
    if result.ndim < 2:
        return None
    # The last two: torch's own CPU tril and triu write out of bounds when a batch dimension is transposed.
    return torch.full_like(result.mT, 1, memory_format=torch.contiguous_format).mT


def _of_another_dtype(result: torch.Tensor) -> torch.Tensor:
    return result.new_full(
        result.shape, 1, dtype=torch.int32 if result.dtype.is_floating_point else torch.float64
    )


_OUT_KINDS = {
    "right-sized": _right_sized,
    "to be resized": _to_be_resized,
    "transposed": _transposed,
    "of another dtype": _of_another_dtype,
}


def _pointers(tensors: list[torch.Tensor]) -> list[int]:
    return [tensor.data_ptr() for tensor in tensors]


def _packed(outs: list[torch.Tensor], is_tuple: bool) -> Any:
    return tuple(outs) if is_tuple else outs[0]


def _require_same_places(
    outs: list[torch.Tensor],
    device_outs: list[torch.Tensor],
    cpu_pointers: list[int],
    device_pointers: list[int],
    device: str,
) -> None:
    for index, (left, right) in enumerate(zip(outs, device_outs)):
        if left.stride() != right.stride():
            raise Mismatch(
                f"out[{index}]: cpu leaves strides {left.stride()}, {device} leaves {right.stride()}"
            )
        kept_on_cpu = left.data_ptr() == cpu_pointers[index]
        kept_on_device = right.data_ptr() == device_pointers[index]
        if kept_on_cpu and not kept_on_device and left.numel():
            raise Mismatch(f"out[{index}]: {device} moved the tensor to other memory, cpu wrote in place")


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def doubled(value: Any) -> Any:
    """Tensors and dtypes of lower precision in double precision; leaves stay leaves."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in _DOUBLE:
            return value
        return value.detach().to(_DOUBLE[value.dtype]).requires_grad_(value.requires_grad)
    return _DOUBLE.get(value, value) if isinstance(value, torch.dtype) else value


def _with_gaps(value: Any) -> Any:
    if not _is_strided(value):
        return value
    wide = value.new_zeros((*value.shape, 2))
    wide[..., 1] = value
    return wide[..., 1].requires_grad_(value.requires_grad)


def _expanded(value: Any) -> Any:
    return value[:1].expand_as(value) if _is_strided(value) and value.ndim and value.shape[0] else value


def _emptied(value: Any) -> Any:
    return value[:0] if _is_strided(value) and value.ndim else value
