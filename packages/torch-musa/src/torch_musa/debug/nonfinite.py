# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds the operators that first produce NaN or infinities."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from musa_runtime.errors import MusaError

from .comparison import described
from .observer import Observer
from .timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .call import OperatorCall

KINDS = ("nan", "inf")


class NonFiniteError(MusaError):
    """An operator produced a NaN or an infinity, and the tracker was set to stop.

    Attributes:
        finding (NonFinite)
    """

    def __init__(self, finding: NonFinite) -> None:
        super().__init__(str(finding))
        self.finding = finding


class NonFinite(NamedTuple):
    """A call whose result has a NaN or an infinity that does not come from its inputs.

    Attributes:
        kind (str): "nan" or "inf".
        origin (str): "operator" if all inputs of the call were finite; "input" if the tensor `argument`
            already had such a value and no earlier operator of the block produced it: data, a weight, or
            uninitialized memory.
        argument (str): name of that argument. If `origin` is "operator", the name of an argument with
            infinities that may have caused a NaN, or "".
        operator, module, phase, call, arguments, output, provider: as in `Difference`.
        count, numel (int): number of such elements, and of all elements of the output.
    """

    kind: str
    origin: str
    argument: str
    operator: str
    module: str
    phase: str
    call: int
    arguments: tuple[str, ...]
    output: str
    count: int  # type: ignore[assignment]
    numel: int
    provider: str

    def __str__(self) -> str:
        place = f"in {self.module}" if self.module else "outside of modules"
        if self.origin == "input":
            cause = (
                f"its argument {self.argument} had {self.kind} already, which no operator of the block made"
            )
        elif self.argument:
            cause = f"its argument {self.argument} has inf, but no argument has nan"
        else:
            cause = f"no argument had {self.kind}"
        return "\n".join(
            [
                f"{self.operator} {place} ({self.phase}, call {self.call}) has {self.kind} in "
                f"{self.count} of {self.numel} elements of {self.output}; {cause}",
                *(f"  {argument}" for argument in self.arguments),
                f"  served by {self.provider or 'an unknown provider'}",
            ]
        )


class NonFiniteTracker(Observer):
    """The observer of `track_nonfinite`; see there for the arguments.

    Attributes:
        findings (list of NonFinite): calls that first produced such values, in order.
        affected (int): number of calls whose result had such values, including those that propagated them.
        timeline (Timeline): all operators, for the report.
    """

    def __init__(self, kinds: str | Sequence[str] = KINDS, *, stop: bool = False) -> None:
        kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        if not kinds or set(kinds) - set(KINDS):
            raise ValueError(f"kinds must be of {KINDS}, but got {kinds!r}.\nFix: kinds=('nan',)")
        self._kinds, self._stop = kinds, stop
        # Call index -> counts in arguments that a running call writes, before the call.
        self._inputs: dict[int, dict[str, dict[str, int]]] = {}
        self._made: set[str] = set()  # kinds that calls of this block have returned
        self._lock = threading.Lock()
        self.findings: list[NonFinite] = []
        self.affected = 0
        self.timeline = Timeline()

    @property
    def first(self) -> NonFinite | None:
        """The first finding, or None."""
        return self.findings[0] if self.findings else None

    def before(self, call: OperatorCall) -> None:
        # Other inputs are counted in `after`, only if the result has such values.
        written = {id(tensor) for _, tensor in call.written}
        if written:
            read = [(name, tensor) for name, tensor in call.read if id(tensor) in written]
            self._inputs[call.index] = {name: self._count(tensor) for name, tensor in read}

    def after(self, call: OperatorCall) -> None:
        before = self._inputs.pop(call.index, {})
        # A view has the values of its base, and uninitialized memory may contain anything.
        if call.error is not None or call.is_view or call.is_uninitialised:
            self.timeline.add(call)
            return
        findings: list[Any] = []
        reasons: list[Any] = []
        for name, tensor in call.outputs:
            counts = self._count(tensor)
            for kind in self._kinds:
                if counts[kind]:
                    found = self._explain(call, kind, name, counts[kind], tensor.numel(), before)
                    (findings if isinstance(found, NonFinite) else reasons).append(found)
                    self._made.add(kind)
        if not findings and not reasons:
            self.timeline.add(call)
            return
        note = str(findings[0]).splitlines()[0] if findings else reasons[0]
        self.timeline.add(call, "nonfinite", note)
        with self._lock:
            self.affected += 1
            self.findings += findings[:1]  # one finding per call, even with several results
        if findings and self._stop:
            raise NonFiniteError(findings[0])

    def _explain(
        self,
        call: OperatorCall,
        kind: str,
        output: str,
        count: int,
        numel: int,
        before: dict[str, dict[str, int]],
    ) -> NonFinite | str:
        """Returns a NonFinite if this call first produced the value, otherwise the reason why not."""
        if _is_given(call, kind):
            return f"{kind} is an argument of the call"
        inputs = {name: before.get(name) or self._count(tensor) for name, tensor in call.read}
        argument = next((name for name, counts in inputs.items() if counts[kind]), "")
        if argument and kind in self._made:
            return f"the argument {argument} had {kind} already"
        origin = "input" if argument else "operator"
        if kind == "nan" and not argument:  # inf - inf or 0 * inf
            argument = next((name for name, counts in inputs.items() if counts["inf"]), "")
        return NonFinite(
            kind, origin, argument, call.name, call.module, call.phase, call.index, described(call), output,
            count, numel, call.provider,
        )  # fmt: skip

    def _count(self, tensor: torch.Tensor) -> dict[str, int]:
        """Returns the numbers of NaN and infinite elements."""
        if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided:
            return {"nan": 0, "inf": 0}
        if tensor.is_nested or tensor.device.type == "meta" or tensor.element_size() == 1:
            return {"nan": 0, "inf": 0}
        if not tensor.numel() or bool(torch.isfinite(tensor).all()):
            return {"nan": 0, "inf": 0}
        nan = int(torch.isnan(tensor).sum())
        return {"nan": nan, "inf": int((~torch.isfinite(tensor)).sum()) - nan}


def _is_given(call: OperatorCall, kind: str) -> bool:
    """Whether a scalar argument is such a value, as in `masked_fill(mask, -inf)`."""
    wanted = math.isnan if kind == "nan" else math.isinf

    def holds(value: object) -> bool:
        if isinstance(value, (list, tuple)):
            return any(map(holds, value))
        return isinstance(value, float) and wanted(value)

    return any(holds(value) for _, value in call.named_arguments)


def track_nonfinite(kinds: str | Sequence[str] = KINDS, *, stop: bool = False) -> NonFiniteTracker:
    """Finds operators of a `with` block that first produce NaN or infinities, forward and backward.

    Args:
        kinds (tuple of str): "nan", "inf" or both. A program that scales its loss for float16 produces
            infinities on purpose; pass ("nan",) to ignore them.
        stop (bool): raise `NonFiniteError` at the first finding instead of going on.

    Returns:
        NonFiniteTracker: a context manager with the results.

    Raises:
        ValueError: for any other kind.
    """
    return NonFiniteTracker(kinds, stop=stop)
