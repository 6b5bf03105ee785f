# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa's streams and events."""

import itertools

import pytest
import torch

from musa_runtime.errors import InvalidDeviceError


@pytest.fixture(autouse=True)
def default_stream_again():
    yield
    if torch.musa.is_initialized():
        torch.musa.set_stream(torch.musa.default_stream())


def test_streams_and_events_are_torchs_own_kind(musa):
    assert isinstance(musa.Stream(), torch.Stream) and isinstance(musa.Event(), torch.Event)
    assert isinstance(musa.current_stream(), musa.Stream)


def test_the_current_stream_is_the_default_one_at_first(musa):
    assert musa.current_stream() == musa.default_stream()
    assert hash(musa.current_stream()) == hash(musa.default_stream())
    assert musa.current_stream() == torch.accelerator.current_stream()
    assert musa.current_stream() != musa.Stream()


def test_the_stream_context_selects_and_restores(musa):
    stream = musa.Stream()
    with musa.stream(stream):
        assert musa.current_stream() == stream
        with musa.stream(None):
            assert musa.current_stream() == stream
    assert musa.current_stream() == musa.default_stream()
    with stream:
        assert musa.current_stream() == stream
    assert musa.current_stream() == musa.default_stream()


def test_a_stream_of_another_device_brings_its_device(two_devices):
    musa = two_devices
    stream = musa.Stream(1)
    assert stream.device == torch.device("musa:1")
    with musa.stream(stream):
        assert musa.current_device() == 1 and musa.current_stream() == stream
    assert musa.current_device() == 0
    assert musa.current_stream(1) == musa.default_stream(1)
    assert musa.current_stream() == musa.default_stream()


def _current(musa):
    """The current device, and the current stream of each device."""
    return musa.current_device(), *(musa.current_stream(index) for index in range(2))


CONTEXTS = {
    "torch.musa.stream": lambda musa, stream: musa.stream(stream),
    "a stream": lambda musa, stream: stream,
    "a stream of torch": lambda musa, stream: torch.Stream(
        stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
    ),
}


@pytest.mark.parametrize("outer", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("inner", CONTEXTS.values(), ids=CONTEXTS)
def test_contexts_restore_the_device_and_the_streams_of_both_devices(two_devices, outer, inner):
    """In each order of devices, whichever device and streams are current before, also after an exception."""
    musa = two_devices
    streams = [musa.Stream(index) for index in (0, 1)]
    own = [musa.Stream(index) for index in (0, 1)]  # current at first
    for device, (first, second) in itertools.product((0, 1), itertools.product((0, 1), repeat=2)):
        with musa.device(device):
            for current in own:
                musa.set_stream(current)
            musa.set_device(device)
            at_first = _current(musa)
            assert at_first == (device, *own)
            with outer(musa, streams[first]):
                between = _current(musa)
                assert between[0] == first and between[1 + first] == streams[first]
                assert between[2 - first] == own[1 - first]
                with pytest.raises(ZeroDivisionError), inner(musa, streams[second]):
                    within = _current(musa)
                    assert within[0] == second and within[1 + second] == streams[second]
                    raise ZeroDivisionError
                assert _current(musa) == between
            assert _current(musa) == at_first
    for index in (1, 0):
        musa.set_stream(musa.default_stream(index))


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_a_context_can_be_entered_again(two_devices, context):
    musa = two_devices
    entered = context(musa, musa.Stream(1))
    before = _current(musa)
    for _ in range(2):
        with entered:
            assert musa.current_device() == 1
        assert _current(musa) == before


def test_set_stream_refuses_another_devices_stream_type(musa):
    class Other:
        device = torch.device("cpu")

    with pytest.raises(InvalidDeviceError, match="cpu"):
        musa.set_stream(Other())
    musa.set_stream(None)


def test_work_on_two_streams_is_ordered_by_events(musa):
    first, second = musa.Stream(), musa.Stream()
    with musa.stream(first):
        x = torch.full((1000,), 2.0, device="musa")
        done = first.record_event()
    assert isinstance(done, musa.Event)
    second.wait_event(done)
    with musa.stream(second):
        y = x * 3
    third = musa.Stream()
    third.wait_stream(second)
    third.synchronize()
    assert third.query() and second.query() and done.query()
    assert y.cpu().unique().tolist() == [6.0]


def test_event_times(musa):
    start, end = musa.Event(enable_timing=True), musa.Event(enable_timing=True)
    start.record()
    torch.randn(256, 256, device="musa") @ torch.randn(256, 256, device="musa")
    end.record()
    end.synchronize()
    assert 0 <= start.elapsed_time(end) < 60_000


def test_event_without_timing_refuses_elapsed_time(musa):
    start, end = musa.Event(), musa.Event()
    start.record()
    end.record()
    with pytest.raises((RuntimeError, ValueError)):
        start.elapsed_time(end)


def test_events_wait_on_the_current_stream(musa):
    event = musa.Event()
    assert event.event_id == 0
    event.record()
    event.wait()
    event.synchronize()
    assert event.query() and event.event_id != 0


def test_torchs_streams_and_events_mix_with_musas(musa):
    event, stream = musa.Event(enable_timing=True), torch.Stream("musa")
    stream.record_event(event)
    stream.wait_event(event)
    musa.current_stream().wait_event(stream.record_event())
    musa.current_stream().wait_stream(stream)
    stream.wait_stream(musa.Stream())
    other = torch.Event("musa", enable_timing=True)
    other.record()
    other.synchronize()
    assert event.elapsed_time(other) >= 0
    torch.accelerator.current_stream().wait_event(event)


def test_what_counts_as_a_musa_event(musa):
    assert issubclass(musa.Event, torch.Event)
    assert isinstance(musa.Event(), musa.Event) and isinstance(torch.Event("musa"), musa.Event)
    assert not isinstance(torch.Event("cpu"), musa.Event) and not isinstance(1, musa.Event)

    class Named(musa.Event):
        name = "mine"

    assert Named().name == "mine" and isinstance(Named(), musa.Event)
    assert not isinstance(musa.Event(), Named)


def test_priorities(musa):
    least, greatest = musa.Stream.priority_range()
    assert greatest <= 0 <= least
    for priority in (least, greatest, -100, 100):
        stream = musa.Stream(priority=priority)
        stream.synchronize()


def test_a_native_handle_makes_an_external_stream(musa):
    stream = musa.Stream()
    external = musa.ExternalStream(stream.musa_stream)
    assert external.musa_stream == stream.musa_stream
    with musa.stream(external):
        assert torch.ones(3, device="musa").sum().item() == 3
    assert musa.get_stream_from_external(stream.musa_stream, 0).device.index == 0
    assert f"{stream.musa_stream:#x}" in repr(stream)


def test_record_stream_is_accepted(musa):
    stream = musa.Stream()
    tensor = torch.ones(10, device="musa")
    tensor.record_stream(stream)
    del tensor
    stream.synchronize()
