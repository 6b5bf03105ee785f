# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The legs of the test suite: one pytest run each, under different settings of the emulated device."""

import os
import subprocess
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.harness import records
from tests.harness.tier import SHARES, commit_number

from . import ROOT, WorkspaceError, progress

LEG_LIMIT_S = 60 * 60
SHOWN = 50  # failures at the end of a run
NO_TEST_RAN = 5  # pytest's exit status
# Waiting OpenMP threads spin, which is up to twenty times slower with concurrent stream workers.
WAIT_POLICY = {"OMP_WAIT_POLICY": "passive"}
# One process more than there are cores, as tests of several processes often wait.
JOBS = (os.cpu_count() or 1) + 1

LAZY = {"MUSA_EMULATOR_MODE": "lazy"}
ASYNC = {"MUSA_EMULATOR_MODE": "async"}
# Profiles of the device: a board and a system on a chip, whose memory the host cannot address, and a board
# that does not compute with float64.
DISCRETE = {"MUSA_EMULATOR_MEMORY": "strict"}
SOC = {"MUSA_EMULATOR_MEMORY": "soc", **ASYNC}
NO_FLOAT64 = {**DISCRETE, "MUSA_EMULATOR_FLOAT64": "0"}
PORTED = {
    **DISCRETE,
    "MUSA_EMULATOR_ARCH": "mp_21",  # the least shared memory, and wide warps
    "MUSA_EMULATOR_SCHEDULE": "reverse",
    "TORCH_MUSA_OPS": "ported,host-copy",
}
HOST = {**LAZY, "TORCH_MUSA_OPS": "host"}
COPIES = {**DISCRETE, **ASYNC, "TORCH_MUSA_OPS": "mudnn,host-copy"}


@dataclass(frozen=True)
class Leg:
    name: str
    arguments: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    may_be_empty: bool = False
    small: bool = False  # one process, beside other small legs

    def command(self, python: Path | str, jobs: int = JOBS) -> list[str]:
        # Warnings about operators that no pack serves in this leg would hide the failures.
        command = [str(python), "-m", "pytest", "--disable-warnings", "--durations=8", "--durations-min=5"]
        command += ["-n", str(jobs), "--dist=loadscope"] if jobs > 1 else []
        return [*command, *self.arguments]

    def environment(self) -> dict[str, str]:
        return {**WAIT_POLICY, **os.environ, **self.env}


def every_leg(full: bool = False, rest: bool = False) -> list[Leg]:
    """Returns all tests in the default mode, and shares of the mode-dependent tests in other modes.

    Most mode-dependent tests run in async mode, which is how GPUs work. Deferring work until it is needed
    only affects streams and memory within one process (lazy). Memory that the host cannot address is
    typical of GPUs, so graphs, captured operators, AMP, the profiler, optimizers, training on two ranks and
    operators also run there (discrete, soc, no-fp64). Each of these takes a different quarter of the tests,
    or all with ``full``. Faults of the SDK's calls are distributed over inline, async and discrete
    (tests/harness/sweeps.py).

    In these legs the packs come first. Operators are also tested without packs (host), with muDNN and
    copies (copies), and with ported kernels and copies (ported), with wide warps whose threads run in
    reverse order. async, ported, copies and host each take a quarter of the operator cases.

    ``rest`` leaves out the tests in the default mode that the tier has, and takes a share of each leg.
    """
    conformance = "tests/conformance"
    devices = ["tests/musa_runtime", "tests/musa_ops_mudnn", "tests/musa_amp"]
    elsewhere = ("fault", "process", "memory_history")
    deferred = [*devices[:2], *(f"--ignore-glob=*/test_{name}*.py" for name in elsewhere)]
    training = ["tests/musa_distributed/test_training.py::test_on_two_ranks"]

    def by_mode(name: str, paths: Sequence[str], quarter: int, env: dict[str, str]) -> Leg:
        parts = 4 * SHARES if rest else 4
        share = [] if full else [f"--part={(quarter - 1 + 4 * commit_number()) % parts + 1}/{parts}"]
        return Leg(name, [*paths, "-m", "not once", *share], env)

    return [
        Leg("inline", ["tests", *["--full"] * full, *["--tier=rest"] * rest]),
        by_mode("async", ["tests"], 1, ASYNC),
        by_mode(
            "discrete",
            [*devices, conformance, "tests/musa_ops_vision", "tests/musa_ops_serving", *training],
            2,
            DISCRETE,
        ),
        by_mode("soc", [*devices, conformance, *training], 4, SOC),
        by_mode("no-fp64", [*devices, conformance, *training], 3, NO_FLOAT64),
        by_mode("lazy", deferred, 3, LAZY),
        by_mode("ported", [conformance, "tests/musa_ops_ported"], 2, PORTED),
        by_mode("host", [conformance], 4, HOST),
        by_mode("copies", [conformance], 3, COPIES),
    ]


# Files that use each profile of the device in many ways and are quick to collect.
SMOKE = [
    "tests/musa_runtime/test_copies.py",
    "tests/musa_runtime/test_graphs.py",
    "tests/musa_runtime/test_neural_networks.py",
    "tests/musa_runtime/test_streams.py",
    "tests/musa_amp",
]
SMOKE_PARTS = 12


def tier() -> list[Leg]:
    """Returns the tests before a push: what changed, a sample of the rest, a smoke of each device profile."""
    number = commit_number()

    def smoke(name: str, env: dict[str, str], paths: Sequence[str], parts: int) -> Leg:
        arguments = [*paths, "-m", "not once", f"--part={number % parts + 1}/{parts}"]
        return Leg(f"smoke-{name}", arguments, env, small=True)

    operators = ["tests/conformance/test_ops.py"]
    return [
        Leg("changed", ["tests", "--tier=changed"], may_be_empty=True),
        Leg("sample", ["tests", "--tier=sample"]),
        smoke("async", ASYNC, SMOKE, SMOKE_PARTS),
        smoke("discrete", DISCRETE, SMOKE, SMOKE_PARTS),
        smoke("soc", SOC, SMOKE, SMOKE_PARTS),
        smoke("no-fp64", NO_FLOAT64, SMOKE, SMOKE_PARTS),
        smoke("lazy", LAZY, SMOKE, SMOKE_PARTS),
        *(
            smoke(name, env, operators, 8 * SMOKE_PARTS)
            for name, env in (("ported", PORTED), ("host", HOST), ("copies", COPIES))
        ),
    ]


def names_path(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.split("::")[0]).exists()


def select(
    extra: Sequence[str],
    *,
    every: bool = False,
    full: bool = False,
    rest: bool = False,
    sanitized: bool = False,
    names: Sequence[str] = (),
) -> list[Leg]:
    """Returns the legs to run: ``names``, every one with ``every`` or ``full``, otherwise those of the tier.

    A path in ``extra`` selects only that; other arguments filter every leg.
    """
    if any(names_path(argument) for argument in extra):
        return [Leg("chosen", [*extra, *(["--full"] if full else [])])]
    known = {leg.name: leg for leg in [*every_leg(full), *tier()]}
    if unknown := [name for name in names if name not in known]:
        raise WorkspaceError(f"there is no leg {unknown[0]}; there are {', '.join(known)}")
    if names:
        chosen = [known[name] for name in names]
    else:
        chosen = every_leg(full, rest) if every or full or rest else tier()
    # Sanitizers find memory errors and races: one pass is sufficient, and takes ten times as long.
    chosen = [leg for leg in chosen if not leg.env] if sanitized else chosen
    return [
        replace(leg, arguments=[*leg.arguments, *extra], may_be_empty=leg.may_be_empty or bool(extra))
        for leg in chosen
    ]


def outcomes(report: Path) -> Iterator[tuple[ET.Element, str, str]]:
    """Yields a JUnit report's test cases with "passed", "failed" or "skipped", and failure messages."""
    for case in ET.parse(report).getroot().iter("testcase"):
        problems = [child.text or "" for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped") is not None
        yield case, "failed" if problems else "skipped" if skipped else "passed", "".join(problems[:1])


def counts_of(report: Path) -> Counter[str]:
    """Returns how many tests passed, failed and were skipped. Expected failures count as skipped."""
    return Counter(outcome for _, outcome, _ in outcomes(report))


def failures_of(report: Path) -> list[str]:
    """Returns a line for each test that failed: its name, and the last line of its error."""
    if not report.is_file():
        return []
    return [
        f"{case.get('classname')}::{case.get('name')}: {(message.strip().splitlines() or [''])[-1][:200]}"
        for case, outcome, message in outcomes(report)
        if outcome == "failed"
    ]


def run_leg(
    leg: Leg, python: Path, env: dict[str, str], report: Path, jobs: int, **streams
) -> tuple[Counter, str]:
    """Runs a leg; returns its counts and a note. A run without results counts as failed."""
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [*leg.command(python, jobs), f"--junitxml={report}"]
    with progress.process_group(command, cwd=ROOT, env={**leg.environment(), **env}, **streams) as process:
        try:
            status = process.wait(LEG_LIMIT_S)
        except subprocess.TimeoutExpired:
            # Past this limit a test hangs in native code, where pytest's time limit has no effect.
            process.kill()
            return Counter(failed=1), f"stopped; the limit is {LEG_LIMIT_S // 60} minutes"
    if not report.is_file():
        return Counter(failed=1), f"pytest ended with status {status} and no report"
    counts = counts_of(report)
    if status == NO_TEST_RAN or not counts:
        return Counter(failed=int(not leg.may_be_empty)), "no test ran"
    if status != 0 and not counts["failed"]:
        return counts + Counter(failed=1), f"pytest exit status {status} without a failed test"
    return counts, ""


def run(
    chosen: Sequence[Leg],
    python: Path,
    env: dict[str, str],
    reports: Path,
    jobs: int = JOBS,
    record: str = "",
) -> int:
    """Runs one leg after another, then the small ones side by side; prints the failures, a line for each leg
    and the totals, which the end of a long log shows. Returns the exit status.

    record: the command, if the results go to build/records/legs.json.

    With pytest's option -x, the first failure ends all legs.
    """
    lines, failures, total = [], [], Counter()

    def report(leg: Leg, counts: Counter, note: str, start: float) -> None:
        total.update(counts)
        failures.extend(f"{leg.name}: {line}" for line in failures_of(reports / f"{leg.name}.xml"))
        text = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
        minutes, seconds = divmod(round(time.monotonic() - start), 60)
        lines.append(f"{leg.name:15} {text}  {minutes} min {seconds:02} s{f'  ({note})' * bool(note)}")

    def run_small(leg: Leg) -> None:
        start = time.monotonic()
        with (reports / f"{leg.name}.log").open("w+") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            counts, note = run_leg(leg, python, env, reports / f"{leg.name}.xml", 1, **streams)
            log.seek(0)
            print(f"\n{title(leg)}\n{log.read()}", flush=True)
        report(leg, counts, note, start)

    def failed() -> bool:
        return total["failed"] > 0 and any("-x" in leg.arguments for leg in chosen)

    reports.mkdir(parents=True, exist_ok=True)
    for leg in chosen:
        if not (leg.small and jobs > 1) and not failed():
            print(f"\n{title(leg)}", flush=True)
            start = time.monotonic()
            report(leg, *run_leg(leg, python, env, reports / f"{leg.name}.xml", jobs), start)
    if jobs > 1 and not failed():
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(run_small, [leg for leg in chosen if leg.small]))
    text = f"{total['passed']} passed, {total['failed']} failed"
    more = [f"and {len(failures) - SHOWN} more"] * (len(failures) > SHOWN)
    print("\n".join(["", *failures[:SHOWN], *more, *lines, "", text]))
    if record:
        records.write("legs", record, f"{text}, {total['skipped']} skipped", legs=lines)
    return int(total["failed"] > 0 or total["passed"] == 0)


def title(leg: Leg) -> str:
    settings = " ".join(f"{key}={value}" for key, value in leg.env.items()) or "default settings"
    return f"== {leg.name}: {settings}: pytest {' '.join(leg.arguments)}"
