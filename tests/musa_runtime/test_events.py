# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Events: records in a stream, waits of the host and of streams, and times."""

import time

import pytest
import torch


def test_an_event_is_complete_once_its_stream_is(musa):
    event = musa.Event()
    stream = musa.Stream()
    with musa.stream(stream):
        torch.ones(1 << 14, device="musa").mul_(2)
        event.record()
    event.synchronize()
    assert event.query()
    assert stream.query()


def test_an_event_that_was_never_recorded_is_complete(musa):
    event = musa.Event()
    assert event.query()
    event.synchronize()


def test_a_stream_that_waits_sees_everything_before_the_event(musa):
    first, second = musa.Stream(), musa.Stream()
    x = torch.zeros(1 << 14, device="musa")
    event = musa.Event()
    first.wait_stream(musa.current_stream())
    with musa.stream(first):
        for _ in range(10):
            x += 1
        event.record(first)
    with musa.stream(second):
        event.wait(second)
        y = x.clone()
    second.synchronize()
    assert y.cpu().eq(10).all()


def test_an_event_can_be_recorded_again(musa):
    event = musa.Event()
    x = torch.zeros(64, device="musa")
    for step in range(5):
        x += 1
        event.record()
        event.synchronize()
        assert x.cpu().eq(step + 1).all()


def test_elapsed_time_is_in_milliseconds(musa):
    start, end = musa.Event(enable_timing=True), musa.Event(enable_timing=True)
    start.record()
    start.synchronize()
    time.sleep(0.05)
    end.record()
    end.synchronize()
    assert 45 <= start.elapsed_time(end) < 5000
    assert end.elapsed_time(start) <= 0


def test_time_needs_events_that_were_recorded_with_timing(musa):
    timed, untimed = musa.Event(enable_timing=True), musa.Event()
    timed.record()
    untimed.record()
    musa.synchronize()
    with pytest.raises((RuntimeError, ValueError)):
        timed.elapsed_time(untimed)
    with pytest.raises((RuntimeError, ValueError)):
        timed.elapsed_time(musa.Event(enable_timing=True))
    assert torch.ones(1, device="musa").item() == 1


def test_events_of_torch_do_the_same(musa):
    start = torch.Event("musa", enable_timing=True)
    end = torch.Event("musa", enable_timing=True)
    start.record()
    torch.ones(1000, device="musa").add_(1)
    end.record()
    end.synchronize()
    assert start.query()
    assert start.elapsed_time(end) >= 0


def test_an_event_is_released_with_its_object(musa, emulator):
    def make():
        event = musa.Event()
        event.record()
        event.synchronize()

    make()
    before = emulator.footprint(musa.device_count()).events
    for _ in range(20):
        make()
    assert emulator.footprint(musa.device_count()).events <= before + 1


def test_an_event_recorded_on_another_device_is_waited_for_there(two_devices):
    x = torch.zeros(1 << 12, device="musa:1")
    with two_devices.device(1):
        x += 5
        event = two_devices.current_stream(1).record_event()
    event.synchronize()
    assert event.device == torch.device("musa", 1)
    two_devices.current_stream(0).wait_event(event)
    assert x.cpu().eq(5).all()


def test_there_is_no_elapsed_time_between_two_devices(two_devices):
    here = two_devices.Event(enable_timing=True)
    here.record()
    with two_devices.device(1):
        there = two_devices.Event(enable_timing=True)
        there.record()
    two_devices.synchronize(0)
    two_devices.synchronize(1)
    for start, end in ((here, there), (there, here)):
        with pytest.raises((RuntimeError, ValueError)):
            start.elapsed_time(end)
    assert there.elapsed_time(there) == 0
    assert torch.ones(1, device="musa").item() == 1


def test_an_event_stays_on_the_device_of_its_first_record(two_devices):
    event = two_devices.Event()
    event.record()
    with two_devices.device(1), pytest.raises((RuntimeError, ValueError)):
        event.record()
    event.synchronize()


# ---- events and streams behave as torch.cuda's


EVENTS = {
    "event": lambda musa: musa.Event(),
    "timed": lambda musa: musa.Event(enable_timing=True),
    "blocking": lambda musa: musa.Event(blocking=True),
    "timed and blocking": lambda musa: musa.Event(enable_timing=True, blocking=True),
    "interprocess": lambda musa: musa.Event(interprocess=True),
    "interprocess and blocking": lambda musa: musa.Event(interprocess=True, blocking=True),
}


@pytest.mark.parametrize("kind", EVENTS)
def test_a_wait_for_an_event_that_was_never_recorded_returns_at_once(musa, kind):
    event = EVENTS[kind](musa)
    assert isinstance(event, musa.Event)
    assert event.event_id == 0
    assert event.query() is True
    assert event.synchronize() is None
    stream = musa.Stream()
    assert event.wait(stream) is None
    assert stream.wait_event(event) is None
    assert stream.query() is True
    with pytest.raises((RuntimeError, ValueError)):
        event.elapsed_time(EVENTS[kind](musa))


@pytest.mark.parametrize("kind", EVENTS)
def test_a_recorded_event_has_a_handle_a_device_and_ends(musa, kind):
    event, stream = EVENTS[kind](musa), musa.Stream()
    with musa.stream(stream):
        torch.ones(1000, device="musa").add_(1)
    event.record(stream)
    assert event.event_id != 0
    assert event.device == stream.device
    musa.current_stream().wait_event(event)
    event.synchronize()
    assert event.query() is True
    assert "Event" in repr(event)


def test_record_event_makes_an_event_or_records_the_given_one(musa):
    stream = musa.Stream()
    made = stream.record_event()
    assert isinstance(made, musa.Event)
    given = musa.Event(enable_timing=True)
    assert stream.record_event(given) is given
    stream.synchronize()
    assert made.query()
    assert given.query()


def test_an_interprocess_event_has_no_time_and_is_opened_in_another_process_only(musa):
    with pytest.raises(ValueError, match="timed"):
        musa.Event(enable_timing=True, interprocess=True)
    event = musa.Event(interprocess=True)
    assert event.device is None
    handle = event.ipc_handle()
    assert isinstance(handle, bytes)
    assert event.device == torch.device("musa", musa.current_device())
    with pytest.raises(torch.AcceleratorError, match="musaIpcOpenEventHandle"):
        musa.Event.from_ipc_handle(musa.current_device(), handle)


def test_streams_have_an_identity_a_handle_and_a_priority(musa):
    least, greatest = musa.Stream.priority_range()
    assert greatest < least == 0
    stream = musa.Stream(priority=greatest)
    assert stream.priority == greatest
    assert stream == musa.Stream(stream_id=stream.stream_id, device_index=0, device_type=stream.device_type)
    assert stream != musa.default_stream()
    assert stream != object()
    assert len({stream, musa.default_stream(), stream}) == 2
    assert stream.musa_stream != 0
    assert musa.default_stream().musa_stream == 0
    external = musa.ExternalStream(stream.musa_stream)
    assert external.musa_stream == stream.musa_stream
    assert external.query() is True
    assert external.synchronize() is None
    assert external.wait_stream(stream) is None
    assert f"{stream.musa_stream:#x}" in repr(stream)
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        musa.Stream(device="cpu")
