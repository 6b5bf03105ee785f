# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Streams: order within a stream, independence, order by events, priorities, and external streams."""

import ctypes
import threading

import pytest
import torch

from tests.harness.emulator import loaded_sdk


def test_work_on_one_stream_runs_in_order(musa):
    stream = musa.Stream()
    with musa.stream(stream):
        x = torch.zeros(256, device="musa")
        for step in range(1, 50):
            x.mul_(2).add_(1).sub_(x).add_(step)
    stream.synchronize()
    assert x.cpu().eq(49).all()


def test_a_stream_can_wait_for_another(musa):
    producer, consumer = musa.Stream(), musa.Stream()
    x = torch.zeros(1 << 12, device="musa")
    producer.wait_stream(musa.current_stream())
    for value in range(1, 20):
        with musa.stream(producer):
            producer.wait_stream(consumer)
            x.fill_(value)
        with musa.stream(consumer):
            consumer.wait_stream(producer)
            y = x * 2
        consumer.synchronize()
        assert y.cpu().eq(2 * value).all()


def test_synchronize_waits_for_every_stream(musa):
    streams = [musa.Stream() for _ in range(4)]
    results = []
    for value, stream in enumerate(streams):
        with musa.stream(stream):
            results.append(torch.full((1000,), float(value), device="musa") + 1)
    musa.synchronize()
    assert all(stream.query() for stream in streams)
    for value, result in enumerate(results):
        assert result.cpu().eq(value + 1).all()


def test_the_default_stream_is_current_in_every_new_thread(musa):
    seen = {}

    def look():
        seen["stream"] = musa.current_stream()

    with musa.stream(musa.Stream()) as _:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen["stream"] == musa.default_stream()


def test_nested_stream_contexts_restore_in_order(musa):
    outer, inner = musa.Stream(), musa.Stream()
    default = musa.current_stream()
    with musa.stream(outer):
        with musa.stream(inner):
            assert musa.current_stream() == inner
        assert musa.current_stream() == outer
        with musa.stream(None):
            assert musa.current_stream() == outer
    assert musa.current_stream() == default


def test_a_stream_context_restores_after_an_exception(musa):
    default = musa.current_stream()
    with pytest.raises(ZeroDivisionError), musa.stream(musa.Stream()):
        raise ZeroDivisionError
    assert musa.current_stream() == default


def test_torch_streams_are_contexts_too(musa):
    stream = torch.Stream("musa")
    assert stream.device == torch.device("musa", 0)
    with stream:
        assert torch.accelerator.current_stream() == stream
        x = torch.ones(8, device="musa") * 3
    stream.synchronize()
    assert x.cpu().eq(3).all()
    assert torch.accelerator.current_stream() != stream


def test_the_pool_reuses_its_streams(musa):
    streams = [musa.Stream() for _ in range(200)]
    native = {stream.musa_stream for stream in streams}
    assert 2 <= len(native) < 200
    assert 0 not in native


def test_pool_streams_of_both_priorities_are_distinct(musa):
    least, greatest = musa.Stream.priority_range()
    assert greatest <= least
    high = {musa.Stream(priority=greatest).musa_stream for _ in range(40)}
    normal = {musa.Stream(priority=least).musa_stream for _ in range(40)}
    assert not high & normal
    assert musa.Stream(priority=greatest).priority == greatest


def test_streams_compare_and_hash_by_identity_of_the_queue(musa):
    first, second = musa.Stream(), musa.Stream()
    assert first != second
    with musa.stream(first):
        assert musa.current_stream() == first
        assert hash(musa.current_stream()) == hash(first)
    assert len({first, second, first}) == 2


@pytest.fixture
def external(musa):
    """A stream that was created directly with the SDK, as by another library."""
    sdk = loaded_sdk()
    handle = ctypes.c_void_p()
    assert sdk.musaStreamCreate(ctypes.byref(handle)) == 0
    yield handle.value
    musa.synchronize()
    assert sdk.musaStreamDestroy(handle) == 0


def test_a_stream_of_another_library_can_be_used(musa, external):
    stream = musa.ExternalStream(external)
    assert stream.musa_stream == external
    with musa.stream(stream):
        assert musa.current_stream() == stream
        x = torch.arange(100.0, device="musa") + 1
    stream.synchronize()
    assert stream.query()
    assert x.cpu().tolist() == list(range(1, 101))
    del x
    # The allocator has free lists per stream, and the external stream is about to be destroyed.
    musa.empty_cache()


def test_an_external_stream_is_ordered_with_ours_by_events(musa, external):
    stream = musa.ExternalStream(external)
    x = torch.zeros(1 << 12, device="musa")
    stream.wait_stream(musa.current_stream())
    with musa.stream(stream):
        x.fill_(4)
    event = stream.record_event()
    musa.current_stream().wait_event(event)
    assert (x + 1).cpu().eq(5).all()


def test_streams_of_two_devices_are_independent(two_devices):
    first, second = two_devices.Stream(0), two_devices.Stream(1)
    current = two_devices.current_stream(0)
    assert (first.device.index, second.device.index) == (0, 1)
    with two_devices.stream(second):
        assert two_devices.current_device() == 1
        y = torch.ones(4, device="musa") * 2
        assert y.device.index == 1
    assert two_devices.current_device() == 0
    second.synchronize()
    assert y.cpu().eq(2).all()
    assert two_devices.current_stream(0) == current


def test_backward_runs_on_the_stream_of_its_forward(musa):
    stream = musa.Stream()
    x = torch.ones(1000, device="musa", requires_grad=True)
    stream.wait_stream(musa.current_stream())
    with musa.stream(stream):
        loss = (x * 3).sum()
    seen = []
    x.register_hook(lambda grad: seen.append(musa.current_stream()))
    loss.backward()
    assert seen == [stream]
    assert x.grad.cpu().eq(3).all()


def test_threads_with_their_own_streams_do_not_interfere(musa):
    failures = []

    def work(value):
        with musa.stream(musa.Stream()):
            for _ in range(20):
                x = torch.full((2048,), float(value), device="musa")
                if not (x * 2).cpu().eq(2 * value).all():
                    failures.append(value)

    threads = [threading.Thread(target=work, args=(value,)) for value in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
