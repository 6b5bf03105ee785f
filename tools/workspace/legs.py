# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The test suite as legs: one pytest run each, under different settings of the emulated device."""

import os
import re
import subprocess
import threading
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import ROOT
from .progress import LiveLine, process_group, tail

LEG_LIMIT_S = 60 * 60
POLL_S = 0.25
SHOWN_LINES = 25  # lines of a failure in the summary
NO_TEST_RAN = 5  # pytest's exit status
# Waiting OpenMP threads spin, which is up to twenty times slower with concurrent stream workers.
WAIT_POLICY = {"OMP_WAIT_POLICY": "passive"}


@dataclass(frozen=True)
class Leg:
    name: str
    arguments: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    may_be_empty: bool = False


@dataclass(frozen=True)
class Result:
    leg: Leg
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""
    failures: tuple[str, ...] = ()  # test name and the end of its output

    def line(self) -> str:
        text = f"{self.leg.name:18}  {self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        return f"{text}  ({self.note})" if self.note else text


def default_legs(full: bool) -> list[Leg]:
    """Returns all tests in the default mode, and shares of the mode-dependent tests in other modes.

    Most mode-dependent tests run in async mode, which is how GPUs work. Deferring work until it is needed
    only affects streams and memory within one process (lazy). Memory that the host cannot address is
    typical of GPUs, so graphs, captured operators, AMP, the profiler, optimizers and training on two ranks
    also run there (strict). Each of these takes a different quarter of the tests, or all with ``full``.
    Faults of the SDK's calls are distributed over inline, async and strict (tests/harness/sweeps.py).

    In these legs the packs come first. Operators are also tested without packs (host), with muDNN and
    copies (discrete), and with ported kernels and copies (ported), with wide warps whose threads run in
    reverse order. async, ported, discrete and host each take a quarter of the operator cases.
    """
    conformance = "tests/conformance"
    strict = {"MUSA_EMULATOR_MEMORY": "strict"}
    lazy = {"MUSA_EMULATOR_MODE": "lazy"}
    devices = ["tests/musa_runtime", "tests/musa_ops_mudnn", "tests/musa_amp"]
    elsewhere = ("fault", "process", "memory_history")
    deferred = [*devices[:2], *(f"--ignore-glob=*/test_{name}*.py" for name in elsewhere)]
    training = [
        "tests/conformance/test_optimizer_db.py",
        "tests/musa_distributed/test_training.py::test_on_two_ranks",
    ]

    def by_mode(name: str, paths: Sequence[str], quarter: int, env: dict[str, str]) -> Leg:
        share = [] if full else [f"--part={quarter}/4"]
        return Leg(name, [*paths, "-m", "not once", *share], env)

    return [
        *shards(Leg("inline", ["tests", *(["--full"] if full else [])])),
        by_mode("async", ["tests"], 1, {"MUSA_EMULATOR_MODE": "async"}),
        by_mode("strict", [*devices, "tests/musa_ops_vision", *training], 2, strict),
        by_mode("lazy", deferred, 3, lazy),
        by_mode(
            "ported",
            [conformance, "tests/musa_ops_ported"],
            2,
            {
                **strict,
                "MUSA_EMULATOR_ARCH": "mp_22",
                "MUSA_EMULATOR_SCHEDULE": "reverse",
                "TORCH_MUSA_OPS": "ported,host-copy",
            },
        ),
        by_mode("host", [conformance], 4, {**lazy, "TORCH_MUSA_OPS": "host"}),
        by_mode(
            "discrete",
            [conformance],
            3,
            {**strict, "MUSA_EMULATOR_MODE": "async", "TORCH_MUSA_OPS": "mudnn,host-copy"},
        ),
    ]


# The leg of all tests runs as several processes to use all cores: these folders separately, and the
# rest together, the longest first. The tests of a folder run in order in one process.
SHARDS = {
    "compile": ["tests/musa_compile"],
    "runtime": ["tests/musa_runtime"],
    "umbrella": ["tests/torch_musa", "tests/plugins"],
    "distributed": ["tests/musa_distributed", "tests/musa_emulator_mccl"],
    "packs": [
        "tests/musa_ops_mudnn",
        "tests/musa_ops_ported",
        "tests/musa_amp",
        "tests/musa_ops_vision",
        "tests/musa_as_cuda",
        "tests/musa_compat",
        "tests/musa_port",
    ],
    "sdk": ["tests/musa_emulator", "tests/musa_emulator_math", "tests/musa_cuda"],
    "operators": ["tests/conformance"],
}


def shards(leg: Leg) -> list[Leg]:
    """Splits a leg whose first argument is all of tests/ into one leg per shard."""
    named = [folder for folders in SHARDS.values() for folder in folders]
    paths = {"rest": ["tests", *(f"--ignore={folder}" for folder in named)], **SHARDS}
    return [
        replace(leg, name=f"{leg.name}-{shard}", arguments=[*chosen, *leg.arguments[1:]])
        for shard, chosen in paths.items()
    ]


def names_path(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.split("::")[0]).exists()


def select(extra: Sequence[str], full: bool = False, sanitized: bool = False) -> list[Leg]:
    """Returns the legs to run. A path in ``extra`` selects only that; other arguments filter every leg."""
    if any(names_path(argument) for argument in extra):
        return [Leg("chosen", [*extra, *(["--full"] if full else [])])]
    chosen = default_legs(full)
    # Sanitizers find memory errors and races: one pass is sufficient, and takes ten times as long.
    chosen = [leg for leg in chosen if not leg.env] if sanitized else chosen
    return [replace(leg, arguments=[*leg.arguments, *extra], may_be_empty=bool(extra)) for leg in chosen]


def tally(leg: Leg, report: Path, status: int) -> Result:
    """Counts a JUnit report. Results without a report entry (a crash, no test run) count as one failure."""
    if not report.is_file():
        return Result(
            leg, failed=1, note=f"pytest ended with status {status} and no report: it crashed or was stopped"
        )
    counts = Counter()
    failures = []
    for case, outcome, text in outcomes(report):
        counts[outcome] += 1
        if outcome == "failed":
            failures.append(failure_of(case, text))
    passed, failed, skipped = counts["passed"], counts["failed"], counts["skipped"]
    if status == NO_TEST_RAN or passed + failed + skipped == 0:
        return Result(leg, failed=int(not leg.may_be_empty), note="no test ran")
    if status != 0 and failed == 0:
        return Result(leg, passed, 1, skipped, f"pytest exit status {status} without a failed test")
    return Result(leg, passed, failed, skipped, failures=tuple(failures))


def outcomes(report: Path) -> Iterator[tuple[ET.Element, str, str]]:
    """Yields a JUnit report's test cases with "passed", "failed" or "skipped", and failure messages."""
    for case in ET.parse(report).getroot().iter("testcase"):
        problems = [child.text or "" for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped") is not None
        yield case, "failed" if problems else "skipped" if skipped else "passed", "".join(problems[:1])


def failure_of(case: ET.Element, text: str) -> str:
    last = text.strip().splitlines()[-SHOWN_LINES:]
    return "\n".join([f"{case.get('classname')}::{case.get('name')}", *(f"    {line}" for line in last)])


def title(leg: Leg) -> str:
    settings = " ".join(f"{key}={value}" for key, value in leg.env.items()) or "default settings"
    return f"== {leg.name}: {settings}: pytest {' '.join(leg.arguments)}"


SLOWEST = ("--durations=8", "--durations-min=5")  # pytest lists these tests at the end


def run_leg(
    leg: Leg, python: Path, env: dict[str, str], reports: Path, stop: threading.Event | None = None, **streams
) -> Result:
    """Runs a leg until it ends, its time limit, or until ``stop`` is set."""
    stop = stop or threading.Event()
    report = reports / f"{leg.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    # Warnings about operators that no pack serves in this leg would hide the failures.
    command = [str(python), "-m", "pytest", "--disable-warnings", f"--junitxml={report}"]
    command += [*SLOWEST, *leg.arguments]
    env = {**WAIT_POLICY, **os.environ, **env, **leg.env}
    deadline = time.monotonic() + LEG_LIMIT_S
    try:
        with process_group(command, cwd=ROOT, env=env, **streams) as process:
            while process.poll() is None:
                if stop.wait(POLL_S) or time.monotonic() > deadline:
                    raise subprocess.TimeoutExpired(command, LEG_LIMIT_S)
    except subprocess.TimeoutExpired:
        # Past this limit a test hangs in native code, where pytest's time limit has no effect.
        return Result(leg, failed=1, note=f"stopped; the limit is {LEG_LIMIT_S // 60} minutes")
    return tally(leg, report, process.returncode)


def progress_of(logs: dict[str, Path]) -> str:
    """Returns the progress of each running leg, from the percentages that pytest prints."""
    shares = {name: re.findall(r"\[ *(\d+)%\]", tail(log)) for name, log in logs.items() if log.exists()}
    return ", ".join(f"{name} {found[-1] if found else 0} %" for name, found in shares.items())


def run_beside(
    chosen: Sequence[Leg], python: Path, env: dict[str, str], reports: Path, jobs: int
) -> list[Result]:
    """Runs ``jobs`` legs at a time, in order; the output of each is printed when it has ended."""
    stop = threading.Event()
    live = LiveLine("tests")
    reports.mkdir(parents=True, exist_ok=True)

    def run(leg: Leg) -> Result:
        with (reports / f"{leg.name}.log").open("w") as output:
            return run_leg(
                leg, python, env, reports, stop,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(run, leg): leg for leg in chosen}
        try:
            pending = set(futures)
            while pending:
                done, pending = wait(pending, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    leg = futures[future]
                    future.result()
                    live.clear()
                    output = (reports / f"{leg.name}.log").read_text(errors="replace")
                    print(f"\n{title(leg)}\n{output}", flush=True)
                running = [futures[future].name for future in pending if future.running()]
                live.update(progress_of({name: reports / f"{name}.log" for name in running}))
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]


def run_legs(
    chosen: Sequence[Leg], python: Path, env: dict[str, str], reports: Path, jobs: int
) -> list[Result]:
    """Runs the legs, ``jobs`` at a time; a leg that runs alone uses the terminal."""
    if jobs > 1 and len(chosen) > 1:
        return run_beside(chosen, python, env, reports, jobs)
    results = []
    for leg in chosen:
        print(f"\n{title(leg)}", flush=True)
        results.append(run_leg(leg, python, env, reports))
    return results


def summary(results: Sequence[Result]) -> tuple[str, int]:
    """Returns the summary (failures, legs, last the total ``N passed, N failed``) and the exit status."""
    passed = sum(result.passed for result in results)
    failed = sum(result.failed for result in results)
    lines = [
        *(f"Leg {result.leg.name}, failed: {failure}" for result in results for failure in result.failures),
        *(result.line() for result in results),
    ]
    return "\n".join(["", *lines, "", f"{passed} passed, {failed} failed"]), int(failed > 0 or passed == 0)
