# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Failures of every SDK call while memory and events are shared, in the sender and in the receiver: the error
is clean, nothing leaks, and the next attempt works."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from musa_runtime._load import extension
from musa_runtime.errors import SharingError
from tests.harness import emulator as emulator_api
from tests.harness import peers
from tests.harness.emulator import INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN
from tests.harness.peers import Peer
from tests.harness.sweeps import calls_to_fail

_MOST_CALLS = 200
_CODES = [
    pytest.param(MEMORY_ALLOCATION, id="out of memory"),
    # Other paths of the error handling: memory without a handle, and any other error.
    pytest.param(INVALID_VALUE, id="invalid value", marks=pytest.mark.full),
    pytest.param(UNKNOWN, id="unknown", marks=pytest.mark.full),
]


def _share_and_receive_back():
    x = torch.arange(8.0, device="musa")
    message = bytes(ForkingPickler.dumps(x))
    del x
    torch.musa.ipc_collect()
    y = _receive_surely(message)
    assert y.cpu().tolist() == list(range(8))


def _receive_surely(message):
    try:
        return pickle.loads(message)
    except Exception:
        # A message must be received, because the sender keeps its memory until then.
        pickle.loads(message)
        raise


def _share_on_a_side_stream():
    stream = torch.musa.Stream()
    stream.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(stream):
        x = torch.zeros(1000, device="musa")
        x += 1
        y = _receive_surely(bytes(ForkingPickler.dumps(x)))
        assert y.cpu().eq(1).all()


def _an_interprocess_event():
    event = torch.musa.Event(interprocess=True)
    event.record()
    assert len(event.ipc_handle()) == 64
    torch.musa.current_stream().wait_event(event)
    event.synchronize()
    assert event.query()


def _shared_with_two_streams():
    x = torch.ones(1000, device="musa")
    _receive_surely(bytes(ForkingPickler.dumps(x)))
    side = torch.musa.Stream()
    side.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(side):
        y = x + 1
        x.record_stream(side)
    del x
    side.synchronize()
    assert y.cpu().eq(2).all()


SENDING = [_share_and_receive_back, _share_on_a_side_stream, _an_interprocess_event, _shared_with_two_streams]


def _settled(emulator):
    gc.collect()
    torch.musa.synchronize()
    torch.musa.ipc_collect()
    torch.musa.empty_cache()
    footprint = emulator.footprint(2)
    usage = extension().ipc_usage()
    return footprint.device_allocations, footprint.streams, usage, footprint.events


def _attempt(scenario: Callable) -> Exception | None:
    try:
        scenario()
    except Exception as error:  # noqa: BLE001 - the caller checks the exception
        return error.with_traceback(None)
    return None


def _sweep(emulator, scenario, code) -> list[str]:
    """Fails each call in turn; returns the problems. The peer runs it too, so it does not use pytest."""
    problems = []
    made = emulator.calls()
    for _ in range(3):
        scenario()
    if emulator.calls() == made:
        problems.append("the scenario makes no SDK call, so its sweep is useless")
    before = _settled(emulator)
    for n in calls_to_fail(_MOST_CALLS):
        emulator.fail_call(n, code)
        error = _attempt(scenario)
        reached = not emulator.fault_pending()
        emulator.clear_faults()
        if not reached:
            if error is not None:
                problems.append(f"call {n}: failed without a fault: {error}")
            break
        if error is not None and not (isinstance(error, RuntimeError) and "musa" in str(error).lower()):
            problems.append(f"call {n}: {type(error).__name__}: {error}")
        torch.musa.set_device(0)
        torch.musa.set_stream(torch.musa.default_stream(0))
        del error
        if (again := _attempt(scenario)) is not None:
            problems.append(f"call {n}: the next attempt failed: {again}")
        after = _settled(emulator)
        if after[:3] != before[:3] or after[3] > before[3] + 2:
            problems.append(f"call {n}: leaked: {before} became {after}")
            before = after
    else:
        problems.append(f"more than {_MOST_CALLS} calls")
    return problems


@pytest.fixture(scope="module", autouse=True)
def _full_stream_pools():
    _fill_stream_pools()


def _fill_stream_pools():
    for device in range(torch.musa.device_count()):
        for _ in range(32):
            _ = torch.musa.Stream(device).musa_stream


@pytest.mark.parametrize("code", _CODES)
@pytest.mark.parametrize("scenario", SENDING, ids=lambda scenario: scenario.__name__.strip("_"))
def test_any_call_of_a_sender_may_fail(two_devices, emulator, scenario, code):
    assert _sweep(emulator, scenario, code) == []


def _receive(event: bytes, code: int) -> list[str]:
    """In the peer: fails each call of receiving, using and releasing once. A message can be received only
    once, so the peer keeps many."""
    emulator = emulator_api.emulator_or_skip()
    _fill_stream_pools()
    messages = peers.kept["messages"]

    def receive():
        x = pickle.loads(messages.pop())
        assert x.cpu().eq(3).all()

    def wait():
        opened = torch.musa.Event.from_ipc_handle(0, event)
        torch.musa.current_stream().wait_event(opened)
        opened.synchronize()

    return _sweep(emulator, receive, code) + _sweep(emulator, wait, code)


@pytest.mark.parametrize("code", _CODES)
def test_any_call_of_a_receiver_may_fail(two_devices, code):
    peer = Peer()
    x = torch.full((100,), 3.0, device="musa")
    event = two_devices.Event(interprocess=True)
    event.record()
    messages = [bytes(ForkingPickler.dumps(x)) for _ in range(120)]
    peer.call(peers.keep, "messages", messages)
    assert peer.call(_receive, event.ipc_handle(), code) == []
    assert x.cpu().eq(3).all()
    assert peer.close() == 0
    # The sender holds messages that are not received yet; the test receives them itself.
    del x
    outcomes = {type(_attempt(lambda message=message: pickle.loads(message))) for message in messages}
    assert outcomes == {SharingError, type(None)}, "the peer must have received some messages, but not all"
    two_devices.ipc_collect()
    assert extension().ipc_usage()["sent"] == 0
