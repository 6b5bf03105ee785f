# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Failures of every driver call of an expandable segment: nothing leaks, and the next request succeeds."""

import ctypes
import gc

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION, UNKNOWN, loaded_sdk
from tests.harness.subprocesses import run_code
from tests.musa_runtime import test_fault_sweep as sweep
from tests.musa_runtime.test_fault_sweep import _full_stream_pools  # noqa: F401 - a fixture of this module, too

MIB = 1 << 20
PAGE = 20 * MIB


@pytest.fixture(autouse=True)
def _expandable(musa):
    gc.collect()
    musa.synchronize()
    musa.empty_cache()
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    yield
    torch._C._accelerator_setAllocatorSettings("expandable_segments:False")
    gc.collect()
    musa.synchronize()
    musa.empty_cache()


@pytest.fixture(scope="module")
def _handles():
    """Streams of the SDK. Destroyed at the end, because the SDK reuses handles of destroyed streams."""
    handles = []
    yield handles
    for handle in handles:
        assert loaded_sdk().musaStreamDestroy(handle) == 0


@pytest.fixture
def fresh_stream(musa, _handles):
    """A stream without reserved addresses; addresses are never released after a failed unmapping."""
    handle = ctypes.c_void_p()
    assert loaded_sdk().musaStreamCreateWithFlags(ctypes.byref(handle), 1) == 0
    _handles.append(handle)
    with musa.stream(musa.ExternalStream(handle.value)):
        yield
    musa.synchronize()


def _block(size):
    return torch.empty(size, dtype=torch.uint8, device="musa")


def _grow():
    torch.musa.empty_cache()
    return [_block(size) for size in (1000, 5 * MIB, 3 * PAGE)]


def _give_back_from_the_middle():
    torch.musa.empty_cache()
    blocks = [_block(PAGE) for _ in range(3)]
    blocks[0].fill_(1)
    blocks[2].fill_(3)
    blocks[1] = None
    torch.musa.empty_cache()
    blocks[1] = _block(PAGE)
    assert blocks[0].cpu().eq(1).all()
    assert blocks[2].cpu().eq(3).all()


def _make_room():
    torch.musa.empty_cache()
    total = torch.musa.mem_get_info()[1]
    torch.musa.set_per_process_memory_fraction(min(1.0, (torch.musa.memory_reserved() + 4 * PAGE) / total))
    try:
        with torch.musa.stream(torch.musa.Stream()):
            cached = [_block(PAGE) for _ in range(3)]
            cached.clear()
        assert _block(3 * PAGE).numel() == 3 * PAGE
    finally:
        torch.musa.set_per_process_memory_fraction(1.0)


def _train():
    layer = torch.nn.Linear(100, 100, device="musa")
    layer(torch.ones(4, 100, device="musa")).square().sum().backward()
    assert layer.weight.grad.cpu().isfinite().all()
    torch.musa.empty_cache()


@pytest.mark.parametrize(
    "code", [MEMORY_ALLOCATION, sweep.NOT_SUPPORTED], ids=["out of memory", "not supported"]
)
@pytest.mark.parametrize("scenario", [_grow, _give_back_from_the_middle, _make_room, _train])
def test_any_sdk_call_may_fail(two_devices, emulator, scenario, code):
    sweep.test_any_sdk_call_may_fail(two_devices, emulator, scenario, code)


@pytest.mark.parametrize(
    ("call", "nth"),
    [
        ("muMemAddressReserve", 1),
        ("muMemCreate", 1),
        ("muMemCreate", 3),
        ("muMemMap", 1),
        ("muMemMap", 3),
        ("muMemSetAccess", 1),
        ("muMemUnmap", 1),
        ("muMemUnmap", 2),
        ("muMemRelease", 1),
        ("muMemRelease", 3),
        ("muMemAddressFree", 1),
    ],
)
def test_a_failure_is_named_and_undone(musa, emulator, fresh_stream, call, nth):
    before, reserved = emulator.live_bytes(0), musa.memory_reserved()
    emulator.fail_nth(call, nth, UNKNOWN)
    with pytest.raises(torch.AcceleratorError, match=call):
        x = _block(3 * PAGE)
        del x
        musa.empty_cache()
    emulator.clear_faults()
    musa.empty_cache()
    assert emulator.live_bytes(0) == before
    assert musa.memory_reserved() == reserved
    x = _block(3 * PAGE)
    assert x.fill_(4).cpu().eq(4).all()


@pytest.mark.parametrize("call", ["muMemUnmap", "muMemRelease"])
def test_a_failure_while_undoing_does_not_replace_the_first_error(musa, emulator, fresh_stream, call):
    before = emulator.live_bytes(0)
    emulator.fail_nth("muMemMap", 3, UNKNOWN)
    emulator.fail_nth(call, 1, sweep.NOT_SUPPORTED)
    with pytest.raises(torch.AcceleratorError, match="muMemMap"):
        _block(3 * PAGE)
    emulator.clear_faults()
    assert emulator.live_bytes(0) == before
    x = _block(3 * PAGE)
    assert x.fill_(4).cpu().eq(4).all()


@pytest.mark.parametrize("call", ["musaEventRecord", "musaEventSynchronize"])
def test_pages_return_to_the_cache_if_waiting_for_their_stream_fails(musa, emulator, call):
    x = _block(3 * PAGE)
    y = _block(12 * MIB).fill_(9)
    start, reserved = x.data_ptr(), musa.memory_reserved()
    musa.synchronize()
    del x
    emulator.fail_next(call, UNKNOWN)
    with pytest.raises(torch.AcceleratorError, match=call):
        musa.empty_cache()
    assert musa.memory_reserved() == reserved
    x = _block(3 * PAGE)
    assert x.data_ptr() == start
    assert y.cpu().eq(9).all()


_FIRST_USE = """
import torch
for attempt in range(2):
    try:
        print(float(torch.ones(3, device="musa").sum()))
        break
    except torch.AcceleratorError as error:
        print("raised", CALL in str(error))
"""


@pytest.mark.once
@pytest.mark.parametrize("call", ["muDeviceGetAttribute", "muMemGetAllocationGranularity"])
def test_querying_the_device_may_fail_and_is_retried(musa, call):
    out = run_code(
        _FIRST_USE.replace("CALL", repr(call)),
        PYTORCH_ALLOC_CONF="expandable_segments:True",
        MUSA_EMULATOR_FAIL=f"{call}@1=musaErrorUnknown",
    )
    assert out.split("\n")[:2] == ["raised True", "3.0"]
