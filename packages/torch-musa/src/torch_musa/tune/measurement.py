# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Times and results of the providers of one operator, measured alternately in this process."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from musa_runtime import ops as registry
from musa_runtime.device import synchronize
from torch_musa.debug import substitutes, tolerances

from . import inputs, recipes
from .operators import overload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .inputs import Call, Case
    from .operators import Group

ROUNDS = 7
_FEWEST_ROUNDS = 3
# A provider that takes so many times as long as the fastest one in the first rounds has no more rounds.
_CLEARLY_SLOWER = 4.0
# Shares of elements outside the tolerance, and outside ten times the tolerance, that are no error: rounding
# of long sums in 16 bits; values at the jumps of functions such as floor, and ties.
_FREE_SHARE, _FREE_SHARE_OF_JUMPS = 0.1, 1e-3
_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


class DeviceFailure(Exception):
    """The device no longer works, so no more operators can be measured in this process."""


@dataclass(frozen=True)
class Effort:
    """The duration of the measurements.

    Attributes:
        batch (float): duration of a batch of calls in seconds, unless a single call takes longer.
        case (float): seconds after which a case has no more rounds.
    """

    batch: float
    case: float


@dataclass
class Result:
    """The measurements of a group.

    Attributes:
        times (dict): microseconds per call for each round, by case and provider.
        wrong (dict of str to str): the error of each provider with a wrong result.
        undecided (str): why the providers' results could not be compared, or "".
        refusals (dict of str to str): why a provider ran in no case.
    """

    times: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    undecided: str = ""
    refusals: dict[str, str] = field(default_factory=dict)


def measure(group: Group, cases: Sequence[Case], effort: Effort) -> Result:
    """Measures the providers of a group in every case.

    Raises:
        DeviceFailure: the device fails after a call.
    """
    result = Result()
    for case in cases:
        _measure_case(group, case, effort, result)
    for provider in group.providers:
        if any(provider in rounds for rounds in result.times.values()):
            result.refusals.pop(provider, None)
    return result


def _measure_case(group: Group, case: Case, effort: Effort, result: Result) -> None:
    try:
        call = inputs.make(group.op, case.numel, case.dtype, "musa")
    except torch.OutOfMemoryError:
        return
    except (inputs.NoInputs, *_ERRORS) as error:  # not every operator has every dtype
        _check_device(error)
        result.refusals.update(
            {name: _line(error) for name in group.providers if name not in result.refusals}
        )
        return
    firsts: dict[str, float] = {}
    outputs: dict[str, list[torch.Tensor]] = {}
    for provider in group.providers:
        if provider in result.wrong:
            continue
        reason = _try(group.op, provider, call, firsts, outputs)
        if reason:
            result.refusals.setdefault(provider, reason)
    if len(firsts) > 1:
        _compare(group, case, call, outputs, result)
    outputs.clear()
    rounds = _rounds(group.op, [name for name in firsts if name not in result.wrong], call, firsts, effort)
    if rounds:
        result.times[str(case)] = rounds


def _try(
    op: str,
    provider: str,
    call: Call,
    firsts: dict[str, float],
    outputs: dict[str, list[torch.Tensor]],
) -> str:
    """Runs a call by one provider; records its second call's time and its results.

    Returns:
        str: why the provider did not run, or "".
    """
    try:
        registry.prefer(op, provider)
    except ValueError as error:
        return _line(error)
    before = _calls(op, provider)
    fresh = _copy(call)
    try:
        results = _tensors(fresh()) + _tensors(fresh.written())
        start = time.perf_counter()
        synchronize()
    except (torch.OutOfMemoryError, *_ERRORS) as error:
        _check_device(error)
        return _line(error)
    if _calls(op, provider) == before:
        return "declined"
    outputs[provider] = [tensor.detach().cpu() for tensor in results]
    fresh = _copy(call)
    synchronize()
    start = time.perf_counter()
    fresh()
    synchronize()
    firsts[provider] = time.perf_counter() - start
    return ""


def _rounds(
    op: str, providers: list[str], call: Call, firsts: dict[str, float], effort: Effort
) -> dict[str, list[float]]:
    counts = {name: max(1, min(100, round(effort.batch / max(firsts[name], 1e-7)))) for name in providers}
    if not providers:
        return {}
    fastest = min(firsts[name] for name in providers)
    rounds: dict[str, list[float]] = {name: [] for name in providers}
    active = list(providers)
    began = time.perf_counter()
    for number in range(ROUNDS):
        turn = active[number % len(active) :] + active[: number % len(active)]
        for name in turn:
            if number == 0 and firsts[name] > max(effort.case, 10 * fastest):
                rounds[name].append(firsts[name] * 1e6)  # another call would only repeat it
                continue
            rounds[name].append(_batch(op, name, call, counts[name]) * 1e6)
        active = [name for name in active if firsts[name] <= max(effort.case, 10 * fastest)]
        if number > 0:
            best = max(rounds[min(active, key=lambda name: min(rounds[name]))][-2:])
            active = [name for name in active if min(rounds[name]) < _CLEARLY_SLOWER * best]
        late = number + 1 >= _FEWEST_ROUNDS and time.perf_counter() - began > effort.case
        if len(active) < 2 or late:
            break
    return rounds


def _batch(op: str, provider: str, call: Call, count: int) -> float:
    """Returns the seconds per call of a batch, until the device has finished it."""
    registry.prefer(op, provider)
    fresh = _copy(call) if call.written() else call
    if count > 1:  # a short call takes longer after the change of providers
        fresh()
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        fresh()
    synchronize()
    return (time.perf_counter() - start) / count


def _calls(op: str, provider: str) -> int:
    return next(c["calls"] for c in registry.explain(op)["candidates"] if c["provider"] == provider)


def _copy(call: Call) -> Call:
    """Returns the call with copies of its operands, so that each provider starts with the same values."""
    return call.map(lambda value: value.clone() if isinstance(value, torch.Tensor) else value)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


# ---- results


def _compare(
    group: Group, case: Case, call: Call, outputs: dict[str, list[torch.Tensor]], result: Result
) -> None:
    """Records providers whose results are wrong, if those of the providers differ."""
    first, *others = outputs
    if all(_difference(group.op, outputs[name], outputs[first], case) is None for name in others):
        return
    expected = _reference(call, case)
    if expected is None:
        result.undecided = f"{case}: the providers' results differ, and the CPU has no reference"
        return
    errors = {name: _difference(group.op, tensors, expected, case) for name, tensors in outputs.items()}
    if all(errors.values()):
        result.undecided = f"{case}: the results of no provider agree with the CPU's: {errors[first]}"
        return
    for name, error in errors.items():
        if error is not None:
            result.wrong[name] = f"{case}: {error}"
    for rounds in result.times.values():
        for name in result.wrong:
            rounds.pop(name, None)


def _reference(call: Call, case: Case) -> list[torch.Tensor] | None:
    """Returns the results of the CPU, in float64 if it can."""
    for wide in (torch.float64, None):

        def on_host(value: Any, wide: torch.dtype | None = wide) -> Any:
            if isinstance(value, torch.dtype):
                return wide if wide and value == case.dtype else value
            host = value.detach().cpu().clone()
            return host.to(wide) if wide and host.is_floating_point() else host

        host_call = call.map(on_host)
        substitute = substitutes.of(call.op)  # of operators that torch implements for devices only
        try:
            if substitute is not None:
                results = _tensors(substitute(*host_call.args, **host_call.kwargs))
            else:
                results = _tensors(host_call()) + _tensors(host_call.written())
        except _ERRORS:
            continue
        return results
    return None


def _difference(op: str, actual: list[torch.Tensor], expected: list[torch.Tensor], case: Case) -> str | None:
    """Returns the difference of two lists of results in words, or None if they agree.

    Results besides the first one are compared if their shapes and dtypes are equal, and integers only if they
    are named indices: workspaces and statistics differ by provider. Positions are not compared in 16 bits,
    where many values are equal.
    """
    names = [value.name for value in overload(op)._schema.returns]
    determined = recipes.determined(op)
    for number, (a, e) in enumerate(zip(actual, expected, strict=False)):
        name = names[number] if number < len(names) else ""
        if determined is not None and name not in determined:
            continue
        if e.dtype == torch.float64 and a.is_floating_point():
            e = e.to(a.dtype)  # the CPU's, computed in float64
        if a.shape != e.shape or a.dtype != e.dtype:
            if number == 0:
                return f"shape {list(a.shape)} and {a.dtype}, expected {list(e.shape)} and {e.dtype}"
            continue
        is_position = a.dtype == torch.int64 and case.dtype.itemsize < 4
        is_workspace = number > 0 and not a.is_floating_point() and name != "indices"
        if is_position or is_workspace or not a.numel():
            continue
        error = _outliers(a, e)
        if error is not None:
            return error
    return None


def _outliers(actual: torch.Tensor, expected: torch.Tensor) -> str | None:
    tolerance = tolerances.DEFAULTS.get(actual.dtype)
    shares = [(tolerance, _FREE_SHARE if tolerance else _FREE_SHARE_OF_JUMPS)]
    if tolerance is not None:
        rtol, atol = tolerance
        if torch.allclose(actual, expected, rtol, atol, equal_nan=True):  # faster than the distance
            return None
        shares.append(((10 * rtol, 10 * atol), _FREE_SHARE_OF_JUMPS))
    for limits, share in shares:
        found = tolerances.distance(actual, expected, limits)
        if found.count > share * found.numel:
            return f"{found.count} of {found.numel} elements differ, by up to {found.max_abs:.3g}"
    return None


def _check_device(error: BaseException) -> None:
    """Raises DeviceFailure if the device does not work after an error."""
    try:
        synchronize()
    except RuntimeError as failure:
        raise DeviceFailure(f"{_line(error)}; then: {_line(failure)}") from failure


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
