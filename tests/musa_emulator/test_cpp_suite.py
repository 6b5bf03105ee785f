# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The C++ tests in cpp/ in every execution mode: with the installed SDK, and with --full with an SDK under
sanitizers."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.harness import cpp_suites
from tests.musa_emulator import sdk
from tests.musa_emulator.sdk import tool

pytestmark = pytest.mark.once

SOURCE = Path(__file__).parent / "cpp"
BUILDS = {"plain": "", "address": "address,undefined", "thread": "thread"}
MODES = ("inline", "async", "lazy")
# Instrumented builds take minutes.
KINDS = [pytest.param(kind, marks=pytest.mark.full if BUILDS[kind] else ()) for kind in BUILDS]


@cache
def build(kind: str, *targets: str) -> Path:
    """Builds all or some targets of one kind; returns the build folder."""
    return cpp_suites.build(
        SOURCE,
        f"emulator-tests/{kind}",
        *targets,
        SANITIZE=BUILDS[kind],
        MUSA_HOME="" if BUILDS[kind] else sdk.HOME,
    )


def run(program: Path, *arguments: str, mode: str) -> subprocess.CompletedProcess[str]:
    environment = sdk.clean_environment(MUSA_EMULATOR_MODE=mode, UBSAN_OPTIONS="print_stacktrace=1")
    return subprocess.run(
        [str(program), *arguments], env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_suite_passes(kind: str, mode: str) -> None:
    done = run(build(kind) / "emulator_tests", "--gtest_brief=1", mode=mode)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    assert "PASSED" in done.stdout


@pytest.mark.full
def test_address_sanitizer_watches_the_emulators_copies() -> None:
    program = build("address") / "known_bad"
    assert run(program, "host-copy", mode="inline").returncode == 0
    bad = run(program, "host-overrun", mode="inline")
    assert bad.returncode != 0
    assert "heap-buffer-overflow" in bad.stderr


@pytest.mark.full
def test_thread_sanitizer_reports_streams_without_an_event_between_them() -> None:
    program = build("thread") / "known_bad"
    assert run(program, "ordered-streams", mode="async").returncode == 0
    bad = run(program, "unordered-streams", mode="async")
    assert bad.returncode != 0
    assert "data race" in bad.stderr


def test_missing_googletest_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [tool("cmake"), "-S", str(SOURCE), "-B", str(tmp_path), "-G", "Ninja"]
        + [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "apt-get install -y libgtest-dev" in " ".join(done.stderr.split())
