# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.profiler on the device: tables, traces, correlation, markers, the legacy profiler."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import warnings
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code, run_forked

IN_PLACE = pytest.mark.host_addressable("rows of torch's own kernels, which compute on the host")
BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
DEVICE_ROWS = ("kernel", "gpu_memcpy", "gpu_memset")
# torch takes its times from the processor's counter and converts them; the SDK uses the system clock.
CLOCK_SKEW_US = 200


class Step:
    """A training step of a small network whose batch comes from pinned host memory."""

    def __init__(self) -> None:
        self.model = torch.nn.Sequential(
            torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
        ).to("musa")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.batch = torch.randn(32, 64, pin_memory=True)
        self.labels = torch.randint(0, 10, (32,))

    def __call__(self) -> float:
        x = self.batch.to("musa", non_blocking=True)
        y = self.labels.to("musa")
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach().cpu().item()


@pytest.fixture
def native(musa):
    """Selects torch's own kernels, which run within their operator; kernels of packs are SDK calls."""
    with musa.ops.prefer("*", "host"):
        yield


@pytest.fixture
def step(musa):
    step = Step()
    step()
    return step


def trace_of(prof, folder: Path) -> list[dict]:
    path = folder / "trace.json"
    prof.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]


def rows(events: list[dict], *categories: str) -> list[dict]:
    return [event for event in events if event.get("cat") in categories and event["ph"] == "X"]


def device_time(averages) -> float:
    return sum(row.self_device_time_total for row in averages)


@IN_PLACE
@pytest.mark.usefixtures("native")
def test_the_table_of_a_training_step_has_device_times(step):
    with profile(activities=BOTH) as prof:
        step()
    averages = prof.key_averages()
    table = averages.table(sort_by="self_device_time_total", row_limit=100)
    assert "Self MUSA" in table and "MUSA total" in table
    by_name = {row.key: row for row in averages}
    assert by_name["native::addmm"].self_device_time_total > 0
    # The operator's time includes its kernel's time.
    assert by_name["aten::addmm"].device_time_total >= by_name["native::addmm"].self_device_time_total > 0
    assert by_name["native::addmm"].count == 2


def test_copies_are_named_by_direction_and_kind_of_memory(step, tmp_path):
    with profile(activities=BOTH) as prof:
        step()
        x = torch.ones(1000, device="musa")
        x.clone()
        torch.empty(10_000, device="musa").copy_(torch.ones(10_000, device="musa"))
    copies = rows(trace_of(prof, tmp_path), "gpu_memcpy")
    names = {copy["name"] for copy in copies}
    assert "Memcpy HtoD (Pinned -> Device)" in names
    assert any(name.startswith("Memcpy DtoH (Device -> ") for name in names)
    assert "Memcpy DtoD (Device -> Device)" in names
    batch = next(copy for copy in copies if copy["args"]["bytes"] == 32 * 64 * 4 and "HtoD" in copy["name"])
    assert batch["args"]["memory bandwidth (GB/s)"] > 0


def test_copies_between_devices_are_shown(two_devices, tmp_path):
    x = torch.ones(1000, device="musa:0")
    with profile(activities=BOTH) as prof:
        x.to("musa:1")
        two_devices.synchronize(1)
    (copy,) = [row for row in rows(trace_of(prof, tmp_path), "gpu_memcpy") if "PtoP" in row["name"]]
    assert (copy["args"]["from device"], copy["args"]["to device"]) == (0, 1)
    assert copy["args"]["bytes"] == 4000


def test_every_device_row_is_linked_to_its_operator(step, tmp_path):
    with profile(activities=BOTH) as prof:
        step()
    events = trace_of(prof, tmp_path)
    operators = {row["args"]["External id"]: row for row in rows(events, "cpu_op")}
    # Libraries of an SDK may enqueue work through the driver's functions.
    made = rows(events, "privateuse1_runtime", "privateuse1_driver")
    calls = {row["args"]["correlation"]: row for row in made}
    work = rows(events, *DEVICE_ROWS)
    assert work
    for row in work:
        operator = operators[row["args"]["External id"]]
        assert row["ts"] >= operator["ts"] - CLOCK_SKEW_US, (row, operator)
        if row["cat"] == "kernel" and "correlation" not in row["args"]:
            assert row["name"].startswith("native::")  # run by the operator itself, without an SDK call
            continue
        call = calls[row["args"]["correlation"]]
        assert call["args"]["External id"] == row["args"]["External id"]
        assert row["ts"] >= call["ts"] - 1, "work begins before the call that enqueues it"
    copy = next(row for row in work if row["name"].startswith("Memcpy HtoD (Pinned"))
    assert calls[copy["args"]["correlation"]]["name"] == "musaMemcpyAsync"
    assert operators[copy["args"]["External id"]]["name"] in ("aten::copy_", "aten::_to_copy", "aten::to")


def test_each_call_has_an_arrow_to_its_work(step, tmp_path):
    with profile(activities=BOTH) as prof:
        step()
    events = trace_of(prof, tmp_path)
    arrows = [event for event in events if event.get("cat") == "ac2g"]
    starts = {event["id"] for event in arrows if event["ph"] == "s"}
    ends = {event["id"] for event in arrows if event["ph"] == "f"}
    assert starts and starts == ends


def test_device_rows_are_within_the_step_and_do_not_overlap_on_a_stream(step, tmp_path):
    with profile(activities=BOTH) as prof, record_function("the step"):
        step()
        torch.musa.synchronize()
    events = trace_of(prof, tmp_path)
    (span,) = [row for row in rows(events, "user_annotation") if row["name"] == "the step"]
    work = sorted(rows(events, *DEVICE_ROWS), key=lambda row: row["ts"])
    assert work
    for row in work:
        assert row["ts"] >= span["ts"] - CLOCK_SKEW_US
        assert row["ts"] + row["dur"] <= span["ts"] + span["dur"] + CLOCK_SKEW_US
    for stream in {(row["pid"], row["tid"]) for row in work}:
        own = [row for row in work if (row["pid"], row["tid"]) == stream]
        for before, after in itertools.pairwise(own):
            assert after["ts"] >= before["ts"] + before["dur"] - 0.002  # the file has three decimals


def test_ranges_span_their_work_on_the_device(step, tmp_path):
    with profile(activities=BOTH) as prof:
        with record_function("outer"):
            step()
        torch.musa.synchronize()
    events = trace_of(prof, tmp_path)
    spans = [row for row in rows(events, "gpu_user_annotation") if row["name"] == "outer"]
    assert spans
    work = rows(events, *DEVICE_ROWS)
    first = min(row["ts"] for row in work)
    last = max(row["ts"] + row["dur"] for row in work)
    assert min(span["ts"] for span in spans) == pytest.approx(first, abs=0.01)
    assert max(span["ts"] + span["dur"] for span in spans) == pytest.approx(last, abs=0.01)


def test_streams_have_their_own_rows(musa, tmp_path):
    needs_torch("2.13", "a name for each row of a stream in the trace")
    side = musa.Stream()
    source = torch.ones(100_000, pin_memory=True)
    with profile(activities=BOTH) as prof:
        source.to("musa", non_blocking=True)
        with musa.stream(side):
            x = source.to("musa", non_blocking=True)
            y = x + 1
        musa.synchronize()
    assert y.cpu().eq(2).all()
    events = trace_of(prof, tmp_path)
    copies = rows(events, "gpu_memcpy")
    streams = {row["tid"] for row in copies}
    assert len(streams) == 2
    names = {
        event["args"]["name"]
        for event in events
        if event.get("name") == "thread_name" and event["pid"] == 0 and event["tid"] in streams
    }
    assert names >= {f"stream {stream}" for stream in streams}
    adds = [row for row in rows(events, "kernel") if row["name"].startswith("native::add")]
    side_stream = max(copies, key=lambda row: row["args"]["correlation"])["tid"]
    assert all(row["tid"] == side_stream for row in adds)


def test_devices_have_their_own_rows(two_devices, tmp_path):
    with profile(activities=BOTH) as prof:
        for index in range(2):
            torch.ones(1000).to(f"musa:{index}")
    events = trace_of(prof, tmp_path)
    assert {row["pid"] for row in rows(events, "gpu_memcpy")} == {0, 1}


def test_work_on_a_device_that_is_not_current_is_recorded_to_its_end(two_devices, tmp_path):
    source = torch.ones(100_000, pin_memory=True)
    with profile(activities=BOTH) as prof:
        moved = source.to("musa:1", non_blocking=True)
    assert [row["pid"] for row in rows(trace_of(prof, tmp_path), "gpu_memcpy")] == [1]
    assert moved.cpu().eq(1).all()


def test_waits_are_described_in_the_rows_of_calls(musa, tmp_path):
    with profile(activities=BOTH) as prof:
        torch.ones(10, device="musa")
        musa.current_stream().synchronize()
        musa.synchronize()
    calls = rows(trace_of(prof, tmp_path), "privateuse1_runtime")
    waits = {
        call["name"]: call["args"]["synchronization"] for call in calls if "synchronization" in call["args"]
    }
    assert waits["musaStreamSynchronize"].startswith("host waits for a stream")
    assert waits["musaDeviceSynchronize"] == "host waits for a device"


def test_calls_that_every_operator_makes_are_left_out(step, tmp_path):
    with profile(activities=BOTH) as prof:
        step()
    names = {row["name"] for row in rows(trace_of(prof, tmp_path), "privateuse1_runtime")}
    assert "musaMemcpyAsync" in names
    assert not names & {"musaGetDevice", "musaStreamQuery", "musaGetLastError"}


@IN_PLACE
@pytest.mark.usefixtures("native")
def test_the_device_can_be_profiled_without_the_cpu(step, tmp_path):
    with profile(activities=[ProfilerActivity.PrivateUse1]) as prof:
        step()
    events = trace_of(prof, tmp_path)
    assert not rows(events, "cpu_op")
    # The names come from the operator registry, because torch does not report operators.
    assert {"native::addmm", "native::relu"} <= {row["name"] for row in rows(events, "kernel")}
    assert device_time(prof.key_averages()) > 0


def test_a_profile_of_the_cpu_alone_has_no_device_rows(step, tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        step()
    events = trace_of(prof, tmp_path)
    assert rows(events, "cpu_op")
    assert not rows(events, *DEVICE_ROWS, "privateuse1_runtime")


def test_work_before_or_between_profiles_is_in_no_profile(musa, tmp_path):
    first, second = (torch.ones(1000 * n) for n in (1, 2))
    between = torch.ones(5000)
    with profile(activities=BOTH) as one:
        first.to("musa")
    between.to("musa")
    with profile(activities=BOTH) as two:
        second.to("musa")
        second.to("musa")
    sizes = [
        [row["args"]["bytes"] for row in rows(trace_of(prof, tmp_path), "gpu_memcpy")] for prof in (one, two)
    ]
    assert sizes == [[4000], [8000, 8000]]


def test_a_schedule_records_its_active_steps(step, tmp_path):
    traces = []

    def keep(prof):
        traces.append(trace_of(prof, tmp_path))

    with profile(
        activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=keep
    ) as prof:
        for _ in range(8):
            step()
            prof.step()
    assert len(traces) == 2
    for events in traces:
        assert len([row for row in rows(events, "user_annotation") if "ProfilerStep" in row["name"]]) == 2
        batches = [row for row in rows(events, "gpu_memcpy") if row["args"]["bytes"] == 32 * 64 * 4]
        assert len([row for row in batches if "HtoD" in row["name"]]) == 2


def test_shapes_stacks_and_memory_of_one_profile(step, tmp_path):
    with profile(activities=BOTH, record_shapes=True, with_stack=True, profile_memory=True) as prof:
        keep = torch.empty(1 << 20, dtype=torch.uint8, device="musa")
        step()
    table = prof.key_averages(group_by_input_shape=True).table(
        sort_by="self_device_memory_usage", row_limit=5
    )
    assert "Self MUSA Mem" in table and "MUSA Mem" in table
    by_name = {row.key: row for row in prof.key_averages()}
    assert by_name["aten::empty"].self_device_memory_usage >= 1 << 20
    addmm = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::addmm"]
    assert [[128], [32, 64], [64, 128]] in [row.input_shapes[:3] for row in addmm]
    callers = [row["name"] for row in rows(trace_of(prof, tmp_path), "python_function")]
    assert any("test_profiler.py" in caller for caller in callers)
    del keep


def test_the_memory_timeline_is_exported(step, tmp_path):
    with profile(activities=BOTH, record_shapes=True, with_stack=True, profile_memory=True) as prof:
        step()
    path = tmp_path / "timeline.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # torch's replacement is for CUDA only
        prof.export_memory_timeline(str(path), device="musa:0")
    times, sizes = json.loads(path.read_text())
    assert len(times) == len(sizes) > 10
    assert max(sum(row) for row in sizes) > 64 * 128 * 4


def test_profiling_starts_before_the_device_is_used(tmp_path):
    code = f"""
    import json, torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        assert not torch.musa.is_initialized()
        torch.ones(1000).to("musa").cpu()
    prof.export_chrome_trace({str(tmp_path / "t.json")!r})
    events = json.load(open({str(tmp_path / "t.json")!r}))["traceEvents"]
    print(sorted(event["name"][:11] for event in events if event.get("cat") == "gpu_memcpy"))
    """
    assert run_code(code) == "['Memcpy DtoH', 'Memcpy HtoD']\n"


@pytest.mark.once
def test_importing_torch_loads_no_profiling_library():
    code = """
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU]):
        torch.ones(3) + 1
    print([name for name in ("libmupti", "libmusa_profiler") if name in open("/proc/self/maps").read()])
    """
    assert run_code(code) == "[]\n"


@pytest.mark.once
def test_an_sdk_without_mupti_works_and_a_profile_names_the_missing_library(tmp_path):
    from musa_runtime import sdk

    home = tmp_path / "sdk"
    # Copies instead of links, because the runtime searches the folder of the library that it loaded.
    shutil.copytree(sdk.resolve().home, home, ignore=shutil.ignore_patterns("libmupti.so*"))
    code = """
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        assert (torch.ones(3, device="musa") + 1).cpu().eq(2).all()
    print("aten::add" in {row.key for row in prof.key_averages()}, torch.musa.profiler.is_available())
    print(torch.musa.profiler.why_unavailable())
    """
    done = run_forked(code.replace("\n    ", "\n"), MUSA_HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True False\n")
    for text in (done.stdout, done.stderr):
        assert "MUPTI" in text and str(home / "lib" / "libmupti.so") in text and "Fix:" in text


def test_the_profiler_is_available(musa):
    assert musa.profiler.is_available()
    assert musa.profiler.why_unavailable() is None


def test_markers_appear_in_the_trace(musa, tmp_path):
    with profile(activities=BOTH) as prof:
        assert musa.mttx.range_push("outer") == 0
        assert musa.mttx.range_push("inner") == 1
        torch.ones(1000).to("musa")
        musa.mttx.mark("here")
        assert musa.mttx.range_pop() == 1
        assert musa.mttx.range_pop() == 0
        with musa.mttx.range("layer {} of {n}", 1, n=2):
            torch.ones(10).to("musa")
        loose = musa.mttx.range_start("loose")
        musa.mttx.range_end(loose)
    events = trace_of(prof, tmp_path)
    marks = {row["name"]: row for row in rows(events, "user_annotation")}
    assert {"outer", "inner", "here", "layer 1 of 2", "loose"} <= set(marks)
    outer, inner = marks["outer"], marks["inner"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.002
    on_device = {row["name"] for row in rows(events, "gpu_user_annotation")}
    assert on_device == {"outer", "inner", "layer 1 of 2"}


def test_markers_work_outside_a_profile_and_refuse_misuse(musa):
    with pytest.raises(RuntimeError, match="no range is open on this thread"):
        musa.mttx.range_pop()
    musa.mttx.range_push("kept open over nothing")
    assert musa.mttx.range_pop() == 0
    loose = musa.mttx.range_start("loose")
    musa.mttx.range_end(loose)
    with pytest.raises(ValueError, match="no such range is open"):
        musa.mttx.range_end(loose)

    @musa.mttx.range("decorated")
    def double(x):
        return 2 * x

    assert double(21) == 42


def test_the_range_is_closed_when_its_block_raises(musa):
    with pytest.raises(KeyError), musa.mttx.range("failing"):
        raise KeyError
    with pytest.raises(RuntimeError, match="no range is open"):
        musa.mttx.range_pop()


@pytest.mark.emulator
def test_start_and_stop_control_a_tool_of_the_sdk(emulator, musa):
    before = [emulator.calls(f"musaProfiler{name}") for name in ("Start", "Stop")]
    with musa.profiler.profile():
        torch.ones(3, device="musa")
    with pytest.raises(KeyError), musa.profiler.profile():
        raise KeyError
    assert [emulator.calls(f"musaProfiler{name}") for name in ("Start", "Stop")] == [n + 2 for n in before]


@pytest.mark.emulator
@IN_PLACE
@pytest.mark.usefixtures("native")
def test_kernels_report_themselves_only_during_a_profile(emulator, step):
    def reports():
        before = emulator.calls("musaStreamGetId")
        step()
        return emulator.calls("musaStreamGetId") - before

    assert reports() == 0
    with profile(activities=BOTH):
        assert reports() > 5
    assert reports() == 0


def test_threads_are_distinguished(musa, tmp_path):
    from threading import Thread

    def copy():
        torch.ones(1000).to("musa")

    with profile(activities=BOTH) as prof:
        copy()
        thread = Thread(target=copy)
        thread.start()
        thread.join()
    copies = [
        row
        for row in rows(trace_of(prof, tmp_path), "privateuse1_runtime")
        if row["name"] == "musaMemcpyAsync"
    ]
    assert len({row["tid"] for row in copies}) == 2
    assert os.getpid() in {row["tid"] for row in copies}, "the main thread's id must be the process id"


def test_the_legacy_profiler_times_operators_by_events(step):
    with torch.autograd.profiler.profile(use_device="musa", use_kineto=False) as prof:
        step()
    averages = {row.key: row for row in prof.key_averages()}
    assert averages["aten::addmm"].device_time_total > 0
    assert "MUSA total" in prof.key_averages().table()


@IN_PLACE
@pytest.mark.usefixtures("native")
def test_the_kernels_of_a_replayed_graph_have_rows(musa, tmp_path):
    x = torch.ones(16, 16, device="musa")
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        y = (x @ x).relu()
    with profile(activities=BOTH) as prof:
        for _ in range(3):
            graph.replay()
        musa.synchronize()
    names = [row["name"] for row in rows(trace_of(prof, tmp_path), "kernel")]
    assert names.count("native::mm") == names.count("native::relu") == 3
    assert y.eq(16).all()


@IN_PLACE
def test_a_kernel_inside_a_kernel_is_counted_once(musa):
    x = torch.rand(64, 64, device="musa")
    with profile(activities=BOTH) as prof:
        torch.linalg.lstsq(x, x)
        torch.linalg.svd(x)
    kernels = sorted(
        (event.time_range.start, event.time_range.end)
        for event in prof.events()
        if event.device_type == torch.autograd.DeviceType.PrivateUse1 and event.name.startswith("native::")
    )
    assert kernels
    assert all(after[0] >= before[1] - 0.002 for before, after in itertools.pairwise(kernels))
