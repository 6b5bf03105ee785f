# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures how many seeded faults of the product the tests find.

    python -m tests.mutations            # all faults, with the tier of tests
    python -m tests.mutations --first    # only the tests that mutations.toml names
    python -m tests.mutations --legs     # then all legs, with the faults that the tier misses
    python -m tests.mutations --only amp-growth-tracker -- tests/musa_amp

Each fault is applied to a copy of the working tree, which is built (`dev.py setup`) and tested
(`dev.py test -x`; arguments after `--` are passed on, and the results go to a record of their own). The
tests that mutations.toml names as `first` are part of the tier: they run first, and the whole tier only for
faults that they miss. One fault, the control, changes only a comment; if a test fails with it, the
measurement is refused. As root, copies are overlays that share the builds of the working tree. Otherwise each
is a git worktree with its own build, because builds contain absolute paths.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from . import copies
from .faults import CONTROL, Fault, load, problems

RECORD = copies.ROOT / "build" / "records" / "mutations.json"


def first_failure(output: str) -> str:
    """Returns the first failed test in pytest's output, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    failed = [line.split()[1] for line in lines if line.startswith(("FAILED ", "ERROR ")) and "::" in line]
    return (failed or lines[-1:] or ["no output"])[0]


def examine(
    fault: Fault, copy, kind: str, arguments: list[str], limit: float, deadline: float
) -> dict | None:
    """Builds and tests a copy with a fault.

    Args:
        kind (str): "first" runs the tests in `arguments`, "tier" the tier, "legs" all legs, with `arguments`.

    Returns:
        dict: `found` (None if the fault does not build), `by` (the first failed test) and `seconds`; None if
            the deadline comes first.
    """
    start = time.monotonic()
    copy.apply(fault)
    found, by = None, ""
    try:
        jobs = 1 if kind == "first" and len(arguments) == 1 else copy.jobs
        tests = ["test", "-x", f"--jobs={jobs}", *["--legs"] * (kind == "legs"), *arguments]
        for command in (["setup"], tests):
            status, output = copy.run(command, min(limit, deadline - time.monotonic()))
            if status is None and time.monotonic() >= deadline:
                return None
            if status is None:
                output = f"no end within {limit:.0f} s"
            by = "" if status == 0 else first_failure(output)
            found = status != 0 if command[0] == "test" else None
            if status != 0:
                break
    finally:
        copy.reset()
    return {"found": found, "by": by, "seconds": round(time.monotonic() - start)}


class Measurement:
    """Results by fault and kind ("first", "tier" or "legs"), continued from the record of the same commit."""

    def __init__(self, commit: str, record=RECORD) -> None:
        self.record, self.lock = record, threading.Lock()
        self.content = {"commit": commit, "date": "", "faults": {}}
        if record.is_file() and (earlier := json.loads(record.read_text()))["commit"] == commit:
            self.content = earlier

    def result(self, fault: Fault, kind: str) -> dict | None:
        return self.content["faults"].get(fault.id, {}).get(kind)

    def run(self, kind: str, faults: list[Fault], free: list, examine) -> bool:
        """Runs the control, then the faults without a result. Returns whether each has a result now.

        free: copies; each thread takes one.
        """

        def run(fault: Fault) -> bool:
            copy = free.pop()
            try:
                result = examine(fault, copy, kind)
            finally:
                free.append(copy)
            if fault.id == CONTROL and result is not None and result["found"] is not False:
                raise SystemExit(f"{kind}: fails without a fault: {result['by']}\nFix: make it pass first.")
            if result is None:
                return False
            with self.lock:
                about = {"package": fault.package, "effect": fault.effect}
                self.content["faults"].setdefault(fault.id, about)[kind] = result
                self.content["date"] = time.strftime("%Y-%m-%d")
                self.record.parent.mkdir(parents=True, exist_ok=True)
                self.record.write_text(json.dumps(self.content, indent=1) + "\n")
            print(f"{kind} {fault.id}: {result['by'] or 'not found'} ({result['seconds']} s)", flush=True)
            return True

        missing = [fault for fault in faults if self.result(fault, kind) is None]
        if missing and missing[0].id == CONTROL and not run(missing.pop(0)):
            return False
        with ThreadPoolExecutor(len(free)) as pool:
            return all(list(pool.map(run, missing)))

    def table(self, faults: list[Fault]) -> str:
        words = {True: "yes", False: "no", None: "no build"}
        lines, counts = [f"{'fault':34}{'package':22}{'tier':10}{'legs':10}found by"], {"tier": 0, "legs": 0}
        for fault in faults:
            first, tier, legs = (self.result(fault, kind) for kind in ("first", "tier", "legs"))
            if first and first["found"]:
                tier = first
            if tier and tier["found"]:
                legs = tier  # the legs contain the tier's tests
            by = next((result["by"] for result in (tier, legs) if result and result["by"]), "")
            cells = [words[result["found"]] if result else "-" for result in (tier, legs)]
            lines.append(f"{fault.id:34}{fault.package:22}{cells[0]:10}{cells[1]:10}{by}")
            for kind, result in (("tier", tier), ("legs", legs)):
                counts[kind] += bool(result and result["found"])
        total = f"the tier finds {counts['tier']} of {len(faults)} faults, the legs {counts['legs']}"
        return "\n".join([*lines, total])


def main(arguments: list[str]) -> int:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", metavar="ID", help="only this fault; may be repeated")
    parser.add_argument("--legs", action="store_true", help="then all legs, with faults that the tier misses")
    parser.add_argument("--first", action="store_true", help="only the tests that mutations.toml names")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time; cores are divided among them")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for one command (default: 3600)")
    text = "end after this time; a further run continues"
    parser.add_argument("--seconds", type=float, default=1e9, help=text)
    options = parser.parse_args(arguments[:end])
    control, *faults = load()
    found = problems([control, *faults], copies.ROOT)
    if subprocess.check_output([*copies.GIT, "status", "--porcelain", "--untracked-files=no"]):
        found.append("Results are recorded for a commit, but files have changed.\nFix: commit the changes.")
    if found:
        raise SystemExit("\n".join(found))
    commit = subprocess.check_output([*copies.GIT, "rev-parse", "HEAD"], text=True).strip()
    faults = [fault for fault in faults if not options.only or fault.id in options.only]
    deadline = time.monotonic() + options.seconds
    passed_on = arguments[end + 1 :]
    record = RECORD.with_stem("mutations-chosen") if passed_on else RECORD
    measurement, made = Measurement(commit, record), copies.make(options.jobs)
    named = [] if passed_on else [fault for fault in faults if fault.first]

    def run(fault: Fault, copy, kind: str) -> dict | None:
        tests = passed_on
        if kind == "first":
            tests = sorted({each.first for each in named}) if fault.id == CONTROL else [fault.first]
        return examine(fault, copy, kind, tests, options.limit, deadline)

    def found_by(kind: str, fault: Fault) -> bool:
        result = measurement.result(fault, kind)
        return bool(result and result["found"])

    kinds = ["first"] if options.first else ["first", "tier", *["legs"] * options.legs]
    complete, left = True, faults
    try:
        for kind in kinds:
            examined = named if kind == "first" else left
            if complete and examined:
                complete = measurement.run(kind, [control, *examined], made, run)
            left = [fault for fault in left if not found_by(kind, fault)]
    finally:
        for copy in made:
            copy.remove()
    print(measurement.table(faults))
    return 0 if complete else 1


if __name__ == "__main__":
    # An interrupt ends the process at once, and with it the commands of all threads.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main(sys.argv[1:]))
