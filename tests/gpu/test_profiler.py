# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmupti over CUPTI: torch.profiler on musa, torch.cuda's profiler beside it, and a program without torch.

tests/musa_runtime/test_profiler.py tests what rows promise on every SDK, and runs on the GPU too.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
CUDA = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
PROGRAM = Path(__file__).parent / "activity_program.py"
# torch stamps operators with the processor's counter and converts; CUPTI's clock is the system's here.
CLOCK_SKEW_US = 200


@pytest.fixture(autouse=True)
def profiler() -> None:
    """The device's activity can be profiled: its absence is a failure here, and no reason to skip."""
    assert torch.musa.profiler.why_unavailable() is None


def trace_of(prof: profile, folder: Path) -> list[dict]:
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def rows(events: list[dict], *categories: str) -> list[dict]:
    return [event for event in events if event.get("cat") in categories and event["ph"] == "X"]


def calls_of(events: list[dict]) -> dict[int, dict]:
    """Calls of the runtime and the driver, by correlation id."""
    return {
        row["args"]["correlation"]: row for row in rows(events, "privateuse1_runtime", "privateuse1_driver")
    }


def test_kernels_have_readable_names_times_and_the_calls_that_launched_them(tmp_path: Path) -> None:
    x = torch.ones(1 << 20, device="musa").add_(1)
    torch.musa.synchronize()
    with profile(activities=BOTH) as prof:
        for _ in range(5):
            x.add_(1)
        torch.musa.synchronize()
    events = trace_of(prof, tmp_path)
    kernels, calls = rows(events, "kernel"), calls_of(events)
    operators = {row["args"]["External id"]: row["name"] for row in rows(events, "cpu_op")}
    assert len(kernels) == 5 and len({row["args"]["correlation"] for row in kernels}) == 5
    for kernel in kernels:
        assert kernel["dur"] > 0
        assert kernel["name"] and not kernel["name"].startswith("_Z")
        call = calls[kernel["args"]["correlation"]]
        assert call["name"] == "musaLaunchKernel" and kernel["ts"] >= call["ts"] - 1
        assert operators[kernel["args"]["External id"]] == "aten::add_"
        assert kernel["args"]["grid"][0] >= 1 and kernel["args"]["block"][0] >= 32
    assert next(row for row in prof.key_averages() if row.key == "aten::add_").device_time_total > 0


def test_copies_have_bytes_directions_and_kinds_of_memory(tmp_path: Path) -> None:
    pinned = torch.ones(1 << 20, pin_memory=True)
    with profile(activities=BOTH) as prof:
        x = pinned.to("musa", non_blocking=True)
        y = x.clone()
        y.cpu()
    events = trace_of(prof, tmp_path)
    copies = {row["name"]: row for row in rows(events, "gpu_memcpy")}
    up = copies["Memcpy HtoD (Pinned -> Device)"]
    down = next(row for name, row in copies.items() if name.startswith("Memcpy DtoH (Device -> "))
    for copy in (up, down):
        assert copy["args"]["bytes"] == 4 << 20 and copy["dur"] > 0
        assert calls_of(events)[copy["args"]["correlation"]]["name"].startswith("musaMemcpy")


def test_the_device_has_rows_of_its_own_within_the_step_that_it_belongs_to(tmp_path: Path) -> None:
    x = torch.rand(1 << 20, device="musa")
    with profile(activities=BOTH) as prof, record_function("the step"):
        (x * 2).sum().item()
    events = trace_of(prof, tmp_path)
    names = {
        (event["pid"], event["args"].get("name"))
        for event in events
        if event.get("name") == "process_name" and event["ph"] == "M"
    }
    work = rows(events, "kernel", "gpu_memcpy", "gpu_memset")
    assert len(work) >= 2 and {row["pid"] for row in work} == {0}
    assert (0, "musa:0") in names or (0, "python") in names  # torch's own profiler names the same row
    (span,) = [row for row in rows(events, "user_annotation") if row["name"] == "the step"]
    for row in work:
        assert row["ts"] >= span["ts"] - CLOCK_SKEW_US
        assert row["ts"] + row["dur"] <= span["ts"] + span["dur"] + CLOCK_SKEW_US
    (on_device,) = [row for row in rows(events, "gpu_user_annotation") if row["name"] == "the step"]
    assert on_device["ts"] == pytest.approx(min(row["ts"] for row in work), abs=0.01)


def test_the_kernels_of_a_replayed_graph_carry_the_launch_of_the_graph(tmp_path: Path) -> None:
    x = torch.ones(1 << 16, device="musa")
    y = x.mul(2)
    torch.musa.synchronize()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        y.copy_(x).add_(1)
        y.mul_(2)
    with profile(activities=BOTH) as prof:
        for _ in range(3):
            graph.replay()
        torch.musa.synchronize()
    events = trace_of(prof, tmp_path)
    calls = calls_of(events)
    launches = [number for number, call in calls.items() if call["name"] == "musaGraphLaunch"]
    kernels = [row["args"]["correlation"] for row in rows(events, "kernel")]
    assert len(launches) == 3 and set(kernels) == set(launches)
    assert all(kernels.count(number) >= 2 for number in launches)


def test_every_call_in_a_trace_has_a_name_of_the_sdk(tmp_path: Path) -> None:
    x = torch.rand(256, 256, device="musa")
    with profile(activities=BOTH) as prof:
        (x @ x).relu().sort().values.cpu()
        torch.musa.synchronize()
    events = trace_of(prof, tmp_path)
    names = {row["name"] for row in rows(events, "privateuse1_runtime")}
    header = Path(os.environ["MUSA_HOME"], "include", "mupti_runtime_cbid.h").read_text()
    assert {"musaMemcpyAsync", "musaDeviceSynchronize"} <= names
    assert names <= set(re.findall(r"_CBID_(musa\w+) =", header))
    work = {row["args"]["correlation"] for row in rows(events, "kernel", "gpu_memcpy", "gpu_memset")}
    assert work <= set(calls_of(events))


def test_profiles_of_musa_and_of_torch_cuda_take_turns(tmp_path: Path) -> None:
    """CUPTI has one pair of callbacks and one clock in a process: each profile sets both again."""
    x, y = (torch.rand(1 << 16, device=device) for device in ("musa", "cuda"))
    for _ in range(3):
        with profile(activities=BOTH) as ours:
            for _ in range(3):
                x.mul_(2)
            torch.musa.synchronize()
        with profile(activities=CUDA) as theirs:
            for _ in range(3):
                y.mul_(2)
            torch.cuda.synchronize()
        for prof, category in ((ours, "privateuse1_runtime"), (theirs, "cuda_runtime")):
            events = trace_of(prof, tmp_path)
            kernels = rows(events, "kernel")
            assert len(kernels) == 3 and all(row["dur"] > 0 for row in kernels)
            calls = rows(events, category)
            begin, end = min(row["ts"] for row in calls), max(row["ts"] + row["dur"] for row in calls)
            assert all(begin - CLOCK_SKEW_US <= row["ts"] <= end + CLOCK_SKEW_US for row in kernels)


def test_a_schedule_with_warm_up_steps_returns_every_buffer_to_its_owner(tmp_path: Path) -> None:
    """torch's own profiler gives CUPTI buffers during the warm-up; 33 that are not returned end a profile."""
    x = torch.rand(1 << 12, device="musa")
    counts = []

    def keep(prof: profile) -> None:
        counts.append(len(rows(trace_of(prof, tmp_path), "kernel")))

    plan = schedule(wait=0, warmup=1, active=1, repeat=40)
    with profile(activities=BOTH, schedule=plan, on_trace_ready=keep) as prof:
        for _ in range(80):
            x.mul_(1)
            torch.musa.synchronize()
            prof.step()
    assert counts == [1] * 40
    with profile(activities=CUDA) as theirs:
        torch.ones(8, device="cuda").mul_(2)
        torch.cuda.synchronize()
    assert rows(trace_of(theirs, tmp_path), "kernel")


def test_a_program_without_torch_records_its_activity() -> None:
    done = run_python(str(PROGRAM))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    header = Path(os.environ["MUSA_HOME"], "include", "mupti_runtime_cbid.h").read_text()
    names = {int(number): name for name, number in re.findall(r"_CBID_(musa\w+) = (\d+)", header)}
    calls = {names[call["call"]]: call for call in found["calls"]}
    assert {"musaMalloc", "musaMemset", "musaMemcpy", "musaDeviceSynchronize", "musaFree"} <= set(calls)
    assert {call["thread"] for call in found["calls"]} == {found["thread"]}
    assert found["buffers"] == 0, "a buffer was kept"
    for listed in (found["calls"], found["copies"], found["fills"], found["waits"]):
        assert listed
        for row in listed:
            assert found["begin"] <= row["start"] <= row["end"] <= found["end"]
    (copy,), (fill,) = found["copies"], found["fills"]
    assert (copy["direction"], copy["source"], copy["bytes"]) == (2, 3, 1 << 20)  # from the device's memory
    assert (fill["value"], fill["bytes"], fill["memory"]) == (7, 1 << 20, 3)
    for row, call in ((copy, "musaMemcpy"), (fill, "musaMemset")):
        assert (row["device"], row["context"], row["correlation"]) == (0, 1, calls[call]["correlation"])
    (wait,) = [row for row in found["waits"] if row["type"] == 4]
    assert wait["correlation"] == calls["musaDeviceSynchronize"]["correlation"]
    assert (wait["context"], wait["stream"]) == (1, 0xFFFFFFFF)
    ids = {row["correlation"]: (row["stack"], row["id"]) for row in found["external"]}
    assert all(ids[calls[name]["correlation"]] == (3, 42) for name in ("musaMalloc", "musaMemcpy"))
    assert found["refused"] == 39  # MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
    work = ("musaMalloc", "musaMemset", "musaMemcpy", "musaDeviceSynchronize", "musaFree")
    assert [name for name in found["seen"] if name[1:] in work] == [
        f"{site}{name}" for name in work for site in "+-"
    ]
