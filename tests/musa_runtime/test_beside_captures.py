# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A capture and the work of other threads and streams do not disturb each other: frees of memory that other
streams use, page-locked memory, random operators, operators on the host."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.harness import sdk_entries
from tests.harness.subprocesses import run_code

ROUNDS = 10  # captures of each mixture
MODES = ("global", "thread_local", "relaxed")


# ---- frees while a capture begins

FREED = {
    "device memory": lambda: torch.empty(1024, device="musa"),
    "page-locked memory": lambda: torch.empty(1024, pin_memory=True),
}


def use_on(stream, memory):
    """Lets a stream use the memory, so that its free needs an event on the stream."""
    if memory.is_cpu:
        with torch.musa.stream(stream):
            torch.empty(memory.shape, device="musa").copy_(memory, non_blocking=True)
    else:
        memory.record_stream(stream)


@pytest.mark.emulator
@pytest.mark.parametrize("kind", FREED)
def test_a_capture_that_begins_during_a_free_waits_until_the_event_is_recorded(musa, emulator, kind):
    stream, x = musa.Stream(), torch.zeros(4, device="musa")
    musa.synchronize()
    graph = musa.MUSAGraph()
    began, freed = threading.Event(), threading.Event()

    def capture():
        with musa.stream(stream):
            graph.capture_begin(capture_error_mode="relaxed")
            began.set()
            freed.wait()
            x.add_(1)
            graph.capture_end()

    thread = threading.Thread(target=capture)
    began_in_between = []

    def begin_a_capture():
        if not began_in_between:
            thread.start()
            # A capture that does not wait begins within a few milliseconds.
            began_in_between.append(began.wait(0.3))

    memory = FREED[kind]()
    use_on(stream, memory)
    with sdk_entries.entering("musaEventRecord", begin_a_capture):
        del memory
    freed.set()
    thread.join()
    assert began_in_between == [False]
    # Queries the event, which raises if it was recorded into the capture.
    FREED[kind]()
    FREED[kind]()
    graph.replay()
    assert x.cpu().eq(1).all()


@pytest.mark.parametrize("kind", FREED)
def test_memory_freed_in_a_capture_is_reused_after_it(musa, kind):
    stream, x = musa.Stream(), torch.zeros(4, device="musa")
    memory = FREED[kind]()
    use_on(stream, memory)
    musa.synchronize()
    address = memory.data_ptr()
    graph = musa.MUSAGraph()
    with musa.graph(graph, stream=stream):
        x.add_(1)
        del memory
    musa.synchronize()
    kept = []
    for _ in range(100):
        kept.append(FREED[kind]())
        musa.synchronize()
        if kept[-1].data_ptr() == address:
            break
    assert address in {each.data_ptr() for each in kept}


WAITS = {
    # The SDK's free of the segment waits for the whole device.
    "an idle segment": "torch.empty(24 << 20, dtype=torch.uint8, device='musa')",
    "a segment of the blocked stream": """
with musa.stream(blocked):
    torch.empty(24 << 20, dtype=torch.uint8, device="musa")
""",
    "memory that the blocked stream uses": """
torch.empty(24 << 20, dtype=torch.uint8, device="musa").record_stream(blocked)
""",
}


@pytest.mark.once
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("freed", WAITS)
def test_a_capture_begins_while_another_thread_releases_memory_and_waits_for_the_device(freed, mode):
    # The stream is blocked until the thread that captures has begun.
    printed = run_code(
        f"""
import ctypes, threading, torch
from tests.harness.emulator import loaded_sdk

musa = torch.musa
x = torch.zeros(4, device="musa")
blocked, captured = musa.Stream(), musa.Stream()
musa.synchronize()
before = musa.memory_reserved()
opened = threading.Event()
gate = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait())
assert loaded_sdk().musaLaunchHostFunc(ctypes.c_void_p(blocked.musa_stream), gate, None) == 0
{WAITS[freed]}
releasing = threading.Thread(target=musa.empty_cache)
releasing.start()
releasing.join(0.5)
last_resort = threading.Timer(10, opened.set)
last_resort.start()
graph = musa.MUSAGraph()
with musa.stream(captured):
    graph.capture_begin(capture_error_mode={mode!r})
    print("blocked", not opened.is_set())
    opened.set()
    releasing.join()
    x.add_(1)
    graph.capture_end()
    graph.replay()
last_resort.cancel()
musa.synchronize()
musa.empty_cache()
print(x.tolist(), musa.memory_reserved() < before + (24 << 20))
""",
        MUSA_EMULATOR_MODE="async",
    )
    assert printed == "blocked True\n[1.0, 1.0, 1.0, 1.0] True\n"


# ---- random operators

OUTSIDE = "on a stream that is not captured"


def captured_draws(musa, between):
    """Returns the numbers of the first replay of a graph, with `between` called during its capture."""
    torch.manual_seed(1)
    buffer = torch.empty(4, device="musa")
    graph = musa.MUSAGraph()
    with musa.graph(graph, stream=musa.Stream(), capture_error_mode="thread_local"):
        between()
        buffer.uniform_()
        torch.nn.functional.dropout(buffer, 0.5)
        between()
    graph.replay()
    return buffer.cpu()


def draws():
    return {
        "rand": lambda: torch.rand(4, device="musa"),
        "dropout": lambda: torch.nn.functional.dropout(torch.ones(64, device="musa"), 0.5),
        "randperm": lambda: torch.randperm(4, device="musa"),
        "bernoulli": lambda: torch.ones(4, device="musa").bernoulli(0.5),
        "multinomial": lambda: torch.ones(4, device="musa").multinomial(2),
        "normal_": lambda: torch.ones(4, device="musa").normal_(),
        "rrelu": lambda: torch.rrelu(torch.ones(4, device="musa"), training=True),
    }


@pytest.mark.parametrize("operator", draws())
@pytest.mark.parametrize("stream", ["default", "side"])
def test_a_random_operator_beside_a_capture_raises_and_leaves_the_graphs_numbers(musa, operator, stream):
    alone = captured_draws(musa, lambda: None)
    draw = draws()[operator]
    draw()  # imports and workspaces
    other = musa.Stream()

    def on_another_thread():
        current = musa.stream(other) if stream == "side" else contextlib.nullcontext()
        with current, pytest.raises(RuntimeError, match=OUTSIDE):
            draw()

    with ThreadPoolExecutor(1) as pool:
        beside = captured_draws(musa, lambda: pool.submit(on_another_thread).result())
    assert torch.equal(alone, beside)
    draw()


def test_a_random_operator_on_another_stream_of_the_capturing_thread_raises(musa):
    alone = captured_draws(musa, lambda: None)
    other = musa.Stream()

    def draw():
        with musa.stream(other), pytest.raises(RuntimeError, match=OUTSIDE):
            torch.rand(4, device="musa")

    assert torch.equal(alone, captured_draws(musa, draw))


def test_a_generator_of_its_own_draws_beside_a_capture(musa):
    def numbers(generator):
        return torch.rand(4, device="musa", generator=generator).cpu()

    expected = numbers(torch.Generator("musa").manual_seed(3))
    drawn = []

    def on_another_thread():
        drawn.append(numbers(torch.Generator("musa").manual_seed(3)))

    with ThreadPoolExecutor(1) as pool:
        captured_draws(musa, lambda: pool.submit(on_another_thread).result())
    assert len(drawn) == 2
    assert all(torch.equal(expected, each) for each in drawn)


def test_an_unregistered_generator_is_refused_in_a_capture(musa):
    generator = torch.Generator("musa")
    graph = musa.MUSAGraph()
    with pytest.raises(RuntimeError, match="not registered with the graph"), musa.graph(graph):
        torch.rand(4, device="musa", generator=generator)
    torch.rand(4, device="musa", generator=generator)


def test_a_generator_of_another_capture_is_refused(two_devices):
    musa = two_devices
    first, second = musa.MUSAGraph(), musa.MUSAGraph()
    generator = torch.Generator("musa:0")
    first.register_generator_state(generator)
    x = torch.zeros(4, device="musa:0")
    outer, other, joined = musa.Stream(device=0), musa.Stream(device=1), musa.Stream(device=0)
    musa.synchronize(0)
    musa.synchronize(1)
    # Operators on the host are refused because they are on another device than the second graph.
    refused = pytest.raises(
        RuntimeError, match=r"not registered with the graph|the graph is captured on musa:1"
    )
    try:
        with musa.stream(outer):
            first.capture_begin(capture_error_mode="relaxed")
            x.uniform_(generator=generator)
            with musa.stream(other):
                second.capture_begin(capture_error_mode="relaxed")
                joined.wait_stream(other)
                with musa.stream(joined), refused:
                    torch.rand(4, device="musa:0", generator=generator)
                other.wait_stream(joined)
                second.reset()
            first.capture_end()
        first.replay()
        assert x.cpu().ne(0).any()
    finally:
        first.reset()
        second.reset()


# ---- mixtures: other threads work until the captures are done

_SCRATCH = 1 << 12


def frees_of_memory_of_two_streams(stream, _generator):
    blocks = [torch.empty(_SCRATCH, device="musa") for _ in range(8)]
    for block in blocks:
        block.record_stream(stream)


def page_locked_memory(stream, _generator):
    with torch.musa.stream(stream):
        # Of this stream: memory of another one would be reused while the copies are queued.
        device = torch.empty(_SCRATCH, device="musa")
        for value in range(4):
            host = torch.full((_SCRATCH,), float(value), pin_memory=True)
            device.copy_(host, non_blocking=True)
            del host


def random_numbers(stream, generator):
    with torch.musa.stream(stream):
        torch.rand(_SCRATCH, device="musa", generator=generator)


def operators_on_the_host(stream, _generator):
    # No operator that waits for the device: that is refused beside a global capture, as with torch.cuda.
    with torch.musa.stream(stream):
        x = torch.arange(64.0, device="musa")
        torch.cumprod(x, 0)
        torch.trace(torch.diag(x))


def large_blocks(_stream, _generator):
    torch.empty(24 << 20, dtype=torch.uint8, device="musa")
    torch.musa.empty_cache()


def events_and_streams(stream, _generator):
    event = torch.musa.Event()
    event.record(stream)
    torch.musa.current_stream().wait_event(event)


MIXTURE = (
    frees_of_memory_of_two_streams,
    page_locked_memory,
    random_numbers,
    operators_on_the_host,
    large_blocks,
    events_and_streams,
)


def run_beside(works, captures):
    """Runs each work on a thread and stream of its own until `captures()` has returned. Raises the first
    exception of any thread."""
    done, failed = threading.Event(), threading.Event()
    ready = threading.Barrier(len(works) + 1)

    def repeat(work):
        stream, generator = torch.musa.Stream(), torch.Generator("musa")
        ready.wait()
        rounds = 0
        try:
            while not done.is_set() and not failed.is_set():
                work(stream, generator)
                rounds += 1
        except BaseException:
            failed.set()
            raise
        return rounds

    with ThreadPoolExecutor(len(works)) as pool:
        running = [pool.submit(repeat, work) for work in works]
        ready.wait()
        try:
            captures(failed)
        except RuntimeError:
            # The work that broke the capture raises the cause.
            if not failed.wait(1):
                raise
        finally:
            done.set()
        return [each.result() for each in running]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("work", [*MIXTURE, MIXTURE], ids=lambda work: getattr(work, "__name__", "all"))
def test_captures_beside_other_threads(musa, work, mode):
    works = work if isinstance(work, tuple) else (work, work)
    x, stream = torch.zeros(64, device="musa"), musa.Stream()
    total = 0

    def captures(failed):
        nonlocal total
        for _ in range(ROUNDS):
            if failed.is_set():
                return
            graph = musa.MUSAGraph()
            with musa.stream(stream):
                graph.capture_begin(capture_error_mode=mode)
                x.add_(1)
                torch.rand(64, device="musa")
                graph.capture_end()
                graph.replay()
            total += 1

    stream.wait_stream(musa.current_stream())
    run_beside(works, captures)
    stream.synchronize()
    assert x.cpu().eq(total).all()
    assert total == ROUNDS
    torch.empty(7, device="musa")
    torch.empty(7, pin_memory=True)
