# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels in kernels/*.mu under the SIMT engine: their results, and the reports of their mistakes."""

from __future__ import annotations

import re

import pytest

from tests.musa_emulator.mcc import program, run

pytestmark = pytest.mark.once

SCHEDULES = ("forward", "reverse", "random:1", "random:2")
ARCHS = {"mp_31": 32, "mp_22": 128}
PROGRAMS = (
    *("launches", "addresses", "shared", "warps", "groups", "words", "numbers", "memory", "textures"),
    *("arrays", "random", "idioms"),
)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_in_every_order_and_warp_size(name: str, arch: str, schedule: str) -> None:
    done = run(program(name), MUSA_EMULATOR_ARCH=arch, MUSA_EMULATOR_SCHEDULE=schedule)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all as expected" in done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(
    "settings",
    [
        {"MUSA_EMULATOR_MODE": "async"},
        {"MUSA_EMULATOR_MODE": "lazy"},
        {"MUSA_EMULATOR_MEMORY": "strict"},
        {"MUSA_EMULATOR_THREADS": "1"},
        {"MUSA_EMULATOR_THREADS": "7"},
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_in_every_mode(name: str, settings: dict[str, str]) -> None:
    done = run(program(name), **settings)
    assert done.returncode == 0, done.stdout + done.stderr


# ---- mistakes

MISTAKES = {
    "some-wait": (
        "musaErrorLaunchFailure",
        r"kernel some_wait, block \(0, 0, 0\): deadlock: "
        r"7 of 64 threads wait at __syncthreads \(.*faults\.mu:\d+\), "
        r"25 of 64 threads wait at __syncwarp \(.*faults\.mu:\d+\)",
    ),
    "overrun": (
        "musaErrorLaunchFailure",
        r"out-of-bounds write after the end of cells \(.*faults\.mu:\d+\)",
    ),
    "too-much": ("musaErrorLaunchFailure", r"shared memory: 1638400 bytes with cells .* the limit is 196608"),
    "null": ("musaErrorIllegalAddress", r"kernel null made an illegal memory access"),
    "not-in-mask": ("musaErrorLaunchFailure", r"lane 0 calls __shfl_sync .* a mask that excludes it"),
    "assert": (
        "musaErrorAssert",
        r"kernel asserts, block .*faults\.mu:\d+: assertion failed: .*out of bounds",
    ),
    "trap": ("musaErrorLaunchFailure", r"kernel traps, block .*faults\.mu:\d+: __trap; thread \(3, 0, 0\)"),
    "asm-trap": ("musaErrorLaunchFailure", r"kernel traps_in_assembly, .*: __trap; thread \(3, 0, 0\)"),
    "deep": ("musaErrorLaunchFailure", r"kernel runs_deep: stack overflow of a thread"),
}
RIGHT = ("race", "no-race", "no-overrun", "no-assert", "no-trap", "no-asm-trap", "not-deep")


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("mode", ["inline", "async"])
def test_a_mistake_is_named_and_loses_the_device(mistake: str, mode: str) -> None:
    error, told = MISTAKES[mistake]
    done = run(program("faults"), mistake, MUSA_EMULATOR_MODE=mode)
    assert done.returncode == 2, done.stdout + done.stderr
    assert error in done.stdout
    assert re.search(told, done.stderr), done.stderr


@pytest.mark.parametrize("kernel", RIGHT)
def test_without_a_mistake_nothing_is_reported(kernel: str) -> None:
    done = run(program("faults"), kernel)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "musaSuccess", "")


def test_schedules_differ() -> None:
    orders = {
        schedule: run(program("faults"), "order", MUSA_EMULATOR_SCHEDULE=schedule).stdout
        for schedule in (*SCHEDULES, "random:2")
    }
    assert orders["forward"].startswith("0 1 2 3 4 5 ")
    assert orders["reverse"].startswith("5 4 3 2 1 0 ")
    assert len(set(orders.values())) == len(SCHEDULES)
    assert run(program("faults"), "order", MUSA_EMULATOR_SCHEDULE="random:2").stdout == orders["random:2"]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("MUSA_EMULATOR_SCHEDULE", "random"),
        ("MUSA_EMULATOR_SCHEDULE", "upward"),
        ("MUSA_EMULATOR_THREADS", "0"),
    ],
)
def test_an_invalid_setting_is_refused(setting: str, value: str) -> None:
    done = run(program("faults"), "no-race", **{setting: value})
    assert "musaErrorInitializationError" in done.stdout
    assert f'{setting}="{value}" is invalid' in done.stderr


# ---- sanitizers


@pytest.mark.parametrize("schedule", ["forward", "reverse"])
def test_a_race_is_reported_at_its_lines(schedule: str) -> None:
    built = program("faults", "-fsanitize=thread")
    bad = run(built, "race", MUSA_EMULATOR_SCHEDULE=schedule)
    assert bad.stderr.count("WARNING: ThreadSanitizer: data race") == 1, bad.stderr
    assert re.search(r"race\(int\*, bool\) .*faults\.mu:\d+", bad.stderr)
    good = run(built, "no-race", MUSA_EMULATOR_SCHEDULE=schedule)
    assert (good.returncode, good.stderr) == (0, "")


@pytest.mark.parametrize("name", ["shared", "warps"])
def test_correct_kernels_have_no_races(name: str) -> None:
    done = run(program(name, "-fsanitize=thread"), timeout=300)
    assert done.returncode == 0, done.stderr
    assert "ThreadSanitizer" not in done.stderr


def test_an_overrun_is_reported_at_its_line() -> None:
    built = program("faults", "-fsanitize=address")
    bad = run(built, "overrun", ASAN_OPTIONS="detect_leaks=0")
    assert "AddressSanitizer: use-after-poison" in bad.stderr
    assert re.search(r"in overrun\(int\*, int\) .*faults\.mu:\d+", bad.stderr)
    good = run(built, "no-overrun", ASAN_OPTIONS="detect_leaks=0")
    assert (good.returncode, good.stderr) == (0, "")
