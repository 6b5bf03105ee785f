# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A short soak has no violation, and each kind of growth is found if a workload causes it on purpose."""

import json

import pytest

from tests.harness.parts import sample
from tests.harness.subprocesses import run_python

pytestmark = [pytest.mark.once, pytest.mark.slow]

ROUNDS = 8  # twenty seconds for both modes on an idle machine


@pytest.mark.parametrize("mode", sample(["async", "inline"], 2))
def test_a_short_soak_leaves_nothing_behind(mode, tmp_path):
    limit = ["--minutes", "4", "--rounds", str(ROUNDS), "--seed", "7"]
    settings = {"MUSA_EMULATOR_MODE": mode, "MUSA_TESTS_RECORDS": str(tmp_path)}
    done = run_python("-m", "tests.soak", *limit, MUSA_EMULATOR_MEMORY=None, **settings)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    told = json.loads((tmp_path / "soak.json").read_text())
    assert told["violations"] == [] and told["mode"] == mode and told["rounds"] == ROUNDS
    assert min(told["peak_allocated"]) > 1 << 20 and min(told["workloads"].values()) >= 2
    assert "nothing grew, nothing failed" in done.stdout


LEAKS = {
    "tensor": ("kept.append(torch.empty(1000, device=device))", "allocated is"),
    "segment": ("kept.append(torch.musa.caching_allocator_alloc(3 << 20))", "reserved is"),
    "pinned": ("kept.append(torch.empty(1000, pin_memory=True))", "host_allocations is"),
    "event": ("for _ in range(9): kept.append(torch.musa.Event()); kept[-1].record()", "events grew"),
    "host": ("kept.append(bytearray(b'x') * (4 << 20))", "rss grew"),
    "error": ("torch.empty(3, device=device).view(2)", "leak on musa:"),
}

PROGRAM = """
import os
os.environ.setdefault("MUSA_EMULATOR_DEVICES", "2")
import torch
from tests.soak.soak import Soak
kept = []
def leak(chance, device, echo):
    {leak}
print(*Soak({{"leak": leak}}, patience=0.1).run(seconds=60, rounds=20).violations, sep="\\n")
"""


@pytest.mark.parametrize("kind", sample(LEAKS, 4))
def test_a_leak_is_refused(kind):
    leak, told = LEAKS[kind]
    done = run_python("-c", PROGRAM.format(leak=leak), MUSA_EMULATOR_MEMORY=None)
    assert done.returncode == 0, done.stderr
    assert told in done.stdout, done.stdout


def test_work_that_leaves_nothing_is_accepted():
    done = run_python("-c", PROGRAM.format(leak="torch.ones(9, device=device).sum().item()"))
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


def test_an_unknown_workload_is_named():
    done = run_python("-m", "tests.soak", "--without", "graphs,breakfast")
    assert done.returncode == 2
    assert "no such workload: breakfast" in done.stderr
