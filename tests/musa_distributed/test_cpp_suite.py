# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The C++ tests in cpp/: watchdog, recorder and the state shared by a group's threads; with --full also under
sanitizers."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.harness import cpp_suites
from tests.musa_emulator import sdk, test_cpp_suite

pytestmark = [pytest.mark.once, pytest.mark.slow]

SOURCE = Path(__file__).parent / "cpp"
BUILDS = test_cpp_suite.BUILDS
KINDS = test_cpp_suite.KINDS


@cache
def program(kind: str) -> Path:
    """Builds the tests of one kind; returns the program."""
    libraries = sdk.HOME / "lib"
    if BUILDS[kind]:
        libraries = test_cpp_suite.build(kind, "musart", "musa") / "emulator"
    # Found without importing torch, which would initialize the device in this process.
    torch = Path(find_spec("torch").origin).parent
    folder = cpp_suites.build(
        SOURCE,
        f"distributed-tests/{kind}",
        SANITIZE=BUILDS[kind],
        SDK_LIBRARIES=libraries,
        RUNTIME_LIBRARY=torch.parent / "musa_runtime" / "lib" / "libmusa_runtime.so",
        MUSA_TORCH_HOME=torch,
        # Every clean clone builds the plain kind from scratch; compiling files together takes less time.
        CMAKE_UNITY_BUILD="OFF" if BUILDS[kind] else "ON",
        CMAKE_UNITY_BUILD_BATCH_SIZE=5,
    )
    return folder / "distributed_tests"


def run(kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # async, because in lazy mode a query of an event would run the work that the tests hold back.
    environment = sdk.clean_environment(
        MUSA_EMULATOR_MODE="async", MUSA_EMULATOR_DEVICES="2", TORCH_SHOW_CPP_STACKTRACES="0"
    )
    command = [str(program(kind)), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("kind", KINDS)
def test_suite_passes(kind: str) -> None:
    done = run(kind, "--gtest_brief=1")
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    assert "PASSED" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_python_waits_for_threads_that_run_it(kind: str) -> None:
    done = run(kind, "python-use")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_a_race_is_reported() -> None:
    done = run("thread", "known-bad")
    assert done.returncode != 0 and "data race" in done.stderr
