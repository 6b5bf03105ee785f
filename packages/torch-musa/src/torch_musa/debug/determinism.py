# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A function run twice, and the first operator whose result differs."""

import copy
from typing import NamedTuple

import torch

from .comparison import described
from .digest import digest
from .observer import Observer


class Varying(NamedTuple):
    """Where two runs part.

    Attributes:
        cause (str): "operator" if a call with the same arguments gave another result; "state" if an argument
            differs that no earlier call of the run made, such as a weight that the first run changed;
            "program" if the runs call different operators.
        operator, module, phase, call, arguments, provider: as in `Difference`, of the second run.
        names (tuple of str): outputs that differ, or for "state" the arguments.
    """

    cause: str
    operator: str
    module: str
    phase: str
    call: int
    arguments: tuple
    names: tuple
    provider: str

    def __str__(self):
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
            text = f"the second run calls {where} where the first run called {names}"
        lines = [text, *(f"  {argument}" for argument in self.arguments)]
        return "\n".join([*lines, f"  served by {self.provider or 'an unknown provider'}"])


class Determinism(NamedTuple):
    """What `check_determinism` found.

    Attributes:
        first (Varying): the first operator that gives another result for the same arguments; where there is
            none, the first place at which the runs part; None if the runs are the same.
        operators (int): calls of the second run.
    """

    first: Varying | None
    operators: int

    @property
    def deterministic(self):
        return self.first is None

    def __str__(self):
        return (
            f"two runs of {self.operators} operators are the same" if self.first is None else str(self.first)
        )


class RunDigest(Observer):
    """Digests of the arguments and results of each call, in order for each thread.

    Args:
        other (RunDigest): an earlier run that this one is compared with.
    """

    def __init__(self, other=None):
        self._other = other
        self._threads = {}  # thread -> list of (name, digests of inputs, digests of outputs)
        self._inputs = {}
        self._made = set()  # digests of all results so far
        self._parted = set()  # threads whose calls are not those of the other run any more
        self.varying = []
        self.operators = 0

    def before(self, call):
        self._inputs[call.index] = {name: digest(tensor) for name, tensor in call.read}

    def after(self, call):
        inputs = self._inputs.pop(call.index)
        if call.error is not None:
            return
        # Uninitialised memory differs from run to run, and does not matter until it is read.
        outputs = {} if call.is_uninitialised else {name: digest(t) for name, t in call.outputs}
        if not outputs and isinstance(call.result, (bool, int, float)):
            outputs = {"result": repr(call.result)}
        rows = self._threads.setdefault(call.thread, [])
        rows.append((call.name, inputs, outputs))
        self.operators += 1
        if self._other is not None and call.thread not in self._parted:
            self._compare(call, len(rows) - 1, inputs, outputs)
        self._made.update(outputs.values())

    def _compare(self, call, place, inputs, outputs):
        rows = self._other._threads.get(call.thread, [])
        name, before, wanted = rows[place] if place < len(rows) else ("no operator", {}, {})
        if name != call.name:
            self._parted.add(call.thread)
            self._add("program", call, (name,))
            return
        changed = [key for key, value in inputs.items() if before.get(key) != value]
        if not changed:
            differs = tuple(key for key, value in outputs.items() if wanted.get(key) != value)
            if differs:
                self._add("operator", call, differs)
        elif foreign := tuple(key for key in changed if inputs[key] not in self._made):
            self._add("state", call, foreign)

    def _add(self, cause, call, names):
        self.varying.append(
            Varying(
                cause, call.name, call.module, call.phase, call.index, described(call), names, call.provider
            )
        )


def check_determinism(function, *, restore=(), seed=0):
    """Runs a function twice from the same random state and compares every operator's result, bit by bit.

    Args:
        function (callable): takes no arguments; a forward and backward pass, or a training step.
        restore (list): modules, optimizers and other objects with `state_dict()` and `load_state_dict()`,
            which get their state from before the first run back before the second, and gradients are cleared.
            They are left as the second run leaves them.
        seed (int): for `torch.manual_seed` before each run.

    Returns:
        Determinism
    """
    states = [(thing, copy.deepcopy(thing.state_dict())) for thing in restore]
    with torch.random.fork_rng(range(torch.musa.device_count()), device_type="musa"):
        runs = []
        for _ in range(2):
            for thing, state in states if runs else ():
                thing.load_state_dict(copy.deepcopy(state))
                if isinstance(thing, torch.nn.Module):
                    thing.zero_grad(set_to_none=True)
            torch.manual_seed(seed)
            with RunDigest(runs[0] if runs else None) as run:
                function()
            runs.append(run)
    found = runs[1].varying
    first = next((varying for varying in found if varying.cause == "operator"), None)
    return Determinism(first or (found[0] if found else None), runs[1].operators)
