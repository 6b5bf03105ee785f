# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Events: recorded in a stream, waited for by host and streams, and timed."""

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
