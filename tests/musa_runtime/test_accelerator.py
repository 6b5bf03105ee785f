# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.accelerator: its functions use the musa device."""

import pytest
import torch

from tests.harness.skips import needs_torch


def test_the_accelerator_is_musa(musa):
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "musa"
    assert torch.accelerator.device_count() == musa.device_count()
    assert torch.accelerator.current_device_index() == musa.current_device()


def test_the_current_device_can_be_chosen(two_devices):
    torch.accelerator.set_device_index(1)
    try:
        assert two_devices.current_device() == 1
        assert torch.empty(1, device="musa").device.index == 1
    finally:
        torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(1):
        assert two_devices.current_device() == 1
    assert two_devices.current_device() == 0


def test_streams_go_through_the_accelerator(musa):
    stream = torch.Stream("musa")
    default = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    try:
        assert musa.current_stream() == stream
        x = torch.ones(64, device="musa") + 1
        torch.accelerator.synchronize()
        assert x.cpu().eq(2).all()
    finally:
        torch.accelerator.set_stream(default)


def test_an_index_out_of_range_is_refused(musa):
    with pytest.raises((RuntimeError, ValueError), match=str(musa.device_count() + 5)):
        torch.accelerator.set_device_index(musa.device_count() + 5)
    assert torch.accelerator.current_device_index() == 0


def test_a_kilobyte_raises_the_active_bytes_by_1024(musa):
    before = torch.accelerator.memory_stats()["active_bytes.all.current"]
    x = torch.empty(1000, dtype=torch.uint8, device="musa")
    after = torch.accelerator.memory_stats()["active_bytes.all.current"]
    assert after - before == 1024
    del x
    assert torch.accelerator.memory_stats()["active_bytes.all.current"] == before


@pytest.mark.parametrize("group", ["allocation", "segment", "active", "inactive_split"])
@pytest.mark.parametrize("pool", ["all", "small_pool", "large_pool"])
@pytest.mark.parametrize("metric", ["current", "peak", "allocated", "freed"])
def test_memory_stats_are_complete(musa, group, pool, metric):
    torch.ones(1, device="musa")
    assert torch.accelerator.memory_stats()[f"{group}.{pool}.{metric}"] >= 0


@pytest.mark.parametrize("group", ["allocated", "reserved", "active", "requested", "inactive_split"])
@pytest.mark.parametrize("pool", ["all", "small_pool", "large_pool"])
@pytest.mark.parametrize("metric", ["current", "peak", "allocated", "freed"])
def test_memory_stats_in_bytes_are_complete(musa, group, pool, metric):
    torch.ones(1, device="musa")
    assert torch.accelerator.memory_stats()[f"{group}_bytes.{pool}.{metric}"] >= 0


def test_memory_figures_follow_allocations_and_frees(musa):
    torch.accelerator.empty_cache()
    allocated, reserved = torch.accelerator.memory_allocated(), torch.accelerator.memory_reserved()
    torch.accelerator.reset_peak_memory_stats()
    x = torch.empty(5 << 20, dtype=torch.uint8, device="musa")
    assert torch.accelerator.memory_allocated() == allocated + (5 << 20)
    assert torch.accelerator.memory_reserved() > reserved
    del x
    assert torch.accelerator.memory_allocated() == allocated
    assert torch.accelerator.max_memory_allocated() == allocated + (5 << 20)
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() == reserved


def test_free_memory_follows_the_reserved_memory(musa):
    torch.accelerator.empty_cache()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    x = torch.empty(32 << 20, dtype=torch.uint8, device="musa")
    assert torch.accelerator.get_memory_info()[0] <= free - (32 << 20)
    del x
    torch.accelerator.empty_cache()
    assert torch.accelerator.get_memory_info()[0] == free


def test_pinned_memory_is_the_accelerators(musa):
    needs_torch("2.13", "torch.accelerator.empty_host_cache")
    x = torch.empty(100, pin_memory=True)
    assert x.is_pinned()
    torch.accelerator.empty_host_cache()
    assert torch.ones(3).pin_memory().is_pinned()


def every_dtype():
    return {value for value in vars(torch).values() if isinstance(value, torch.dtype)}


def computes(dtype):
    """Whether tensors of a dtype can be filled and added on the device."""
    try:
        x = torch.empty(3, dtype=dtype, device="musa").fill_(1)
        # The CPU has no addition for some dtypes that the device can add.
        return bool((x + x).cpu().to(torch.complex128).eq(1 if dtype is torch.bool else 2).all())
    except (RuntimeError, NotImplementedError):
        return False


@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")  # torch's CPU kernels do not add unsigned integers
@pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:torch.quantize_per_tensor")
def test_capability_lists_the_dtypes_that_compute_and_no_other(musa):
    capability = torch.accelerator.get_device_capability()
    assert set(capability["supported_dtypes"]) == {dtype for dtype in every_dtype() if computes(dtype)}
    assert {torch.float32, torch.float16, torch.int64, torch.bool} <= set(capability["supported_dtypes"])
    assert not computes(torch.float8_e5m2) and not computes(torch.quint8), "computes() accepts every dtype"


def test_a_generator_of_the_accelerator(musa):
    generator = torch.Generator("musa")
    assert generator.device.type == "musa"
    x = torch.rand(5, device="musa", generator=generator.manual_seed(3))
    assert torch.equal(x, torch.rand(5, device="musa", generator=generator.manual_seed(3)))


PUBLIC = sorted({*torch.accelerator.__all__, *torch.accelerator.memory.__all__})

# A call of each public function; other tests in this file check the results.
CALLS = {
    "current_accelerator": lambda acc: acc.current_accelerator(check_available=True),
    "current_device_idx": lambda acc: acc.current_device_idx(),
    "current_device_index": lambda acc: acc.current_device_index(),
    "current_stream": lambda acc: acc.current_stream(0),
    "device_count": lambda acc: acc.device_count(),
    "device_index": lambda acc: acc.device_index(0).__enter__(),
    "empty_cache": lambda acc: acc.empty_cache(),
    "empty_host_cache": lambda acc: acc.empty_host_cache(),
    "get_device_capability": lambda acc: acc.get_device_capability("musa:0"),
    "get_memory_info": lambda acc: acc.get_memory_info(0),
    "is_available": lambda acc: acc.is_available(),
    "max_memory_allocated": lambda acc: acc.max_memory_allocated("musa:0"),
    "max_memory_reserved": lambda acc: acc.max_memory_reserved(torch.device("musa", 0)),
    "memory_allocated": lambda acc: acc.memory_allocated(0),
    "memory_reserved": lambda acc: acc.memory_reserved(),
    "memory_stats": lambda acc: acc.memory_stats(0),
    "reset_accumulated_memory_stats": lambda acc: acc.reset_accumulated_memory_stats(0),
    "reset_peak_memory_stats": lambda acc: acc.reset_peak_memory_stats(0),
    "set_device_idx": lambda acc: acc.set_device_idx(0),
    "set_device_index": lambda acc: acc.set_device_index("musa:0"),
    "set_stream": lambda acc: acc.set_stream(acc.current_stream()),
    "synchronize": lambda acc: acc.synchronize(0),
}


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "Graph"])  # graphs are tested elsewhere
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_every_public_function_serves_musa(musa, name):
    CALLS[name](torch.accelerator)


def test_the_device_module_is_torch_musa(musa):
    assert torch.get_device_module() is musa
    assert torch.get_device_module("musa") is musa
    assert torch.get_device_module(torch.device("musa:0")) is musa


def test_synchronizing_a_device_waits_for_all_of_its_streams(two_devices):
    stream = torch.Stream("musa:1")
    x = torch.ones(1 << 20, device="musa:1")
    stream.wait_stream(torch.accelerator.current_stream(1))
    with stream:
        for _ in range(20):
            x.add_(1)
        event = stream.record_event()
    torch.accelerator.synchronize(1)
    assert event.query() and stream.query()
    assert torch.accelerator.current_device_index() == 0


def test_current_streams_are_each_devices_own(two_devices):
    stream = torch.Stream("musa:1")
    default = torch.accelerator.current_stream(1)
    with stream:
        assert torch.accelerator.current_stream(1) == stream
        assert torch.accelerator.current_stream(0) == two_devices.default_stream(0)
        assert torch.accelerator.current_device_index() == 1
    assert torch.accelerator.current_stream(1) == default
    assert torch.accelerator.current_device_index() == 0


def test_figures_are_each_devices_own(two_devices):
    before = [torch.accelerator.memory_allocated(index) for index in range(2)]
    x = torch.empty(3 << 20, dtype=torch.uint8, device="musa:1")
    assert torch.accelerator.memory_allocated(0) == before[0]
    assert torch.accelerator.memory_allocated("musa:1") == before[1] + (3 << 20)
    torch.accelerator.reset_peak_memory_stats(1)
    del x
    assert torch.accelerator.max_memory_allocated(1) == before[1] + (3 << 20)


def test_accumulated_figures_start_again(musa):
    torch.ones(10, device="musa")
    assert torch.accelerator.memory_stats()["allocation.all.allocated"] > 0
    torch.accelerator.reset_accumulated_memory_stats()
    assert torch.accelerator.memory_stats()["allocation.all.allocated"] == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.accelerator.synchronize(99),
        lambda: torch.accelerator.current_stream(99),
        lambda: torch.accelerator.memory_stats(99),
        lambda: torch.accelerator.get_memory_info(99),
        lambda: torch.accelerator.synchronize("cpu"),
        lambda: torch.accelerator.memory_stats("cuda:0"),
    ],
    ids=["synchronize", "current_stream", "memory_stats", "get_memory_info", "host", "another type"],
)
def test_a_device_of_another_type_is_refused(musa, call):
    with pytest.raises((RuntimeError, ValueError)):
        call()
    assert torch.ones(2, device="musa").sum().item() == 2


@pytest.mark.filterwarnings("ignore:MUSA reports that you have")  # torch warns if `devices` is not passed
def test_random_state_can_be_forked(two_devices):
    torch.manual_seed(1)
    torch.rand(3, device="musa:1")
    states = two_devices.get_rng_state_all()
    with torch.random.fork_rng(device_type="musa"):
        torch.rand(5, device="musa:0")
        torch.manual_seed(9)
    assert all(torch.equal(a, b) for a, b in zip(states, two_devices.get_rng_state_all(), strict=True))
    with torch.random.fork_rng(devices=[1], device_type="musa"):
        torch.rand(5, device="musa:0")
        torch.rand(5, device="musa:1")
    after = two_devices.get_rng_state_all()
    assert not torch.equal(states[0], after[0]) and torch.equal(states[1], after[1])


def test_time_between_events(musa):
    start, end = torch.Event("musa", enable_timing=True), torch.Event("musa", enable_timing=True)
    start.record()
    musa._sleep(int(musa.get_device_properties().clock_rate * 1e3 * 0.02))  # 20 ms
    end.record()
    end.synchronize()
    assert 15 < start.elapsed_time(end) < 10_000


def test_an_external_stream_is_the_stream_it_was_made_from(musa):
    stream = musa.Stream()
    external = musa.ExternalStream(stream.musa_stream, device=0)
    assert external.musa_stream == stream.musa_stream
    with external:
        assert musa.current_stream().musa_stream == stream.musa_stream
        x = torch.ones(100, device="musa") * 2
    external.synchronize()
    assert stream.query() and x.cpu().eq(2).all()
