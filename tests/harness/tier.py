# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The tests before a push, ``--tier=changed`` and ``--tier=sample``; ``--tier=rest`` has a part of the rest.

A suite, which is a folder of tests/, is *changed* if its own files or those of its subject differ from the
branch's base, committed or not. The sample takes other files by turns: the number of the commit chooses, so
that successive commits cover all files. Conformance is sampled by test.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.harness.repository import ROOT, git

STATE = "MUSA_TESTS_TIER"  # the choice of the first process, for the processes of pytest-xdist
# Seconds of tests, of which three processes on two cores run three in a second. Processes also collect tests.
CHANGED_SECONDS = 1460  # the suites of the costliest package
SAMPLE_SECONDS = 200
SHARES = 8  # of the rest, of which a commit takes one


@dataclass(frozen=True)
class Suite:
    """A folder of tests/."""

    seconds: float  # sum of the durations of its tests, measured once; only proportions matter
    subjects: tuple[str, ...]  # folders and files that the tests are about
    by_test: bool = False  # sampled by test instead of by file
    when_changed: bool = False  # left out of the sample


def _packages(*names: str) -> tuple[str, ...]:
    return tuple(f"packages/{name}/" for name in names)


_RUNTIME = _packages("musa-runtime", "musa-ops-host")
_MUDNN = _packages("musa-ops-mudnn", "musa-emulator-mudnn")
_PORTED = _packages("musa-ops-ported")
SUITES: dict[str, Suite] = {
    "benchmarks": Suite(130, ("benchmarks/",), when_changed=True),
    "conformance": Suite(510, (*_RUNTIME, *_MUDNN, *_PORTED), by_test=True),
    "examples": Suite(230, ("examples/",)),
    "gpu": Suite(5, ("tools/workspace/gpu",), when_changed=True),
    "harness": Suite(20, (), when_changed=True),
    "manual": Suite(30, ("docs/", "README.md", "tools/workspace/docs.py"), when_changed=True),
    "musa_amp": Suite(80, _packages("musa-amp")),
    "musa_as_cuda": Suite(80, _packages("musa-as-cuda")),
    "musa_compat": Suite(50, _packages("musa-compat")),
    "musa_compile": Suite(640, _packages("musa-compile")),
    "musa_cuda": Suite(150, _packages("musa-cuda", "musa-cuda-mudnn")),
    "musa_distributed": Suite(1220, _packages("musa-distributed", "musa-emulator-mccl")),
    "musa_emulator": Suite(440, _packages("musa-emulator")),
    "musa_emulator_math": Suite(90, _packages("musa-emulator-math")),
    "musa_emulator_mccl": Suite(230, _packages("musa-emulator-mccl")),
    "musa_ops_host": Suite(10, _RUNTIME),
    "musa_ops_math": Suite(60, _packages("musa-ops-math", "musa-emulator-math")),
    "musa_ops_mudnn": Suite(420, _MUDNN),
    "musa_ops_ported": Suite(100, _PORTED),
    "musa_ops_serving": Suite(60, _packages("musa-ops-serving")),
    "musa_ops_vision": Suite(50, _packages("musa-ops-vision")),
    "musa_port": Suite(160, _packages("musa-port")),
    "musa_runtime": Suite(1430, _RUNTIME),
    "mutations": Suite(5, ("packages/",), when_changed=True),
    "plugins": Suite(470, _packages("torch-musa")),
    "sdk_programs": Suite(20, _packages("musa-emulator")),
    "soak": Suite(70, (), when_changed=True),
    "tools": Suite(180, ("tools/", "conda/", "docker/", "pyproject.toml"), when_changed=True),
    "vllm_torch_musa": Suite(20, _packages("vllm-torch-musa")),
    "torch_musa": Suite(890, _packages("torch-musa")),
}


def changed_files() -> set[str]:
    """Files that differ from the base: the commit in MUSA_TESTS_BASE, or where the branch left origin/main,
    or the commit before HEAD."""
    base = os.environ.get("MUSA_TESTS_BASE") or git("merge-base", "HEAD", "origin/main")
    if not base or base == git("rev-parse", "HEAD"):
        base = "HEAD~1"
    listed = (git("diff", "--name-only", base), git("ls-files", "--others", "--exclude-standard"))
    return {name for names in listed for name in (names or "").splitlines()}


def commit_number() -> int:
    """The number of commits up to HEAD, 0 outside of git: successive commits take successive samples."""
    return int(git("rev-list", "--count", "HEAD") or 0)


@dataclass(frozen=True)
class Tier:
    """A share of the tests: of the suites that `changed`, a `sample` of the other suites, or of the `rest`.

    `parts` has the number of parts of each suite of which the first two shares take one: 1 takes all, 0 none.
    """

    parts: Mapping[str, int]
    changed: Collection[str]
    turn: int
    share: str

    def takes(self, suite: str, name: str) -> bool:
        """Whether a file or a test runs."""
        if self.share != "rest" and (self.share == "changed") != (suite in self.changed):
            return False
        parts, number = self.parts.get(suite, 1), zlib.crc32(name.encode())
        first = parts > 0 and (number + self.turn) % parts == 0
        if self.share == "rest":
            # Other digits of the number, because the first ones decide what the tier takes.
            return not first and (number // 0x10000 + self.turn) % SHARES == 0
        return first

    def leaves_out(self, suite: str) -> bool:
        """Whether no test of a suite runs."""
        if self.share == "rest":
            return self.parts.get(suite) == 1
        return self.parts.get(suite) == 0 or (self.share == "changed") != (suite in self.changed)


def plan(changed: Iterable[str], turn: int, share: str = "changed") -> Tier:
    """The share of the tests for these changed files at this turn."""
    names = tuple(changed)
    hit = {
        suite
        for suite, made in SUITES.items()
        if any(name.startswith((f"tests/{suite}/", *made.subjects)) for name in names)
    }
    parts = {}
    own = sum(SUITES[suite].seconds for suite in hit if not SUITES[suite].by_test)
    shared = sum(SUITES[suite].seconds for suite in hit if SUITES[suite].by_test)
    others = [made for suite, made in SUITES.items() if suite not in hit and not made.when_changed]
    sampled = sum(made.seconds for made in others)
    for suite, made in SUITES.items():
        if suite in hit:
            # The operators, which belong to several packages, get what the suites of their own leave.
            left = max(CHANGED_SECONDS - own, SAMPLE_SECONDS)
            seconds, limit = (shared, left) if made.by_test else (own, CHANGED_SECONDS)
            parts[suite] = max(1, math.ceil(seconds / limit))
        elif made.when_changed:
            parts[suite] = 0
        else:
            parts[suite] = max(1, math.ceil(sampled / SAMPLE_SECONDS))
    return Tier(parts, sorted(hit), turn, share)


def chosen(share: str) -> Tier:
    """The share of this run. Processes of pytest-xdist take the choice of the one that started them, as files
    may change meanwhile."""
    state = os.environ.get(STATE)
    if state is None:
        made = plan(changed_files(), commit_number(), share)
        os.environ[STATE] = json.dumps(asdict(made))
        return made
    return Tier(**json.loads(state))


def suite_of(path: Path) -> str:
    """The folder of tests/ that holds a file; empty for files beside the folders."""
    inside = path.relative_to(ROOT / "tests").parts
    return inside[0] if len(inside) > 1 else ""


def ignores(tier: Tier, path: Path) -> bool:
    """Whether no test of a file or a folder runs, so that it need not be imported."""
    if not path.is_relative_to(ROOT / "tests"):
        return False
    if path.is_dir():
        return path.parent == ROOT / "tests" and path.name in SUITES and tier.leaves_out(path.name)
    suite = suite_of(path)
    if suite not in SUITES or not path.name.startswith("test_") or path.suffix != ".py":
        return False
    if SUITES[suite].by_test:
        return tier.leaves_out(suite)
    return not tier.takes(suite, path.relative_to(ROOT).as_posix())


def left_out(tier: Tier, items: Iterable[Any]) -> set[Any]:
    """Tests of suites that are divided by test which another share takes."""
    found = set()
    for item in items:
        suite = suite_of(item.path) if item.path.is_relative_to(ROOT / "tests") else ""
        if suite in SUITES and SUITES[suite].by_test and not tier.takes(suite, item.nodeid):
            found.add(item)
    return found
