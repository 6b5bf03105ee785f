# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares each operator of a program on the device and on the CPU."""

from __future__ import annotations

import math
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from musa_runtime.errors import MusaError

from . import random_properties, substitutes, ties
from . import tolerances as _tolerances
from .call import DEVICE, describe, tensors_of
from .host_arguments import HostArguments
from .observer import Observer
from .precise_reference import PreciseReference
from .reproducer import ReproducerFolder
from .selection import Selection
from .timeline import Timeline

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from .call import OperatorCall

# Unspecified results: statistics of batch norms in evaluation mode, and intermediate values of
# ctc_loss, whose shape and unused part differ between libraries.
_UNSPECIFIED = {
    "native_batch_norm": lambda values: [] if values.get("training") else ["result[1]", "result[2]"],
    "_native_batch_norm_legit": lambda values: [] if values.get("training") else ["result[1]", "result[2]"],
    "_native_batch_norm_legit_no_training": lambda values: ["result[1]", "result[2]"],
    "_ctc_loss": lambda values: ["result[1]"],
}
_CPU_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError)


class DifferenceError(MusaError):
    """An operator's result differs from the CPU's, and the comparison was set to stop.

    Attributes:
        difference (Difference)
    """

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Difference(NamedTuple):
    """An operator whose result on the device differs from the CPU's.

    Attributes:
        operator (str): e.g. "aten::add.Tensor".
        module (str): name of its module; "" outside modules.
        phase (str): "forward", "backward" or "recompute".
        call (int): index of the call in the block.
        arguments (tuple of str): name and dtype and shape, or value, of each argument.
        output (str): "result", "result[1]", or the name of an argument that the operator writes.
        reason (str): the difference, with the largest error and its index.
        max_abs, max_rel (float): largest errors; nan if values were not compared.
        provider (str): provider whose kernel ran.
        folder (str): folder with `call.pt` and `reproduce.py`; "" if nothing was saved.
    """

    operator: str
    module: str
    phase: str
    call: int
    arguments: tuple[str, ...]
    output: str
    reason: str
    max_abs: float
    max_rel: float
    provider: str
    folder: str

    def __str__(self) -> str:
        place = f"in {self.module}" if self.module else "outside of modules"
        lines = [
            f"{self.operator} {place} ({self.phase}, call {self.call}) differs from the CPU: {self.output}: "
            f"{self.reason}",
            *(f"  {argument}" for argument in self.arguments),
            f"  served by {self.provider or 'an unknown provider'}",
        ]
        if self.folder:
            lines.append(f"To repeat it: python {self.folder}/reproduce.py")
        return "\n".join(lines)


class Finding(NamedTuple):
    """The result for one output: "same", "rounding" or "different", and the reason."""

    verdict: str
    reason: str
    max_abs: float = math.nan
    max_rel: float = math.nan


class Comparison(Observer):
    """The observer of `compare`; see there for the arguments.

    Attributes:
        differences (list of Difference): in the order of the calls.
        compared (int): calls whose results were compared with the CPU's.
        rounding (int): compared calls that exceed the tolerance only by rounding.
        not_compared (Counter): number of calls per (operator, reason).
        timeline (Timeline): all operators, for the report.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = "musa_debug",
        *,
        stop: bool = False,
        tolerances: Mapping[torch.dtype, tuple[float, float]] | None = None,
        modules: str | Sequence[str] | None = None,
        operators: str | Sequence[str] | None = None,
        save: int = 10,
        limit: int | None = None,
        check_inputs: bool = False,
    ) -> None:
        self._selection = Selection(operators, modules)
        self._folder = ReproducerFolder(folder, save)
        self._tolerances = _tolerances.merged(tolerances)
        self._stop, self._limit, self._check_inputs = stop, limit, check_inputs
        self._pending: dict[int, Any] = {}  # call index -> arguments on the CPU, for running calls
        self._lock = threading.Lock()
        self.differences: list[Difference] = []
        self.not_compared: Counter[tuple[str, str]] = Counter()
        self.compared = self.rounding = 0
        self.timeline = Timeline()

    @property
    def first(self) -> Difference | None:
        """The first difference, or None."""
        return self.differences[0] if self.differences else None

    def before(self, call: OperatorCall) -> None:
        if not call.on_device or not self._selection.includes(call):
            return
        reason = self._why_not(call)
        if reason is None and not call.is_view:
            arguments = HostArguments(call)
            spare = arguments.duplicate() if call.written else arguments
            self._pending[call.index] = arguments, spare
        elif reason is not None:
            self._pending[call.index] = reason

    def after(self, call: OperatorCall) -> None:
        if not call.on_device:
            self.timeline.add(call, "host")
            return
        if not self._selection.includes(call):
            self.timeline.add(call)
            return
        pending = self._pending.pop(call.index, None)
        if isinstance(pending, str):
            self._leave_out(call, pending)
        elif call.error is not None:
            self._after_error(call, pending)
        elif pending is None:
            self._compare_view(call)
        elif self._check_inputs and (names := pending[0].overwritten()):
            reason = "the operator changed the argument, which it may only read"
            self._differ(call, names[0], Finding("different", reason), pending[1])
        else:
            self._compare(call, *pending)

    def _why_not(self, call: OperatorCall) -> str | None:
        """Returns the reason why a call cannot be compared, or None."""
        if call.is_collective:
            return "a collective: its result depends on other processes"
        for _, tensor in call.inputs:
            if tensor.layout is not torch.strided:
                return f"a tensor with layout {str(tensor.layout).removeprefix('torch.')}"
            if tensor.is_nested:
                return "a nested tensor"
            if tensor.is_quantized:
                return "a quantized tensor"
            if tensor.device.type not in (DEVICE, "cpu"):
                return f"a tensor on {tensor.device.type}"
        if call.base_name in ("record_stream", "_pin_memory", "set_", "_copy_from", "resize_"):
            return "it works on storages or streams, not on values"
        if torch.musa.is_current_stream_capturing():  # type: ignore[attr-defined]
            return "the stream is being captured into a graph"
        if self._limit is not None:
            size = sum(tensor.numel() * tensor.element_size() for _, tensor in call.inputs)
            if size > self._limit:
                return f"its arguments take more than the limit of {self._limit} bytes"
        return None

    def _leave_out(self, call: OperatorCall, reason: str) -> None:
        with self._lock:
            self.not_compared[call.name, reason] += 1
        self.timeline.add(call, "not compared", reason)

    def _agree(self, call: OperatorCall, rounding: str = "", error: float = 0.0) -> None:
        """Records a call without a difference. `rounding`: its difference from the CPU, if that exceeds the
        tolerance."""
        with self._lock:
            self.compared += 1
            self.rounding += bool(rounding)
        self.timeline.add(call, "rounding" if rounding else "same", rounding, error)

    def _differ(
        self,
        call: OperatorCall,
        output: str,
        found: Finding,
        arguments: HostArguments | None = None,
        expected: dict[str, torch.Tensor] | None = None,
    ) -> None:
        """Records a difference, and raises it if the comparison stops at the first one.

        Args:
            output (str): name of the output.
            found (Finding): the difference.
            arguments (HostArguments): the arguments to save; None to save nothing.
            expected (dict of str to Tensor): the outputs on the CPU.
        """
        folder = ""
        if arguments is not None:
            folder = self._folder.save(
                call, arguments, f"{output}: {found.reason}", expected or {}, self._tolerances
            )
        difference = Difference(
            call.name, call.module, call.phase, call.index, described(call), output, found.reason,
            found.max_abs, found.max_rel, call.provider, folder,
        )  # fmt: skip
        with self._lock:
            self.compared += 1
            self.differences.append(difference)
        self.timeline.add(call, "different", f"{output}: {found.reason}", found.max_abs)
        if self._stop:
            raise DifferenceError(difference) from call.error

    def _after_error(self, call: OperatorCall, pending: tuple[HostArguments, HostArguments] | None) -> None:
        """Checks that a call that raised on the device also raises on the CPU."""
        if pending is None or not isinstance(call.error, Exception) or _is_lack_of_memory(call.error):
            self._leave_out(call, f"it raised {type(call.error).__name__}")
            return
        arguments, spare = pending
        try:
            self._run(call, arguments.args, arguments.kwargs)
        except _CPU_ERRORS:
            self._leave_out(call, "it raised on the device and on the CPU")
            return
        text = str(call.error).splitlines()[0] if str(call.error) else type(call.error).__name__
        self._differ(call, "result", Finding("different", f"it raised only on the device: {text}"), spare)

    def _compare_view(self, call: OperatorCall) -> None:
        """Compares a view's shape, strides and offset with those on the meta device, since it has no data."""
        try:
            expected = _on_meta(call)
        except _CPU_ERRORS as error:
            self._leave_out(call, f"the meta device cannot run it: {_first_line(error)}")
            return
        pairs = zip(tensors_of("result", call.result), tensors_of("result", expected))
        for (name, actual), (_, wanted) in pairs:
            have, need = _geometry(actual), _geometry(wanted)
            if have != need:
                reason = f"shape, strides and offset are {have}, expected {need}"
                self._differ(call, name, Finding("different", reason))
                return
        self._agree(call)

    def _compare(self, call: OperatorCall, arguments: HostArguments, spare: HostArguments) -> None:
        strange = next((t.layout for _, t in call.outputs if t.layout is not torch.strided), None)
        if strange is not None or any(tensor.is_nested for _, tensor in call.outputs):
            self._leave_out(call, f"a result with layout {strange or 'nested'}".replace("torch.", ""))
            return
        if call.is_random:
            self._compare_random(call, arguments, spare)
            return
        if call.is_uninitialised:
            self._leave_out(call, "its result is uninitialised memory")
            return
        try:
            reference = self._run(call, arguments.args, arguments.kwargs)
        except _CPU_ERRORS as error:
            lacks = isinstance(error, NotImplementedError)
            self._leave_out(
                call, "the CPU has no kernel" if lacks else f"the CPU cannot run it: {_first_line(error)}"
            )
            return
        expected = dict(tensors_of("result", reference))
        for name, tensor in call.written:
            expected.setdefault(name, arguments.on_host(tensor))
        skipped = _UNSPECIFIED.get(call.base_name, lambda values: [])(dict(call.named_arguments))
        precise = PreciseReference(call, spare, lambda args, kwargs: self._run(call, args, kwargs))
        outputs = call.outputs
        if not outputs and isinstance(call.result, (bool, int, float)):
            expected["result"], outputs = torch.tensor(reference), [("result", torch.tensor(call.result))]
        rounding, error = "", 0.0
        for name, actual in outputs:
            if name not in expected or name in skipped:
                continue
            found = self._judge(call, name, actual, expected[name], spare, precise)
            if found.verdict == "different":
                self._differ(call, name, found, spare, {name: expected[name]})
                return
            if found.verdict == "rounding":
                rounding = f"{name}: {found.reason}"
            error = max(error, found.max_abs)
        self._agree(call, rounding, error)

    def _judge(
        self,
        call: OperatorCall,
        name: str,
        actual: torch.Tensor,
        expected: torch.Tensor,
        spare: HostArguments,
        precise: PreciseReference,
    ) -> Finding:
        """Returns the finding for one output."""
        if actual.shape != expected.shape:
            return Finding("different", f"the shape is {list(actual.shape)}, not {list(expected.shape)}")
        if actual.dtype != expected.dtype:
            return Finding("different", f"the dtype is {actual.dtype}, not {expected.dtype}")
        actual = actual.cpu()
        found = _tolerances.distance(actual, expected, self._tolerances.get(actual.dtype))
        if not found.count:
            return Finding("same", "", found.max_abs, found.max_rel)
        source = spare.named()
        picked = ties.picked_values(call, name, actual, source)
        if picked is not None and torch.equal(picked, ties.picked_values(call, name, expected, source)):
            return Finding("same", "")
        rounding = precise.is_rounding(name, actual, expected)
        return Finding(
            "rounding" if rounding else "different", _in_words(found), found.max_abs, found.max_rel
        )

    def _compare_random(self, call: OperatorCall, arguments: HostArguments, spare: HostArguments) -> None:
        outputs = [tensor.cpu() for _, tensor in call.outputs]
        known, problem = random_properties.check(call, outputs)
        if problem is not None:
            self._differ(call, "result", Finding("different", problem), spare)
        elif known:
            self._agree(call)
        else:
            self._leave_out(call, "it draws random numbers, and no property of it is known")

    def _run(self, call: OperatorCall, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Runs the operator, or its substitute, on CPU arguments."""
        substitute = substitutes.of(call.name)
        if substitute is None:
            return call.func(*args, **kwargs)
        return substitute(*args, **kwargs)


def compare(
    folder: str | os.PathLike[str] | None = "musa_debug",
    *,
    stop: bool = False,
    tolerances: Mapping[torch.dtype, tuple[float, float]] | None = None,
    modules: str | Sequence[str] | None = None,
    operators: str | Sequence[str] | None = None,
    save: int = 10,
    limit: int | None = None,
    check_inputs: bool = False,
) -> Comparison:
    """Also runs each operator of a `with` block on the CPU, in forward and backward passes.

    Args:
        folder (path): receives the inputs of differing calls, and scripts that repeat them. It is created
            with the first difference; ranks of a distributed program use subfolders. None saves nothing.
        stop (bool): raise `DifferenceError` at the first difference instead of going on.
        tolerances (dict of torch.dtype to pair of float): (rtol, atol), overriding the defaults.
        modules, operators (str or list of str): patterns of modules and operators to compare, see
            `Selection`; default: all.
        save (int): maximum number of saved differences.
        limit (int): calls with larger arguments, in bytes, are not compared; None for no limit.
        check_inputs (bool): also find operators that modify arguments which they must only read, by copying
            the arguments twice.

    Returns:
        Comparison: a context manager with the results.

    Raises:
        TypeError: if `tolerances` has a key or a value of a wrong type.
    """
    return Comparison(
        folder,
        stop=stop,
        tolerances=tolerances,
        modules=modules,
        operators=operators,
        save=save,
        limit=limit,
        check_inputs=check_inputs,
    )


def described(call: OperatorCall) -> tuple[str, ...]:
    """Returns each argument of a call as "name: dtype[shape]" or "name: value"."""
    return tuple(f"{name}: {describe(value)}" for name, value in call.named_arguments)


def _in_words(found: _tolerances.Distance) -> str:
    share = f"{found.count} of {found.numel} elements"
    if not found.index:
        place = ""
    else:
        place = f" at {list(found.index)}: {found.actual} on the device, {found.expected} on the CPU"
    return f"{share} differ, by up to {found.max_abs:.3g} (relative {found.max_rel:.3g}){place}"


def _on_meta(call: OperatorCall) -> Any:
    """Returns the call's result on the meta device."""
    replaced = {}

    def on_meta(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in replaced:
                size = value.untyped_storage().nbytes() // value.element_size()
                base = torch.empty(size, dtype=value.dtype, device="meta")
                tensor = base.as_strided(value.size(), value.stride(), value.storage_offset())
                if value.is_conj():
                    tensor = tensor.conj()
                replaced[id(value)] = torch._neg_view(tensor) if value.is_neg() else tensor
            return replaced[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(on_meta(item) for item in value)
        return value

    return call.func(*map(on_meta, call.args), **{name: on_meta(v) for name, v in call.kwargs.items()})


def _geometry(tensor: torch.Tensor) -> tuple[list[int], list[int], Any]:
    return list(tensor.shape), list(tensor.stride()), tensor.storage_offset()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]


def _is_lack_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError)
