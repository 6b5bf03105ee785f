# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Repeats a saved call and compares its results with the CPU and with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import call_file
from .call import describe, tensors_of
from .comparison import compare
from .digest import digest

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Mapping

    import torch

    from .comparison import Difference


class Outcome(NamedTuple):
    """The outcome of a replay.

    Attributes:
        operator (str), module (str): names in the saved call.
        arguments (tuple of str): dtype and shape of each tensor.
        results (tuple of str): dtype and shape of each result.
        differences (list of Difference): differences from the CPU, at most one per run.
        reason (str): the reason if it was not compared, otherwise "".
        varying (int): number of runs whose result was not bitwise equal to the first run's.
        times (int): number of runs.
        provider (str): provider whose kernel ran.
        error (Exception): the exception that the operator raised; None if it returned.
    """

    operator: str
    module: str
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    differences: list[Difference]
    reason: str
    varying: int
    times: int
    provider: str
    error: Exception | None

    @property
    def status(self) -> int:
        """0 if all runs gave the CPU's result, otherwise 1."""
        return int(bool(self.differences or self.varying or self.error or self.reason))

    def __str__(self) -> str:
        place = f" in {self.module}" if self.module else ""
        lines = [
            f"{self.operator}{place}, {self.times} run(s), served by {self.provider or 'an unknown provider'}"
        ]
        lines += [f"  {text}" for text in self.arguments]
        lines += [f"  returns {text}" for text in self.results]
        if self.error is not None:
            lines.append(f"it raised {type(self.error).__name__}: {self.error}")
        if self.differences:
            lines.append(str(self.differences[0]))
        elif self.reason:
            lines.append(f"not compared with the CPU: {self.reason}")
        elif self.error is None:
            lines.append("the same as on the CPU")
        if self.varying:
            lines.append(f"{self.varying} of {self.times} runs gave another result than the first run")
        return "\n".join(lines)


def replay(
    path: str | os.PathLike[str],
    *,
    times: int = 1,
    tolerances: Mapping[torch.dtype, tuple[float, float]] | None = None,
    device: str | torch.device = "musa",
    namespaces: Collection[str] = (),
) -> Outcome:
    """Repeats a call saved by `dump` or `compare`, on the device and on the CPU.

    The file chooses the operator: one of aten that computes with tensors and reads or writes no files, or
    one of the `namespaces`. It cannot run other code, but it can use much memory and time.

    Args:
        path (path): the file.
        times (int): number of runs on the device, each with fresh arguments.
        tolerances (dict of torch.dtype to pair of float): as in `compare`.
        device (str): device for tensors that were on the musa device.
        namespaces (collection of str): accepts the operators of these namespaces too, e.g.
            ("torchvision",). They may do anything, also to files.

    Returns:
        Outcome

    Raises:
        CallFileError: if the file contains no call, or its operator is missing in this process or not
            accepted.
        ValueError: if `times` is less than 1.
    """
    if times < 1:
        raise ValueError(f"times is {times}.\nFix: pass 1 or more")
    content = call_file.load(path)
    func = call_file.operator(content, namespaces)
    digests, results, error, shown = [], (), None, ()
    with compare(None, tolerances=tolerances, check_inputs=True) as comparison:
        for _ in range(times):
            # Placing the arguments makes copies, which are compared too: those rows are skipped
            # below.
            args, kwargs = call_file.arguments(content, device)
            before = len(comparison.timeline.rows)
            try:
                result = func(*args, **kwargs)
            except Exception as raised:  # noqa: BLE001 - the outcome reports it
                error = raised
                break
            tensors = [tensor for _, tensor in tensors_of("result", [result, args, list(kwargs.values())])]
            digests.append([digest(tensor) for tensor in tensors])
            results = tuple(describe(tensor) for _, tensor in tensors_of("result", result)) or (
                describe(result),
            )
    row = next(
        (row for row in comparison.timeline.rows[before:] if row.operator == content["operator"]), None
    )
    shown = row.arguments if row else ()
    reasons = [reason for (op, reason) in comparison.not_compared if op == content["operator"]]
    return Outcome(
        content["operator"],
        content["module"],
        shown,
        results,
        [difference for difference in comparison.differences if difference.operator == content["operator"]],
        reasons[0] if reasons else "",
        sum(one != digests[0] for one in digests[1:]),
        times,
        row.provider if row else "",
        error,
    )
