# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The history of memory: the recorded events, their stacks, and torch's memory_viz."""

import base64
import gc
import json
import pickle
import re
import subprocess
import sys
import threading
import time

import pytest
import torch
from torch.cuda import _memory_viz

from tests.harness.emulator import MEMORY_ALLOCATION
from tests.harness.subprocesses import run_code

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def memory(musa):
    """torch.musa.memory with no history and an empty cache; recording ends with the test."""
    gc.collect()
    musa.synchronize()
    musa.empty_cache()
    yield musa.memory
    musa.memory._record_memory_history(enabled=None)
    musa.memory._set_memory_metadata("")


def allocate(size, device="musa"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def allocate_here(size):
    return allocate(size)


def events(memory, device=0):
    return memory._snapshot()["device_traces"][device]


def actions(memory, device=0):
    return [entry["action"] for entry in events(memory, device)]


def names(frames):
    return [frame["name"] for frame in frames]


def block_at(snapshot, address):
    (block,) = [b for s in snapshot["segments"] for b in s["blocks"] if b["address"] == address]
    return block


def test_each_event_is_recorded_in_its_order(memory, musa):
    memory._record_memory_history()
    tensor = allocate(30 * MIB + 5)
    address = tensor.data_ptr()
    del tensor
    musa.empty_cache()
    recorded = events(memory)
    assert [entry["action"] for entry in recorded] == [
        *("segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "snapshot")
    ]
    assert {entry["addr"] for entry in recorded[:-1]} == {address}
    assert [entry["size"] for entry in recorded[:5]] == [32 * MIB, *[30 * MIB + 5] * 3, 32 * MIB]
    assert all(entry["pool_id"] == (0, 0) for entry in recorded)
    times = [entry["time_us"] for entry in recorded]
    assert times == sorted(times)
    assert recorded[-1]["size"] == musa.memory_stats()["active_bytes.all.current"]


def test_times_are_microseconds_since_1970(memory):
    before = time.time_ns() // 1000
    memory._record_memory_history()
    allocate(KIB)
    time.sleep(0.05)  # the clock is calibrated over the time between start and snapshot
    (event,) = [entry for entry in events(memory) if entry["action"] == "alloc"]
    assert before - 20_000 <= event["time_us"] <= time.time_ns() // 1000 + 20_000


def test_the_stream_of_an_event_is_named(memory, musa):
    stream = musa.Stream()
    memory._record_memory_history()
    with musa.stream(stream):
        allocate(3 * MIB)
    assert {e["stream"] for e in events(memory) if e["action"] != "snapshot"} == {stream.musa_stream}


def test_memory_used_on_another_stream_is_freed_later(memory, musa):
    side = musa.Stream()
    memory._record_memory_history()
    tensor = allocate(3 * MIB)
    tensor.record_stream(side)
    address = tensor.data_ptr()
    del tensor
    assert "free_requested" in actions(memory) and "free_completed" not in actions(memory)
    assert block_at(memory._snapshot(), address)["state"] == "active_awaiting_free"
    assert names(block_at(memory._snapshot(), address)["frames"])
    musa.synchronize()
    allocate(3 * MIB)
    assert "free_completed" in actions(memory)


def test_only_the_newest_events_are_kept(memory):
    memory._record_memory_history(max_entries=10)
    for size in range(1, 100):
        allocate(size)
    recorded = events(memory)
    assert len(recorded) == 10
    assert recorded[-1]["action"] == "snapshot" and recorded[-2]["size"] == 99
    sizes = [entry["size"] for entry in recorded[:-1]]
    assert sizes == sorted(sizes)
    memory._record_memory_history(max_entries=3)
    assert [entry["size"] for entry in events(memory)][:2] == [99, recorded[-1]["size"]]
    memory._record_memory_history(max_entries=0)
    allocate(KIB)
    assert events(memory) == []


def test_history_is_kept_until_it_is_cleared_or_recording_ends(memory):
    memory._record_memory_history()
    allocate(KIB)
    memory._record_memory_history()
    assert "alloc" in actions(memory)
    memory._record_memory_history(clear_history=True)
    assert actions(memory) == ["snapshot"]
    allocate(KIB)
    memory._record_memory_history(enabled=None)
    allocate(KIB)
    assert actions(memory) == []


def test_actions_can_be_left_out(memory):
    memory._record_memory_history(skip_actions=["free_requested", "snapshot"])
    allocate(KIB)
    assert set(actions(memory)) - {"segment_alloc"} == {"alloc", "free_completed"}


def test_one_device_can_be_recorded_alone(memory, two_devices):
    memory._record_memory_history(device=1)
    allocate(KIB, "musa:0")
    allocate(KIB, "musa:1")
    assert actions(memory, 0) == []
    assert "alloc" in actions(memory, 1)
    memory._record_memory_history()
    tensor = allocate(KIB, "musa:0")
    snapshot = memory._snapshot(1)
    assert snapshot["device_traces"][0] == [] and snapshot["device_traces"][1]
    assert {segment["device"] for segment in snapshot["segments"]} <= {1}
    assert {segment["device"] for segment in memory._snapshot()["segments"]} >= {0}
    del tensor


@pytest.mark.parametrize(
    ("context", "alloc", "free", "block"),
    [(None, 0, 0, 0), ("state", 0, 0, 1), ("alloc", 1, 0, 1), ("all", 1, 1, 1)],
)
def test_the_context_selects_the_recorded_stacks(memory, context, alloc, free, block):
    memory._record_memory_history(context=context, stacks="python")
    first, second = allocate_here(MIB), allocate_here(MIB)
    del second
    snapshot = memory._snapshot()
    found = {entry["action"]: entry["frames"] for entry in snapshot["device_traces"][0]}
    assert bool(found["alloc"]) == bool(alloc)
    assert bool(found["free_requested"]) == bool(free)
    assert bool(block_at(snapshot, first.data_ptr())["frames"]) == bool(block)


def test_state_keeps_stacks_of_live_memory_and_no_events(memory):
    memory._record_memory_history(enabled="state", stacks="python")
    tensor = allocate_here(3 * MIB)
    snapshot = memory._snapshot()
    assert snapshot["device_traces"][0] == []
    assert "allocate_here" in names(block_at(snapshot, tensor.data_ptr())["frames"])
    (segment,) = [s for s in snapshot["segments"] if s["address"] == tensor.data_ptr()]
    assert "allocate_here" in names(segment["frames"])


def test_pages_of_an_expandable_segment_are_events_with_the_stack_of_the_mapping(memory, musa):
    memory._set_allocator_settings("expandable_segments:True")
    try:
        memory._record_memory_history(stacks="python")
        tensor = allocate_here(30 * MIB)
        (segment,) = [s for s in memory._snapshot()["segments"] if s["address"] == tensor.data_ptr()]
        assert segment["is_expandable"] and "allocate_here" in names(segment["frames"])
        del tensor
        musa.empty_cache()
        sizes = {e["action"]: e["size"] for e in events(memory) if e["action"].startswith("segment_")}
        assert set(sizes) == {"segment_map", "segment_unmap"}
        assert sizes["segment_map"] == sizes["segment_unmap"] == segment["total_size"]
    finally:
        memory._set_allocator_settings("expandable_segments:False")


def test_python_frames_name_the_lines(memory):
    memory._record_memory_history(stacks="python")
    tensor = allocate_here(MIB)
    frames = memory._allocation_traceback(tensor.untyped_storage().data_ptr())
    assert names(frames)[:3] == [
        *("allocate", "allocate_here", "test_python_frames_name_the_lines"),
    ]
    assert frames[0]["filename"] == __file__
    with open(__file__, encoding="utf-8") as file:
        assert "torch.empty(size" in file.readlines()[frames[0]["line"] - 1]
    del tensor
    assert all("::" not in name for name in names(frames))


def test_cpp_frames_name_the_functions(memory):
    memory._record_memory_history(stacks="all")
    tensor = allocate_here(MIB)
    found = names(memory._allocation_traceback(tensor.data_ptr()))
    assert any("DeviceCachingAllocator::malloc" in name for name in found)
    assert any("at::_ops::empty_memory_format" in name for name in found)
    assert "allocate_here" in found


def test_stacks_of_live_memory_outlive_the_recording(memory):
    memory._record_memory_history(stacks="python")
    tensor = allocate_here(MIB)
    address = tensor.data_ptr()
    memory._record_memory_history(enabled=None)
    assert "allocate_here" in names(memory._allocation_traceback(address))
    del tensor
    assert memory._allocation_traceback(address) is None
    # The address is reused; the new block must not have the old block's stack.
    tensor = allocate(MIB)
    assert tensor.data_ptr() == address
    assert block_at(memory._snapshot(), address)["frames"] == []


def test_memory_without_a_record_has_no_traceback(memory):
    tensor = allocate(MIB)
    memory._record_memory_history()
    assert memory._allocation_traceback(tensor.data_ptr()) is None
    assert memory._allocation_traceback(12345) is None


def test_backward_is_recorded(memory):
    weight = torch.ones(64, 64, device="musa", requires_grad=True)
    memory._record_memory_history(stacks="python")
    (weight @ weight).sum().backward()
    address = weight.grad.untyped_storage().data_ptr()
    assert address in {entry["addr"] for entry in events(memory) if entry["action"] == "alloc"}


def test_threads_record_concurrently(memory):
    memory._record_memory_history(stacks="python")

    # A fixed amount of work, because each snapshot copies the whole history while the threads add to it.
    def work():
        for _ in range(200):
            allocate(KIB)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        memory._snapshot()
    for thread in threads:
        thread.join()
    found = [names(entry["frames"])[-1] for entry in events(memory) if entry["action"] == "alloc"]
    assert len(found) == 4 * 200 and set(found) <= {"_bootstrap", "work"}


def test_exhausted_memory_is_an_event(memory, musa, emulator):
    memory._record_memory_history(stacks="python")
    free = musa.mem_get_info()[0]
    emulator.fail_nth("musaMalloc", 1, MEMORY_ALLOCATION)
    for n in range(2, 5):
        emulator.fail_nth("musaMalloc", n, MEMORY_ALLOCATION)
    with pytest.raises(torch.OutOfMemoryError):
        allocate_here(60 * MIB)
    (event,) = [entry for entry in events(memory) if entry["action"] == "oom"]
    assert event["size"] == 60 * MIB and event["device_free"] == free
    assert "addr" not in event
    assert "allocate_here" in names(event["frames"])


def test_threads_can_annotate_their_events(memory):
    memory._record_memory_history(context=None)
    assert memory._get_memory_metadata() == ""
    memory._set_memory_metadata("warm-up")
    assert memory._get_memory_metadata() == "warm-up"
    allocate(KIB)
    thread = threading.Thread(target=allocate, args=(2 * KIB,))
    thread.start()
    thread.join()
    memory._set_memory_metadata("")
    allocate(3 * KIB)
    found = {entry["size"]: entry["user_metadata"] for entry in events(memory) if entry["action"] == "alloc"}
    assert found == {KIB: "warm-up", 2 * KIB: "", 3 * KIB: ""}


def test_ranges_of_the_profiler_are_annotations(memory):
    memory._record_memory_history(context=None, global_record_annotations=True, clear_history=True)
    with torch.profiler.record_function("forward"):
        allocate(KIB)
    memory._record_memory_history(context=None)
    with torch.profiler.record_function("not recorded"):
        allocate(KIB)
    found = memory._snapshot()["external_annotations"]
    assert [(entry["name"], entry["stage"]) for entry in found] == [("forward", "START"), ("forward", "END")]
    assert all(entry["device"] == 0 for entry in found)


def test_compilations_are_marked(memory):
    from torch._dynamo.callback import CallbackArgs, CallbackTrigger, callback_handler

    memory._record_memory_history(context=None, compile_context=True)
    arguments = CallbackArgs(CallbackTrigger.DYNAMO, "0/0")
    callback_handler.run_start_callbacks(arguments)
    allocate(KIB)
    callback_handler.run_end_callbacks(arguments)
    allocate(2 * KIB)
    found = {e["size"]: e["compile_context"] for e in events(memory) if e["action"] == "alloc"}
    assert found == {KIB: "0/0", 2 * KIB: ""}
    memory._record_memory_history(enabled=None)
    assert not callback_handler.start_callbacks and not callback_handler.end_callbacks


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"enabled": True}, "enabled"),
        ({"enabled": "history"}, "enabled"),
        ({"context": "python"}, "context"),
        ({"stacks": "cpp"}, "stacks"),
        ({"max_entries": -1}, "max_entries"),
        ({"skip_actions": ["malloc"]}, "skip_actions"),
    ],
)
def test_a_bad_argument_is_refused_by_name(memory, arguments, name):
    with pytest.raises(ValueError, match=name):
        memory._record_memory_history(**arguments)
    allocate(KIB)
    assert actions(memory) == []


# ---- observers


def test_an_observer_is_notified_of_exhausted_memory_and_can_take_a_snapshot():
    code = """
    import torch
    heard = []
    def observer(device, nbytes, total, free):
        actions = [e["action"] for e in torch.musa.memory._snapshot()["device_traces"][device]]
        heard.append((device, nbytes, total == torch.musa.mem_get_info()[1], 0 < free <= total, actions[-2]))
        raise ValueError("from the observer")
    torch.musa.memory._record_memory_history()
    torch.musa.memory._attach_out_of_memory_observer(observer)
    size = 2 * torch.musa.mem_get_info()[1]
    try:
        torch.empty(size, dtype=torch.uint8, device="musa")
    except torch.OutOfMemoryError:
        print("out of memory", heard == [(0, size, True, True, "oom")], heard)
    """
    assert run_code(code).startswith("out of memory True")


def test_an_observer_must_be_a_function(memory):
    with pytest.raises(TypeError, match="function"):
        memory._attach_out_of_memory_observer("print")


# ---- the end of the process


def test_a_process_can_exit_while_it_records():
    code = """
    import torch
    torch.musa.memory._record_memory_history()
    kept = [torch.empty(1000, device="musa") for _ in range(10)]
    side = torch.musa.Stream()
    kept[0].record_stream(side)
    print("end")
    """
    assert run_code(code) == "end\n"


# ---- the format


@pytest.fixture
def dump(memory, musa, tmp_path):
    """The file of a snapshot of a training step on two streams."""
    memory._record_memory_history()
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).to(
        "musa"
    )
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(256, 64, device="musa")).square().sum().backward()
        optimizer.step()
    with musa.stream(musa.Stream()):
        other = allocate(25 * MIB)
    path = tmp_path / "snapshot.pickle"
    memory._dump_snapshot(str(path))
    yield path
    del other


def test_a_snapshot_is_plain_data(dump):
    def plain(value):
        if isinstance(value, dict):
            return all(isinstance(key, str) and plain(inner) for key, inner in value.items())
        if isinstance(value, (list, tuple)):
            return all(map(plain, value))
        return isinstance(value, (int, str, float, bool))

    snapshot = pickle.loads(dump.read_bytes())
    assert plain(snapshot)
    assert set(snapshot) == {"segments", "device_traces", "allocator_settings", "external_annotations"}
    for segment in snapshot["segments"]:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"]
        assert segment["segment_type"] in ("small", "large")
    assert snapshot["allocator_settings"]["expandable_segments"] is False


def test_memory_viz_summarizes_the_snapshot(dump, musa):
    snapshot = pickle.loads(dump.read_bytes())
    text = _memory_viz.segsum(snapshot)
    # memory_viz raises if the blocks do not fill their segments.
    assert f"segments: {len(snapshot['segments'])}" in text
    reserved = sum(musa.memory_reserved(device) for device in range(musa.device_count()))
    assert f"total_reserved: {_memory_viz.Bytes(reserved)}" in text


def test_memory_viz_prints_the_trace(dump):
    text = _memory_viz.trace(pickle.loads(dump.read_bytes()))
    assert "cudaMalloc" in text and "25.0MiB" in text and "free completed" in text


def test_memory_viz_summarizes_by_line(dump):
    snapshot = pickle.loads(dump.read_bytes())
    for view in (_memory_viz.segments, _memory_viz.memory):
        lines = view(snapshot, format_flamegraph=lambda lines: lines).splitlines()
        total = sum(int(line.rsplit(" ", 1)[1]) for line in lines)
        assert total == sum(segment["total_size"] for segment in snapshot["segments"])
        assert any("test_memory_history.py" in line and "active_allocated" in line for line in lines)


def test_saved_usage_is_memory_vizs(memory, monkeypatch, tmp_path):
    monkeypatch.setattr(_memory_viz, "segments", lambda snapshot: f"segments {len(snapshot['segments'])}")
    monkeypatch.setattr(_memory_viz, "memory", lambda snapshot: f"memory {len(snapshot['segments'])}")
    tensor = allocate(MIB)
    count = len(memory._snapshot()["segments"])
    memory._save_segment_usage(str(tmp_path / "segments.svg"))
    memory._save_memory_usage(str(tmp_path / "memory.svg"), snapshot={"segments": []})
    assert (tmp_path / "segments.svg").read_text() == f"segments {count}"
    assert (tmp_path / "memory.svg").read_text() == "memory 0"
    del tensor


@pytest.mark.parametrize("arguments", [["trace_plot"], ["trace_plot", "--segments"], ["segment_plot"]])
def test_memory_viz_makes_a_page_of_the_file(dump, tmp_path, arguments):
    page = tmp_path / "page.html"
    command = [sys.executable, _memory_viz.__file__, *arguments, str(dump), "--output", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (files,) = re.findall(r"local_files = (\[.*\])", page.read_text())
    held = base64.b64decode(json.loads(files)[0]["base64"])
    assert pickle.loads(held)["device_traces"] == pickle.loads(dump.read_bytes())["device_traces"]


def test_frames_can_be_augmented(memory):
    memory._record_memory_history(stacks="python")
    tensor = allocate_here(MIB)
    snapshot = memory._snapshot(augment_with_fx_traces=True)
    assert "allocate_here" in names(block_at(snapshot, tensor.data_ptr())["frames"])


def test_segments_of_one_pool(memory, musa):
    tensor = allocate(MIB)
    everything = musa.memory_snapshot()
    assert musa.memory_snapshot((0, 0)) == everything
    assert musa.memory_snapshot((0, 999_999)) == []
    del tensor


def test_a_snapshot_without_traces_is_not_recorded(memory, musa):
    memory._record_memory_history()
    musa.memory_snapshot(include_traces=False)
    assert actions(memory) == ["snapshot"]
    musa.memory_snapshot()
    assert actions(memory) == ["snapshot"] * 3
