# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Events that another process opens and waits on."""

import time

import pytest
import torch
from torch import multiprocessing

from tests.harness import peers
from tests.harness.peers import Peer, PeerError


def _wait_on_host(handle):
    event = torch.musa.Event.from_ipc_handle(0, handle)
    event.synchronize()
    return event.query()


def _read_after(handle, tensor):
    event = torch.musa.Event.from_ipc_handle("musa:0", handle)
    stream = torch.musa.Stream()
    stream.wait_event(event)
    with torch.musa.stream(stream):
        return float(tensor.min()), float(tensor.max())


def _record_kept(fill):
    stream = torch.musa.Stream()
    stream.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(stream):
        for _ in range(20):
            peers.kept["x"].add_(fill)
        peers.kept["event"].record()


def _describe(event):
    event.synchronize()
    return type(event).__name__, isinstance(event, torch.musa.Event), str(event.device)


def test_it_is_an_event_of_torch_musa(musa):
    event = musa.Event(interprocess=True)
    assert isinstance(event, musa.Event)
    assert event.query()
    event.synchronize()
    assert event.device is None
    assert event.event_id == 0
    event.record()
    assert event.device == torch.device("musa", 0)
    assert event.event_id != 0
    event.synchronize()
    assert event.query()
    assert "interprocess" in repr(event)


def test_it_orders_streams_within_a_process_too(musa):
    first, second = musa.Stream(), musa.Stream()
    x = torch.zeros(1 << 14, device="musa")
    first.wait_stream(musa.current_stream())
    event = musa.Event(interprocess=True)
    with musa.stream(first):
        for _ in range(10):
            x += 1
        assert first.record_event(event) is event
    second.wait_event(event)
    with musa.stream(second):
        y = x.clone()
        event.record()
    event.synchronize()
    assert y.cpu().eq(10).all()


def test_ordinary_events_are_unchanged(musa):
    event = musa.current_stream().record_event()
    assert type(event) is torch.Event
    stream = musa.Stream()
    stream.wait_event(event)
    assert stream.record_event(event) is event


def test_it_cannot_be_timed(musa):
    with pytest.raises(ValueError, match="cannot be timed"):
        musa.Event(enable_timing=True, interprocess=True)
    with pytest.raises(ValueError, match="cannot be timed"):
        musa.Event(interprocess=True).elapsed_time(musa.Event(interprocess=True))


def test_another_process_waits_for_a_record_of_this_process(peer, musa):
    stream = musa.Stream()
    x = torch.zeros(1 << 18, device="musa")
    event = musa.Event(interprocess=True, blocking=True)
    stream.wait_stream(musa.current_stream())
    with musa.stream(stream):
        for _ in range(50):
            x += 1
        event.record()
    # No thread of this process waits for the event.
    assert peer.call(_wait_on_host, event.ipc_handle()) is True
    assert peer.call(_read_after, event.ipc_handle(), x) == (50.0, 50.0)


def test_this_process_waits_for_a_record_of_another(peer, musa):
    event = musa.Event(interprocess=True)
    x = torch.zeros(1 << 18, device="musa")
    peer.call(peers.keep, "x", x)
    peer.call(peers.keep, "event", event)  # an event can be sent like a tensor
    peer.call(_record_kept, 2)
    musa.current_stream().wait_event(event)
    assert x.cpu().eq(40).all()
    event.synchronize()
    assert event.query()


def test_an_event_can_be_sent_through_queues(peer, musa):
    event = musa.Event(interprocess=True)
    event.record()
    assert peer.call(_describe, event) == ("InterprocessEvent", True, "musa:0")


def test_a_handle_of_the_same_process_is_refused(musa):
    handle = musa.Event(interprocess=True).ipc_handle()
    with pytest.raises(RuntimeError, match=r"(?i)musa"):
        musa.Event.from_ipc_handle(0, handle)
    with pytest.raises(ValueError, match="bytes"):
        musa.Event.from_ipc_handle(0, b"short")
    assert torch.ones(1, device="musa").item() == 1


def test_a_wait_for_a_killed_process_ends(musa):
    peer = Peer()
    event = musa.Event(interprocess=True)
    handle = peer.call(_never_done)
    theirs = musa.Event.from_ipc_handle(0, handle)
    start = time.monotonic()
    peer.kill()
    theirs.synchronize()
    assert time.monotonic() - start < 30
    with pytest.raises(RuntimeError, match=r"(?i)musa"):
        musa.Event.from_ipc_handle(0, handle)
    event.record()
    event.synchronize()


def _never_done():
    peers.kept["forever"] = torch.musa.Event(interprocess=True)
    peers.kept["forever"].record()
    return peers.kept["forever"].ipc_handle()


def test_a_peer_gets_the_error_of_a_wrong_handle(peer):
    with pytest.raises(PeerError, match="ValueError"):
        peer.call(_wait_on_host, b"\0")


def test_events_leak_nothing(peer, musa, emulator):
    before = emulator.footprint(musa.device_count()).events
    for _ in range(20):
        event = musa.Event(interprocess=True)
        event.record()
        peer.call(_wait_on_host, event.ipc_handle())
        del event
    assert emulator.footprint(musa.device_count()).events <= before + 1
    assert multiprocessing.active_children()
