# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of operators with one tensor argument too short, and the search for reads past its end.

Operator and module databases always give the shapes that belong together, which a backward operator called by
hand or by a faulty autograd function does not. Each tensor argument of a valid call is halved along each
dimension, emptied of its dimensions, and flattened in turn. The call must raise, or return the CPU's result.

`python -m tests.conformance.short_arguments CALLS PROVIDERS FIRST` runs the cases of a file of calls from
number FIRST on and prints a line before and after each, so that the parent process (`run`) can name the case
that crashes or hangs, and continue behind it.

Arguments are placed between margins. Every call runs twice, with margins of zeros and of ones: results that
differ show a read outside of an argument, changed margins a write. The memory behind the results must still
have the emulator's poison.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tests.conformance.comparison import Mismatch, outcome_of, require_same
from tests.conformance.tolerances import Tolerance
from tests.conformance.transfer import tensors_in
from tests.harness.device import host_can_address_device_memory
from tests.harness.subprocesses import code_of_module, run_forked

MARGIN = 1 << 14  # bytes on each side of an argument
_PATTERNS = (0x00, 0xFF)  # numbers of every dtype; NaN, -1 and a large number
_POISON = 0xCD
_ALIGNMENT = 256
_LOST = 75  # exit status: the device is unusable, and the next case needs a new process
# Read when the device is first used, so a fork of a process with torch may set it.
_IN_THE_CHILD = {"PYTORCH_NO_MUSA_MEMORY_CACHING": "1"}  # each result has an allocation of its own
_ENVIRONMENT = {
    "MUSA_EMULATOR_POISON": "1",
    "MUSA_EMULATOR_MEMORY": None,
    "MUSA_EMULATOR_MODE": "inline",
    "TORCH_MUSA_FALLBACK": "allow",
    "TORCH_MUSA_OPS": None,
}
# Two runs of one kernel may add in another order.
_CLOSE = Tolerance(1e-4, 1e-5)

Call = tuple[str, list, dict]


@dataclass(frozen=True)
class Report:
    """Outcomes of all cases, by kind, and the faults with the case that shows each."""

    outcomes: Counter
    faults: list[str]
    unjudged: list[str]  # returned a result for which the CPU has no kernel


def overload(name: str) -> Any:
    namespace, _, rest = name.rpartition("::")
    packet, _, form = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), form or "default")


# ---- the cases of a call


def _shortened(tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    for dim, size in enumerate(tensor.shape):
        if size:
            yield f"dimension {dim} halved", tensor.narrow(dim, 0, size // 2)
    if tensor.dim() and tensor.numel():
        yield "0-d", tensor.reshape(-1)[0]
    if tensor.dim() > 1:
        yield "1-d", tensor.reshape(-1)


def _replaced(arguments: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    copy = dict(arguments) if isinstance(arguments, dict) else list(arguments)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], value)
    return copy


def _paths(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided and not value.is_quantized and not value.is_nested:
            yield path, value
    elif isinstance(value, (list, tuple, dict)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _paths(item, (*path, key))


def cases(call: Call) -> Iterator[tuple[str, list, dict]]:
    """A description and the arguments of each case of a call."""
    _, args, kwargs = call
    for path, tensor in _paths({"args": args, "kwargs": kwargs}):
        for what, short in _shortened(tensor):
            both = _replaced({"args": args, "kwargs": kwargs}, path, short)
            yield f"{'.'.join(map(str, path))} {what}", both["args"], both["kwargs"]


# ---- one case


class _Placed:
    """Copies of arguments on a device, each with a margin on both sides."""

    def __init__(self, device: str, pattern: int) -> None:
        self._device = device
        self._pattern = pattern
        self._buffers: list[tuple[torch.Tensor, torch.Tensor, torch.Size]] = []

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.layout is not torch.strided or value.is_quantized or value.is_nested:
                return value.to(self._device)
            return self._place(value.contiguous())
        if isinstance(value, torch.device):
            return torch.device(self._device)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return type(value)(self(item) for item in value) if type(value) in (list, tuple) else value

    def _place(self, value: torch.Tensor) -> torch.Tensor:
        size = value.numel() * value.element_size()
        buffer = torch.full((2 * MARGIN + size,), self._pattern, dtype=torch.uint8)
        buffer[MARGIN : MARGIN + size] = value.reshape(-1).view(torch.uint8) if size else buffer[:0]
        buffer = buffer.to(self._device)
        empty = torch.empty(0, dtype=value.dtype, device=self._device)
        offset = MARGIN // value.element_size()
        placed = empty.set_(buffer.untyped_storage(), offset, value.size(), value.stride())
        self._buffers.append((buffer, placed, value.shape))
        return placed

    def written_outside(self) -> bool:
        """Whether a margin has changed. An argument that the operator resized grows into its margin."""
        return any(
            bool((part != self._pattern).any())
            for buffer, placed, shape in self._buffers
            if placed.shape == shape
            for part in (buffer.cpu()[:MARGIN], buffer.cpu()[MARGIN + placed.nbytes :])
        )

    def owns(self, tensor: torch.Tensor) -> bool:
        storage = tensor.untyped_storage().data_ptr()
        return any(buffer.untyped_storage().data_ptr() == storage for buffer, *_ in self._buffers)


def _tail_is_written(tensor: torch.Tensor) -> bool:
    """Whether bytes between the end of a result and the end of its allocation have changed."""
    size = tensor.untyped_storage().nbytes()
    begin = tensor.untyped_storage().data_ptr()
    rest = -size % _ALIGNMENT
    return bool(begin) and ctypes.string_at(begin + size, rest).strip(bytes([_POISON])) != b""


@dataclass
class _Run:
    value: Any = None
    error: Exception | None = None
    fault: str = ""


def _run(function: Callable, args: list, kwargs: dict, device: str, pattern: int) -> _Run:
    place = _Placed(device, pattern)
    args, kwargs = place(args), place(kwargs)
    torch.manual_seed(0)
    outcome = outcome_of(lambda: function(*args, **kwargs))
    run = _Run(error=outcome.error)
    if device != "cpu":
        torch.accelerator.synchronize()
    if outcome.error is None:
        results = [each for each in tensors_in(outcome.value) if each.layout is torch.strided]
        made = [each for each in results if not each.is_cpu and not place.owns(each)]
        if host_can_address_device_memory() and any(map(_tail_is_written, made)):
            run.fault = "writes past the end of a result"
        run.value = [[each.cpu() for each in tensors_in(outcome.value)], place_back(args), place_back(kwargs)]
    if place.written_outside():
        run.fault = "writes outside of an argument"
    return run


def place_back(value: Any) -> list[torch.Tensor]:
    return [tensor.cpu() for tensor in tensors_in(value)]


def _same(a: Any, b: Any) -> bool:
    try:
        require_same(a, b, "cpu", tolerance=_CLOSE)
    except Mismatch:
        return False
    return True


def _twice(function: Callable, args: list, kwargs: dict, device: str) -> _Run:
    first = _run(function, args, kwargs, device, _PATTERNS[0])
    if first.error is not None or first.fault:
        return first
    second = _run(function, args, kwargs, device, _PATTERNS[1])
    if second.fault or second.error is not None:
        return second
    if not _same(first.value, second.value):
        again = _run(function, args, kwargs, device, _PATTERNS[0])
        stable = again.error is None and _same(first.value, again.value)
        first.fault = "reads outside of an argument" if stable else "returns other numbers each time"
    return first


def judge(call: Call, args: list, kwargs: dict, device: str, say: Callable[[str], None]) -> str:
    """The outcome of a case: "raised", "equal", or a fault."""
    function = overload(call[0])
    actual = _twice(function, args, kwargs, device)
    if actual.fault:
        return f"fault: {actual.fault}"
    if actual.error is not None:
        text = str(actual.error)
        if "illegal" in text or "misaligned" in text:
            return f"fault: {type(actual.error).__name__}: {text[:200]}"
        return "raised"
    say("cpu")
    expected = _twice(function, args, kwargs, "cpu")
    if isinstance(expected.error, NotImplementedError):
        return "no reference"
    if expected.error is not None:
        return f"accepted: the CPU raises {type(expected.error).__name__}: {str(expected.error)[:150]}"
    if expected.fault:
        return "the CPU reads outside"
    try:
        require_same(expected.value, actual.value, "cpu", tolerance=_CLOSE)
    except Mismatch as error:
        return f"differs: {str(error)[:200]}"
    return "equal"


# ---- operators with faults, which show that the search finds them

FAULTY = "short_arguments"


def _define_faulty() -> Any:
    """Operators on four numbers that do not look at the size of their argument."""
    library = torch.library.Library(FAULTY, "DEF")

    def four(x: torch.Tensor) -> torch.Tensor:
        return x.as_strided([4], [1])

    def crash(x: torch.Tensor) -> torch.Tensor:
        if x.numel() < 4:
            os.abort()
        return x.clone()

    kernels = {
        "reads": lambda x: four(x).clone(),
        "writes": lambda x: four(x).zero_().clone(),
        "crashes": crash,
        "differs": lambda x: x.clone() + (x.numel() < 4 and not x.is_cpu),
        "accepts": lambda x: x.clone() if x.numel() == 4 or not x.is_cpu else x.reshape(4),
        "checks": lambda x: x.reshape(4).clone(),
    }
    for name, kernel in kernels.items():
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, kernel, "CompositeExplicitAutograd")
    return library


def faulty_calls() -> list[Call]:
    names = ("reads", "writes", "crashes", "differs", "accepts", "checks")
    return [(f"{FAULTY}::{name}", [torch.tensor([1.0, 2.0, 3.0, 4.0])], {}) for name in names]


# ---- all cases in one process


def serve(file: str, providers: str, first: int) -> None:
    calls: list[Call] = torch.load(file, weights_only=False)
    number = -1
    library = _define_faulty() if any(name.startswith(FAULTY) for name, *_ in calls) else None

    def say(**line: Any) -> None:
        print(json.dumps({"case": number, **line}), flush=True)

    with torch.musa.ops.prefer("*", *providers.split(",")):
        for call in calls:
            for what, args, kwargs in cases(call):
                number += 1
                if number < first:
                    continue
                say(
                    begin=f"{call[0]}: {what}",
                    shapes=str([list(t.shape) for t in tensors_in((args, kwargs))]),
                )
                try:
                    outcome = judge(call, args, kwargs, "musa", lambda phase: say(phase=phase))
                    torch.accelerator.synchronize()
                except (RuntimeError, torch.AcceleratorError) as error:
                    illegal = "illegal" in str(error) or "misaligned" in str(error)
                    say(end=f"fault: {str(error)[:200]}" if illegal else f"lost: {str(error)[:100]}")
                    os._exit(_LOST)
                say(end=outcome)
    del library
    say(all=number + 1)


def run(calls: list[Call], providers: tuple[str, ...], folder: Path, limit_s: float = 1800) -> Report:
    """Runs all cases of the calls in processes that may crash."""
    file = folder / "calls.pt"
    torch.save(calls, file)
    outcomes: Counter = Counter()
    faults: list[str] = []
    unjudged: list[str] = []
    first = 0
    while True:
        code = code_of_module("tests.conformance.short_arguments", str(file), ",".join(providers), str(first))
        done = run_forked(
            f"import os\nos.environ.update({_IN_THE_CHILD!r})\n" + code, limit_s, **_ENVIRONMENT
        )
        begun: dict[str, Any] | None = None
        phase = ""
        for text in done.stdout.splitlines():
            if not text.startswith("{"):
                continue
            line = json.loads(text)
            if "begin" in line:
                begun, phase = line, ""
            elif "phase" in line:
                phase = line["phase"]
            elif "end" in line:
                kind = line["end"].partition(":")[0]
                outcomes[kind] += 1
                if kind in ("fault", "accepted", "differs"):
                    faults.append(f"{begun['begin']} {begun['shapes']}: {line['end']}")
                if kind == "no reference":
                    unjudged.append(f"{begun['begin']} {begun['shapes']}")
                first, begun = line["case"] + 1, None
            elif "all" in line:
                return Report(outcomes, faults, unjudged)
        if begun is not None:
            first = begun["case"] + 1
            if phase == "cpu":
                outcomes["the CPU crashes"] += 1
            else:
                outcomes["fault"] += 1
                faults.append(
                    f"{begun['begin']} {begun['shapes']}: exit status {done.returncode}: {done.stderr[-200:]}"
                )
        elif done.returncode != _LOST:
            raise AssertionError(
                f"the process ended between two cases: {done.stdout[-500:]}{done.stderr[-2000:]}"
            )


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
