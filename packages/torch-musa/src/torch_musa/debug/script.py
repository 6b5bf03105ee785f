# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa compare script.py`: runs an unmodified program under the tools of this package."""

import contextlib
import os
import runpy
import sys

from .comparison import DifferenceError, compare
from .nonfinite import NonFiniteError, track_nonfinite
from .operator_log import log_operators
from .report_page import write_report
from .reproducer import of_rank


def add_arguments(parser):
    """Adds the command line arguments of `compare`."""
    parser.add_argument(
        "--folder",
        default="musa_debug",
        help="output folder of the report and of saved calls (default: musa_debug)",
    )
    parser.add_argument("--stop", action="store_true", help="stop at the first difference, NaN or infinity")
    parser.add_argument("--modules", action="append", metavar="PATTERN", help="compare in these modules only")
    parser.add_argument(
        "--operators", action="append", metavar="PATTERN", help="compare these operators only"
    )
    parser.add_argument(
        "--nonfinite", action="append", choices=("nan", "inf"), help="also find where these begin"
    )
    parser.add_argument("--limit", type=int, metavar="BYTES", help="skip calls with larger arguments")
    parser.add_argument(
        "--check-inputs",
        action="store_true",
        help="also find operators that modify arguments that they must only read",
    )
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is the name of a module")
    parser.add_argument("script", metavar="PROGRAM", help="a Python file, or a module with -m")
    parser.add_argument("arguments", nargs="...", metavar="...", help="arguments of the program")


def run(options):
    """Runs the script of the command line and writes the report.

    Returns:
        int: the exit status of the script if that is not 0. Otherwise 1 if an operator differs, or if
            `--nonfinite` found a value, otherwise 0. 2 if the file does not exist.
    """
    if not options.module and not os.path.isfile(options.script):
        print(
            f"torch_musa: there is no file {options.script!r}.\n"
            f"Fix: python -m torch_musa compare -m {options.script}, if it is the name of a module",
            file=sys.stderr,
        )
        return 2
    comparison = compare(
        options.folder,
        stop=options.stop,
        modules=options.modules,
        operators=options.operators,
        limit=options.limit,
        check_inputs=options.check_inputs,
    )
    tracker = track_nonfinite(options.nonfinite, stop=options.stop) if options.nonfinite else None
    tools = [tool for tool in (comparison, tracker, log_operators()) if tool]
    status = 0
    try:
        with contextlib.ExitStack() as stack:
            for tool in tools:
                stack.enter_context(tool)
            status = _run_program(options)
    except (DifferenceError, NonFiniteError):
        pass  # reported below, with the others
    finally:
        # Also runs after an exception in the script, which is raised afterwards.
        _report(options, comparison, tracker, tools)
    found = comparison.differences or (tracker and tracker.findings)
    return status or int(bool(found))


def _run_program(options):
    """Runs the script as Python does, and returns its exit status."""
    sys.argv = [options.script, *options.arguments]
    try:
        if options.module:
            sys.path.insert(0, os.getcwd())
            runpy.run_module(options.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
            runpy.run_path(options.script, run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    return 0


def _report(options, comparison, tracker, tools):
    folder = of_rank(options.folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.html"
    write_report(path, *tools, title=" ".join([options.script, *options.arguments]))
    left_out = sum(comparison.not_compared.values())
    lines = [
        f"{comparison.compared} operators compared with the CPU, {len(comparison.differences)} differ, "
        f"{comparison.rounding} by rounding only; {left_out} not compared"
    ]
    if comparison.first:
        lines.append(f"first: {comparison.first}")
    if tracker:
        lines.append(f"{len(tracker.findings)} operators begin with NaN or infinities")
        if tracker.first:
            lines.append(f"first: {tracker.first}")
    lines.append(f"report: {path}")
    # A single write, so that the lines of several ranks are not interleaved.
    print(
        "".join(f"torch_musa compare: {line}\n" for text in lines for line in text.splitlines()),
        end="",
        file=sys.stderr,
    )
