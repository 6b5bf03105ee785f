# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The command: options, the run over operators, the summary."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import torch

from musa_runtime import capabilities, device, measured_orders, memory
from musa_runtime import ops as registry
from musa_runtime.errors import SettingError
from torch_musa import plugins

from . import choice, inputs, journal, measurement, operators, recipes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from .inputs import Case
    from .operators import Group

SMALL = 1_000
# A GPU takes longer for these than the host for the call. A million elements take it some microseconds only.
MEDIUM = 16_000_000
# Where kernels run on the host's processors, these take as long.
MEDIUM_OF_HOST = 50_000
QUICK_SECONDS = 120
QUICK = measurement.Effort(batch=0.3e-3, case=0.1)
FULL = measurement.Effort(batch=2e-3, case=2.0)
_INTERRUPTED = 130  # the exit status of a program that Ctrl-C ends


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--operators",
        action="extend",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="only these, e.g. aten::mm '*norm*'; other operators of the file keep their order",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="large operands and float16 as well, longer measurements, no time limit",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="N",
        help=f"stop after N seconds, 0: no limit (default: {QUICK_SECONDS}, with --full 0); "
        "the same command continues",
    )
    parser.add_argument(
        "--output", metavar="FILE", help=f"default: ${measured_orders.VARIABLE}, else a file of the device"
    )
    parser.add_argument("--dry-run", action="store_true", help="list the measurements without running them")
    parser.add_argument("--restart", action="store_true", help="discard the results of an unfinished run")


def run(options: argparse.Namespace) -> tuple[str, int]:
    """Runs the command. Returns the text to print and the exit status.

    Raises:
        MusaError: no device, an unknown operator, a file that cannot be written.
    """
    _start_device()
    # TORCH_MUSA_OPS_FILE=none names no file to read; the orders are written all the same.
    default = measured_orders.default_path(device.get_device_properties(0).name)
    output = os.path.abspath(options.output or measured_orders.chosen_path() or default)
    found = operators.groups(options.operators)
    if not found:
        return "no operator has several providers, so there is nothing to measure", 0
    found.sort(key=lambda group: recipes.importance(group.op))
    if options.dry_run:
        return _plan(found, options, output), 0
    identity = measured_orders.identity(_packs())
    header = {"identity": identity, "full": options.full}
    record = journal.Journal(output, header, options.restart)
    resumed = sum(group.op in record.results for group in found)
    began = time.monotonic()
    complete = interrupted = False
    failure = ""
    registry.set_fallback_mode("allow")
    try:
        complete = _run(found, options, record)
    except KeyboardInterrupt:
        interrupted = True
    except measurement.DeviceFailure as error:
        failure = str(error)
    finally:
        registry.reset()
    rows = {group.op: record.results[group.op] for group in found if group.op in record.results}
    kept = _kept_operators(output, identity)
    if complete or rows:
        journal.write(output, _content(rows, kept, identity, options))
    record.close(remove=complete)
    text = _summary(rows, found, output, time.monotonic() - began, resumed)
    if interrupted:
        text += "\nInterrupted. Fix: the same command continues with the remaining operators"
    elif failure:
        text += f"\nThe device failed: {failure}\nFix: the same command continues without the last operator"
    elif not complete:
        text += "\nThe time limit ended the run. Fix: the same command continues; --seconds 0 sets no limit"
    return text, _INTERRUPTED if interrupted else int(bool(failure))


def _start_device() -> None:
    if os.environ.get("TORCH_MUSA_OPS"):
        raise SettingError(
            "TORCH_MUSA_OPS is set, which has precedence over measured orders and changes measurements.\n"
            "Fix: unset TORCH_MUSA_OPS",
            "unset TORCH_MUSA_OPS",
        )
    named = os.environ.get(measured_orders.VARIABLE, "")
    if named and named != measured_orders.NO_FILE:
        try:
            measured_orders.read(named)
        except ValueError:
            # This command writes the file; until then the variable would end the first use of the device.
            os.environ[measured_orders.VARIABLE] = measured_orders.NO_FILE
            try:
                device.init()
            finally:
                os.environ[measured_orders.VARIABLE] = named
            return
    with warnings.catch_warnings():
        # The summary says that the file was replaced.
        warnings.simplefilter("ignore", measured_orders.MeasuredOrdersWarning)
        device.init()


def _packs() -> dict[str, str]:
    return {r.dist: r.version for r in plugins.records() if r.status == "loaded" and r.providers}


# ---- measurements


def _cases(op: str, full: bool) -> list[Case]:
    base = inputs.base_dtype(op)
    short = [torch.bfloat16, *([torch.float16] if full else [])] if base.is_floating_point else []
    large = inputs.large_numel(memory.mem_get_info()[0])
    sizes = {
        "small": SMALL,
        "medium": MEDIUM_OF_HOST if capabilities.computes_on_host() else min(MEDIUM, large),
    }
    if full and large > sizes["medium"]:
        sizes["large"] = large
    # Small calls take the host's time, which does not depend on the dtype.
    return [
        inputs.Case(size, numel, dtype)
        for size, numel in sizes.items()
        for dtype in [base, *(short if full or size != "small" else ())]
    ]


def _run(found: Sequence[Group], options: argparse.Namespace, record: journal.Journal) -> bool:
    """Measures the groups that have no result. Returns whether all have one."""
    limit = options.seconds if options.seconds is not None else 0 if options.full else QUICK_SECONDS
    end = time.monotonic() + limit
    todo = [group for group in found if group.op not in record.results]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operators that are called with odd operands
        for group in _progress(todo):
            if limit and time.monotonic() > end:
                return False
            record.start(group.op)
            try:
                row = _measured(group, options.full)
            except KeyboardInterrupt:
                record.interrupt(group.op)
                raise
            registry.reset()
            record.finish(group.op, row)
    return True


def _measured(group: Group, full: bool) -> dict[str, Any]:
    """Returns the result of a group: its order with the times, or the reason why there is none."""
    try:
        cases = _cases(group.op, full)
    except inputs.NoInputs as error:
        return {"reason": str(error)}
    found = measurement.measure(group, cases, FULL if full else QUICK)
    served = {name for rounds in found.times.values() for name in rounds}
    if len(served) + len(found.wrong) < 2:
        told = "; ".join(f"{name}: {reason}" for name, reason in found.refusals.items())
        return {"reason": f"fewer than two providers served the calls ({told})"[:300]}
    before = list(group.providers)
    after = before if found.undecided else choice.order(found.times, before, list(found.wrong))
    if after != before and not found.wrong:
        # Noise seldom favours one provider twice, so a change needs two measurements.
        found = measurement.measure(group, cases, FULL if full else QUICK)
        if found.undecided or choice.order(found.times, before, list(found.wrong)) != after:
            after = before
    row: dict[str, Any] = {
        "order": after,
        "before": before,
        "also": list(group.also),
        "microseconds": {
            case: {name: round(sorted(values)[len(values) // 2], 3) for name, values in rounds.items()}
            for case, rounds in found.times.items()
        },
    }
    if found.wrong:
        row["wrong"] = found.wrong
    if found.undecided:
        row["undecided"] = found.undecided
    if after[0] != before[0]:
        row["gain"] = round(choice.gain(found.times.values(), before[0], after[0]), 3)
    return row


def _progress(todo: Sequence[Group]) -> Iterable[Group]:
    """Yields the groups and shows the progress on stderr: a bar of tqdm if it is installed, or lines."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped]
    except ImportError:
        for number, group in enumerate(todo):
            if number % 50 == 0:
                print(f"{number} of {len(todo)} operators: {group.op}", file=sys.stderr, flush=True)
            yield group
        return
    bar = tqdm(todo, unit="operator", file=sys.stderr, disable=None)
    for group in bar:
        bar.set_postfix_str(group.op, refresh=False)
        yield group


# ---- the file and the texts


def _kept_operators(output: str, identity: dict[str, Any]) -> dict[str, Any]:
    """Returns the operators of the present file, if it holds for this device and these versions."""
    try:
        content = measured_orders.read(output)
    except ValueError:
        return {}
    return content["operators"] if content["identity"] == identity else {}


def _content(
    rows: dict[str, Any], kept: dict[str, Any], identity: dict[str, Any], options: argparse.Namespace
) -> dict[str, Any]:
    measured = {op: row for op, row in rows.items() if "order" in row}
    return {
        "format": measured_orders.FORMAT,
        "program": f"python -m torch_musa tune{' --full' if options.full else ''}",
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "identity": identity,
        "torch": torch.__version__,
        "operators": dict(sorted({**kept, **measured}.items())),
        "not_measured": {op: row["reason"] for op, row in sorted(rows.items()) if "reason" in row},
    }


def _plan(found: Sequence[Group], options: argparse.Namespace, output: str) -> str:
    lines = []
    for group in found:
        try:
            cases = ", ".join(map(str, _cases(group.op, options.full)))
            lines.append(f"{group.op}: {', '.join(group.providers)}; {cases}")
        except inputs.NoInputs as error:
            lines.append(f"{group.op}: not measured: {error}")
    lines.append(f"\n{len(found)} operators. The orders would be written to {output}")
    return "\n".join(lines)


def _summary(rows: dict[str, Any], found: Sequence[Group], output: str, seconds: float, resumed: int) -> str:
    measured = {op: row for op, row in rows.items() if "order" in row}
    changed = {op: row for op, row in measured.items() if row["order"] != row["before"]}
    lines = []
    for op, row in changed.items():
        gain = f", {row['gain']:.2f} times as fast" if "gain" in row else ""
        lines.append(f"{op}: {', '.join(row['order'])} (before: {', '.join(row['before'])}){gain}")
    for op, row in measured.items():
        lines += [f"{op}: WRONG result of {name}: {error}" for name, error in row.get("wrong", {}).items()]
        if "undecided" in row:
            lines.append(f"{op}: order kept: {row['undecided']}")
    missing = len(rows) - len(measured)
    lines.append(
        f"{len(measured)} of {len(found)} operators measured in {seconds:.0f} s"
        + (f" ({resumed} results are from an earlier run)" if resumed else "")
        + f", {len(changed)} orders changed, {missing} not measured (reasons are in the file)."
    )
    lines.append(f"Orders: {output}")
    if output != os.path.abspath(measured_orders.chosen_path()):
        lines.append(f"To use them: export {measured_orders.VARIABLE}={output}")
    return "\n".join(lines)
