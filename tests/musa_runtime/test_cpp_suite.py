# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The C++ tests in cpp/, compiled with the runtime's device layer: plain, and with --full under sanitizers,
with an emulator that is built under the same sanitizer."""

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
MODES = ("inline", "async")
KINDS = test_cpp_suite.KINDS


@cache
def build(kind: str) -> Path:
    """Builds one kind; returns the build folder."""
    libraries = sdk.HOME / "lib"
    if BUILDS[kind]:
        libraries = test_cpp_suite.build(kind, "musart", "musa") / "emulator"
    # Found without importing torch, which would initialize the device in this process.
    torch = Path(find_spec("torch").origin).parent
    # Every clean clone builds the plain kind from scratch. Compiling five files together halves the time, and
    # separates files that have variables of the same name.
    return cpp_suites.build(
        SOURCE,
        f"runtime-tests/{kind}",
        SANITIZE=BUILDS[kind],
        SDK_LIBRARIES=libraries,
        MUSA_TORCH_HOME=torch,
        CMAKE_UNITY_BUILD="OFF" if BUILDS[kind] else "ON",
        CMAKE_UNITY_BUILD_BATCH_SIZE=5,
    )


def run(program: Path, *arguments: str, mode: str = "inline") -> subprocess.CompletedProcess[str]:
    environment = sdk.clean_environment(
        MUSA_EMULATOR_MODE=mode,
        MUSA_EMULATOR_DEVICES="2",
        UBSAN_OPTIONS="print_stacktrace=1",
        # Prints a warning once per call site, as in a program; otherwise the fault sweep would repeat it.
        TORCH_SHOW_CPP_STACKTRACES="0",
    )
    return subprocess.run(
        [str(program), *arguments], env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", MODES)
def test_suite_passes(kind: str, mode: str) -> None:
    done = run(build(kind) / "runtime_tests", "--gtest_brief=1", mode=mode)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    assert "PASSED" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "right", "wrong", "report"),
    [
        ("address", "kept-allocator", "outliving-allocation", "heap-use-after-free"),
        ("address", "stream", "null-stream", "null pointer"),
        ("thread", "locked-generator", "unlocked-generator", "data race"),
        ("thread", "locked-count", "unlocked-count", "data race"),
    ],
)
def test_a_mistake_in_the_runtimes_own_code_is_reported(
    kind: str, right: str, wrong: str, report: str
) -> None:
    program = build(kind) / "known_bad"
    good = run(program, right)
    assert good.returncode == 0, good.stderr
    bad = run(program, wrong)
    assert bad.returncode != 0
    assert report in bad.stderr


def test_a_name_that_another_backend_has_taken_is_refused() -> None:
    done = run(build("plain") / "known_bad", "taken-name")
    assert done.returncode == 4, done.stderr
    assert "The backend 'other' has taken PrivateUse1" in done.stderr
