# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Failures of every SDK call: each scenario is repeated with its 1st, 2nd, ... n-th call failing.

Each failure must raise a clean exception or have no effect, nothing may leak, and the next operation must
work. The sweep of a scenario ends when it passes without reaching the fault.
"""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch

from musa_runtime._compat import empty_host_cache
from tests.harness.emulator import MEMORY_ALLOCATION, Emulator, Footprint
from tests.harness.subprocesses import run_forked
from tests.harness.sweeps import calls_to_fail

NOT_SUPPORTED = 801
_MOST_CALLS = 400
# The pools of streams are filled on demand, up to this many for each device and priority.
_POOL_SIZE = 32
# The cache of events keeps one or two for memory that is used on two streams; a leak in a sweep exceeds that.
_CACHED_EVENTS = 2


def _allocate_small():
    return [torch.empty(size, device="musa") for size in (1, 100, 1000)]


def _allocate_large():
    torch.musa.empty_cache()
    return [torch.empty(size << 20, dtype=torch.uint8, device="musa") for size in (2, 30)]


def _fill():
    x = torch.full((1000,), 3.0, device="musa")
    x.add_(1).mul_(2)
    assert x.cpu().eq(8).all()


def _to_device_and_back():
    assert torch.equal(torch.arange(5000.0).to("musa").cpu(), torch.arange(5000.0))


def _strided_copies():
    x = torch.arange(600.0).view(20, 30).to("musa")
    y = torch.empty(30, 20, device="musa")
    y.copy_(x.t())
    y[:, ::2].copy_(torch.zeros(30, 10))
    assert y.cpu()[:, ::2].eq(0).all()


def _pinned_copies():
    source = torch.ones(4096, pin_memory=True)
    moved = source.to("musa", non_blocking=True)
    back = torch.empty(4096, pin_memory=True)
    back.copy_(moved, non_blocking=True)
    torch.musa.synchronize()
    assert back.eq(1).all()


def _copies_between_devices():
    x = torch.ones(1000, device="musa:0").to("musa:1")
    assert (x + 1).to("musa:0").cpu().eq(2).all()


def _reading_a_value():
    assert torch.ones(3, device="musa").sum().item() == 3


def _streams():
    first, second = torch.musa.Stream(), torch.musa.Stream(priority=-1)
    with torch.musa.stream(first):
        x = torch.ones(1000, device="musa")
    second.wait_stream(first)
    with torch.musa.stream(second):
        y = x + 1
    second.synchronize()
    assert second.query()
    assert y.cpu().eq(2).all()


def _events():
    start, end = torch.musa.Event(enable_timing=True), torch.musa.Event(enable_timing=True)
    start.record()
    torch.ones(100, device="musa").add_(1)
    end.record()
    end.synchronize()
    assert end.query()
    assert start.elapsed_time(end) >= 0
    torch.musa.Stream().wait_event(end)


def _memory_used_on_two_streams():
    side = torch.musa.Stream()
    x = torch.ones(100_000, device="musa")
    side.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(side):
        y = x * 2
        x.record_stream(side)
    del x
    side.synchronize()
    assert y.cpu().eq(2).all()
    torch.musa.empty_cache()


def _random_numbers():
    torch.manual_seed(1)
    assert torch.rand(100, device="musa").cpu().max() < 1


def _storages():
    x = torch.arange(1000.0, device="musa")
    x.untyped_storage().resize_(8000)
    x.untyped_storage().resize_(0)
    x.resize_(10)


def _training_step():
    x = torch.ones(4, 4, device="musa", requires_grad=True)
    loss = (
        torch.nn.functional.conv2d(x.view(1, 1, 4, 4), torch.ones(1, 1, 3, 3, device="musa")).square().sum()
    )
    loss.backward()
    assert x.grad.cpu().sum() > 0


def _choosing_devices():
    with torch.musa.device(1):
        x = torch.ones(10, device="musa")
        torch.musa.synchronize()
    assert x.device.index == 1
    assert torch.musa.current_device() == 0


def _asking_the_device():
    torch.musa.mem_get_info()
    torch.musa.can_device_access_peer(0, 1)
    torch.musa.synchronize()
    assert not torch.ones(3).is_pinned()


def _capsules():
    y = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(10, device="musa")))
    assert y.cpu().eq(1).all()


SCENARIOS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)]


@pytest.fixture(scope="module", autouse=True)
def _full_stream_pools():
    least, greatest = torch.musa.Stream.priority_range()
    for device in range(torch.musa.device_count()):
        for priority in range(greatest, least + 1):
            for _ in range(_POOL_SIZE):
                # Reading the handle creates the SDK's stream.
                _ = torch.musa.Stream(device, priority=priority).musa_stream


def _settled(musa, emulator: Emulator) -> tuple[Footprint, int]:
    """Releases all caches; returns the remaining resources and the allocated bytes."""
    musa.synchronize()
    for index in range(2):
        with musa.device(index):
            musa.empty_cache()
    empty_host_cache()
    return emulator.footprint(2), sum(musa.memory_allocated(index) for index in range(2))


def _attempt(scenario: Callable) -> Exception | None:
    try:
        scenario()
    except Exception as error:  # noqa: BLE001 - the caller checks the exception
        return error.with_traceback(None)
    return None


def _require_clean(error: Exception, where: str) -> None:
    assert isinstance(error, RuntimeError), f"{where}: {type(error).__name__} is not a device error: {error}"
    text = str(error)
    assert "musa" in text.lower(), f"{where}: the message does not name the SDK's error: {text}"
    assert "INTERNAL ASSERT" not in text, f"{where}: {text}"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(MEMORY_ALLOCATION, id="out of memory"),
        # Another path of the error handling, in which the code does not mean exhausted memory.
        pytest.param(NOT_SUPPORTED, id="not supported", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.strip("_"))
def test_any_sdk_call_may_fail(two_devices, emulator, scenario, code):
    musa = two_devices
    made = emulator.calls()
    for _ in range(2):
        scenario()  # fills the pools of streams and events, which are kept
    assert emulator.calls() > made, "the scenario makes no SDK call, so its sweep is useless"
    gc.collect()  # frees reference cycles of earlier tests
    before, allocated = _settled(musa, emulator)
    pinned = before.host_allocations
    for n in calls_to_fail(_MOST_CALLS):
        where = f"{scenario.__name__} with call {n} failing"
        emulator.fail_call(n, code)
        error = _attempt(scenario)
        reached = not emulator.fault_pending()
        emulator.clear_faults()
        if not reached:
            assert error is None, f"{where}: failed without a fault: {error}"
            break
        if error is not None:
            _require_clean(error, where)
            # The failed call may have been the switch back to the first device or the default stream.
            for index in (1, 0):
                musa.set_device(index)
                musa.set_stream(musa.default_stream(index))
        assert (torch.ones(16, device="musa") * 2).cpu().eq(2).all(), f"{where}: the next operation is wrong"
        assert _attempt(scenario) is None, f"{where}: the scenario does not work again"
        if error is not None:
            del error
            gc.collect()
        after, still_allocated = _settled(musa, emulator)
        assert still_allocated == allocated, f"{where}: {still_allocated - allocated} bytes leaked"
        assert after.device_allocations == before.device_allocations, f"{where}: segments leaked: {after}"
        assert after.host_allocations <= pinned, f"{where}: pinned memory leaked: {after}"
        pinned = after.host_allocations  # less, once work of an earlier test no longer needs a block
        assert after.streams == before.streams, f"{where}: streams leaked: {after}, {before}"
        assert after.events <= before.events + _CACHED_EVENTS, f"{where}: events leaked: {after}, {before}"
    else:
        pytest.fail(f"{scenario.__name__} makes more than {_MOST_CALLS} SDK calls")


def test_a_leak_would_be_detected(two_devices, emulator):
    before, allocated = _settled(two_devices, emulator)
    # Large enough for a new segment, regardless of free memory in the segments of other tests.
    kept = torch.ones(8 << 20, device="musa")
    after, still_allocated = _settled(two_devices, emulator)
    assert still_allocated > allocated
    assert after.device_allocations != before.device_allocations
    del kept


def test_an_injected_fault_is_reached_and_named(two_devices, emulator):
    two_devices.synchronize()
    emulator.fail_next("musaDeviceSynchronize", NOT_SUPPORTED)
    with pytest.raises(torch.AcceleratorError, match="NotSupported"):
        two_devices.synchronize()
    two_devices.synchronize()


_FIRST_USE = """
import torch
for attempt in range(2):
    try:
        print(float((torch.ones(3, device="musa") + 1).sum()))
        break
    except Exception as error:
        print("raised", type(error).__name__, "musa" in str(error).lower())
print("cpu", float(torch.ones(3).sum()))
"""


@pytest.mark.parametrize(
    "api",
    ["musaGetDeviceProperties", "musaMalloc", "musaSetDevice", "musaMemcpyAsync"],
)
def test_the_first_use_may_fail_and_the_second_works(two_devices, api):
    done = run_forked(_FIRST_USE, MUSA_EMULATOR_FAIL=f"{api}@1=musaErrorMemoryAllocation")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert "cpu 3.0" in lines
    raised = [line for line in lines if line.startswith("raised")]
    assert all(line.endswith("True") for line in raised), lines
    assert "6.0" in lines, f"the device did not recover: {lines}"


def test_a_count_that_fails_means_no_device_and_names_the_cause(two_devices):
    done = run_forked(_FIRST_USE, MUSA_EMULATOR_FAIL="musaGetDeviceCount@1=musaErrorInsufficientDriver")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "raised NoDeviceError True"
    assert "cpu 3.0" in done.stdout


def test_a_lost_device_is_reported_until_the_process_ends(two_devices):
    done = run_forked(
        """
import torch
x = torch.ones(3, device="musa")
torch.musa.synchronize()
for _ in range(3):
    try:
        torch.musa.synchronize()
        (x + 1).cpu()
        print("worked")
    except torch.AcceleratorError as error:
        print("raised", "LaunchFailure" in str(error) or "launch failure" in str(error))
print("cpu", float(torch.ones(3).sum()))
""",
        MUSA_EMULATOR_FAIL="musaDeviceSynchronize@2=musaErrorLaunchFailure",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["raised True"] * 3 + ["cpu 3.0"]
