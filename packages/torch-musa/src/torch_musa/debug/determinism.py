# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs a function twice and finds the first operator whose result differs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from .comparison import described
from .digest import digest
from .observer import Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .call import OperatorCall


class Varying(NamedTuple):
    """The first difference between two runs.

    Attributes:
        cause (str): "operator" if a call with the same arguments gave another result; "state" if an argument
            differs that no earlier call of the run produced, such as a weight that the first run modified;
            "program" if only one run makes the call.
        operator, module, phase, call, arguments, provider: as in `Difference`, for the second run.
        names (tuple of str): outputs that differ; for "state" the arguments; for "program" the run that makes
            the call, "first" or "second".
    """

    cause: str
    operator: str
    module: str
    phase: str
    call: int
    arguments: tuple[str, ...]
    names: tuple[str, ...]
    provider: str

    def __str__(self) -> str:
        place = f"in {self.module}" if self.module else "outside of modules"
        where = f"{self.operator} {place} ({self.phase}, call {self.call})"
        names = ", ".join(self.names)
        if self.cause == "operator":
            text = f"{where} gives another {names} in the second run, for the same arguments"
        elif self.cause == "state":
            text = (
                f"{where} gets another {names} in the second run, and no operator of the run made it.\n"
                "Likely causes: the first run changed a weight, a buffer or data.\n"
                "Fix: check_determinism(function, restore=[model, optimizer])"
            )
        else:
            text = f"{where} is called in the {names} run only"
        lines = [text, *(f"  {argument}" for argument in self.arguments)]
        return "\n".join([*lines, f"  served by {self.provider or 'an unknown provider'}"])


class Determinism(NamedTuple):
    """The result of `check_determinism`.

    Attributes:
        first (Varying): the first operator that gives another result for the same arguments; if there is
            none, the first other difference; None if the runs are the same.
        operators (int): calls of the second run.
    """

    first: Varying | None
    operators: int

    @property
    def deterministic(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        return (
            f"two runs of {self.operators} operators are the same" if self.first is None else str(self.first)
        )


class RunDigest(Observer):
    """Digests of the arguments and results of each call.

    A call is compared with the other run's call of the same operator in the same module, phase and thread
    with the same index among those.

    Args:
        other (RunDigest): an earlier run that this one is compared with.
    """

    def __init__(self, other: RunDigest | None = None) -> None:
        self._other = other
        # (thread, operator, module, phase) -> list of (inputs, outputs, description)
        self._calls: dict[Any, list[Any]] = {}
        self._inputs: dict[int, dict[str, Any]] = {}
        self._made: set[Any] = set()  # digests of all results so far
        self.varying: list[Varying] = []
        self.operators = 0

    def before(self, call: OperatorCall) -> None:
        self._inputs[call.index] = {name: digest(tensor) for name, tensor in call.read}

    def after(self, call: OperatorCall) -> None:
        inputs = self._inputs.pop(call.index)
        if call.error is not None:
            return
        # Uninitialized memory differs between runs, which does not matter until it is read.
        outputs = {} if call.is_uninitialised else {name: digest(t) for name, t in call.outputs}
        if not outputs and isinstance(call.result, (bool, int, float)):
            outputs = {"result": repr(call.result)}
        key = call.thread, call.name, call.module, call.phase
        calls = self._calls.setdefault(key, [])
        shown = call.index, described(call), call.provider
        calls.append((inputs, outputs, shown))
        self.operators += 1
        if self._other is not None:
            others = self._other._calls.get(key, [])
            if len(calls) > len(others):
                self._add("program", key, shown, ("second",))
            else:
                self._compare(key, shown, inputs, outputs, others[len(calls) - 1])
        self._made.update(outputs.values())

    def _compare(
        self, key: Any, shown: Any, inputs: dict[str, Any], outputs: dict[str, Any], other: Any
    ) -> None:
        before, wanted, _ = other
        changed = [name for name, value in inputs.items() if before.get(name) != value]
        if not changed:
            differs = tuple(name for name, value in outputs.items() if wanted.get(name) != value)
            if differs:
                self._add("operator", key, shown, differs)
        elif foreign := tuple(name for name in changed if inputs[name] not in self._made):
            self._add("state", key, shown, foreign)

    def add_missing(self) -> None:
        """Adds the calls that only the other run made. Called when this run has ended."""
        for key, calls in self._other._calls.items():  # type: ignore[union-attr]
            for _, _, shown in calls[len(self._calls.get(key, ())) :]:
                self._add("program", key, shown, ("first",))

    def _add(self, cause: str, key: Any, shown: Any, names: tuple[str, ...]) -> None:
        _, operator, module, phase = key
        index, arguments, provider = shown
        self.varying.append(Varying(cause, operator, module, phase, index, arguments, names, provider))


def check_determinism(
    function: Callable[[], object], *, restore: Iterable[Any] = (), seed: int = 0
) -> Determinism:
    """Runs a function twice from the same random state and compares every operator's result, bit by bit.

    Args:
        function (callable): takes no arguments; a forward and backward pass, or a training step.
        restore (list): modules, optimizers and other objects with `state_dict()` and `load_state_dict()`.
            Before the second run they are reset to their initial state, and gradients are cleared. They keep
            the state of the second run.
        seed (int): for `torch.manual_seed` before each run.

    Returns:
        Determinism
    """
    states = [(thing, copy.deepcopy(thing.state_dict())) for thing in restore]
    devices = range(torch.musa.device_count())  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices, device_type="musa"):
        runs: list[RunDigest] = []
        for _ in range(2):
            for thing, state in states if runs else ():
                thing.load_state_dict(copy.deepcopy(state))
                if isinstance(thing, torch.nn.Module):
                    thing.zero_grad(set_to_none=True)
            torch.manual_seed(seed)
            with RunDigest(runs[0] if runs else None) as run:
                function()
            runs.append(run)
    runs[1].add_missing()
    found = runs[1].varying
    first = next((varying for varying in found if varying.cause == "operator"), None)
    return Determinism(first or (found[0] if found else None), runs[1].operators)
