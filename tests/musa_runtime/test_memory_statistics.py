# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Statistics of device and pinned memory: torch.cuda's keys, exact values, torch.accelerator's functions."""

import gc
import inspect
import itertools
import re

import pytest
import torch

from musa_runtime import memory
from tests.harness.emulator import MEMORY_ALLOCATION

KIB, MIB = 1 << 10, 1 << 20
QUANTITIES = (
    *("allocation", "allocated_bytes", "segment", "reserved_bytes", "active", "active_bytes"),
    *("inactive_split", "inactive_split_bytes", "requested_bytes"),
)
POOLS = ("all", "large_pool", "small_pool")
METRICS = ("current", "peak", "allocated", "freed")
COUNTERS = (
    *("num_alloc_retries", "num_ooms", "num_oom_rejections", "num_sync_all_streams"),
    *("num_device_alloc", "num_device_free", "max_split_size"),
)
OVERSIZE = ("oversize_allocations", "oversize_segments")
KEYS = {
    *map(".".join, itertools.product(QUANTITIES, POOLS, METRICS)),
    *map(".".join, itertools.product(OVERSIZE, METRICS)),
    *COUNTERS,
}


@pytest.fixture
def clean(musa):
    gc.collect()
    musa.synchronize()
    musa.empty_cache()
    musa.reset_peak_memory_stats()
    yield musa
    musa.synchronize()
    musa.empty_cache()


def allocate(size):
    return torch.empty(size, dtype=torch.uint8, device="musa")


def without_pools(stats):
    return {
        key: value for key, value in stats.items() if not key.startswith("reserved_bytes_by_private_pools")
    }


def test_the_keys_are_those_of_torch_cuda(clean):
    stats = clean.memory_stats()
    assert set(without_pools(stats)) == KEYS
    assert list(stats) == sorted(stats)
    assert all(type(value) is int and value >= 0 for value in stats.values())


def test_torch_cuda_documents_no_other_key():
    # The names in the documentation of torch.cuda.memory_stats, with their braces expanded. It says
    # "allocated" for the count whose key is "allocation".
    documented = set()
    for text in re.findall(r'- ``"([a-z_.{},]+)"``', inspect.getdoc(torch.cuda.memory_stats)):
        parts = [part.strip("{}").split(",") for part in re.findall(r"\{[a-z_,]+\}|[a-z_]+", text)]
        documented |= set(map(".".join, itertools.product(*parts)))
    documented = {re.sub(r"^allocated\.", "allocation.", key) for key in documented}
    assert len(documented) > 100
    assert documented - KEYS == {"reserved_bytes_by_private_pools"}


def test_a_kilobyte_raises_active_bytes_by_1024(clean):
    for stats in (torch.accelerator.memory_stats, clean.memory_stats):
        before = stats()
        tensor = torch.ones(1024, dtype=torch.uint8, device="musa")
        after = stats()
        assert after["active_bytes.all.current"] - before["active_bytes.all.current"] == 1024
        assert (
            after["allocated_bytes.small_pool.current"] - before["allocated_bytes.small_pool.current"] == 1024
        )
        assert after["active.all.current"] - before["active.all.current"] == 1
        del tensor
        assert stats()["active_bytes.all.current"] == before["active_bytes.all.current"]


def test_large_memory_is_counted_in_the_large_pool(clean):
    before = clean.memory_stats()
    tensor = allocate(30 * MIB + 1)
    after = clean.memory_stats()
    difference = {key: after[key] - before[key] for key in KEYS if after[key] != before[key]}
    for pool in ("all", "large_pool"):
        assert difference[f"reserved_bytes.{pool}.current"] == 32 * MIB
        assert difference[f"requested_bytes.{pool}.current"] == 30 * MIB + 1
        assert difference[f"segment.{pool}.allocated"] == 1
    assert difference["num_device_alloc"] == 1
    # The remaining 2 MiB - 512 bytes are split off.
    assert difference["inactive_split_bytes.large_pool.current"] == 2 * MIB - 512
    assert not any("small_pool" in key for key in difference)
    del tensor
    clean.empty_cache()
    assert clean.memory_stats()["num_device_free"] == before["num_device_free"] + 1


def test_peaks_and_sums_restart_when_reset(clean):
    tensor = allocate(8 * MIB)
    del tensor
    stats = clean.memory_stats()
    assert stats["allocated_bytes.all.peak"] >= stats["allocated_bytes.all.current"] + 8 * MIB
    assert stats["allocated_bytes.all.allocated"] >= 8 * MIB
    clean.reset_peak_memory_stats()
    clean.reset_accumulated_memory_stats()
    stats = clean.memory_stats()
    for quantity, pool in itertools.product(QUANTITIES, POOLS):
        key = f"{quantity}.{pool}"
        assert stats[f"{key}.peak"] == stats[f"{key}.current"], key
        assert stats[f"{key}.allocated"] == stats[f"{key}.freed"] == 0, key
    for name in COUNTERS[:-1]:
        assert stats[name] == 0, name


def test_failed_calls_and_errors_are_counted(clean, emulator):
    clean.reset_accumulated_memory_stats()
    for n in range(1, 5):
        emulator.fail_nth("musaMalloc", n, MEMORY_ALLOCATION)
    with pytest.raises(torch.OutOfMemoryError):
        allocate(60 * MIB)
    emulator.clear_faults()
    stats = clean.memory_stats()
    assert (stats["num_ooms"], stats["num_alloc_retries"], stats["num_sync_all_streams"]) == (1, 1, 1)
    assert stats["num_device_alloc"] == 0


def test_the_nested_form_has_the_same_values(clean):
    nested, flat = clean.memory_stats_as_nested_dict(), clean.memory_stats()
    for quantity, pool, metric in itertools.product(QUANTITIES, POOLS, METRICS):
        assert nested[quantity][pool][metric] == flat[f"{quantity}.{pool}.{metric}"]
    assert all(nested[name] == flat[name] for name in COUNTERS)
    assert isinstance(nested["reserved_bytes_by_private_pools"], dict)


def test_a_pools_id_is_part_of_its_keys():
    from musa_runtime.memory_keys import flatten

    nested = {"reserved_bytes_by_private_pools": {(0, 1): {"all": {"current": 5}}}, "b": 1, "a": 2}
    flat = flatten(nested)
    assert flat == {"a": 2, "b": 1, "reserved_bytes_by_private_pools.0_1.all.current": 5}
    assert list(flat) == sorted(flat)


def test_each_device_is_counted_separately(two_devices):
    before = [two_devices.memory_stats(index) for index in range(2)]
    tensor = torch.empty(MIB, dtype=torch.uint8, device="musa:1")
    after = [two_devices.memory_stats(index) for index in range(2)]
    assert after[0] == before[0]
    assert after[1]["active_bytes.all.current"] == before[1]["active_bytes.all.current"] + MIB
    assert two_devices.memory_stats("musa:1") == two_devices.memory_stats(torch.device("musa", 1)) == after[1]
    del tensor


# ---- torch.accelerator.memory


def test_torch_accelerator_gives_the_same_figures(clean):
    accelerator, memory = torch.accelerator, torch.accelerator.memory
    tensor = allocate(3 * MIB)
    mine, theirs = clean.memory_stats(), dict(accelerator.memory_stats())
    assert {key: mine[key] for key in theirs if key in KEYS} == {k: v for k, v in theirs.items() if k in KEYS}
    assert KEYS - set(theirs) <= {"num_oom_rejections"}
    assert accelerator.memory_allocated() == clean.memory_allocated() >= 3 * MIB
    assert accelerator.memory_reserved() == clean.memory_reserved() >= clean.memory_allocated()
    assert accelerator.max_memory_allocated() == clean.max_memory_allocated()
    assert accelerator.max_memory_reserved() == clean.max_memory_reserved()
    assert memory.get_memory_info() == clean.mem_get_info()
    del tensor


def test_torch_accelerator_resets_and_releases(clean):
    accelerator = torch.accelerator
    tensor = allocate(30 * MIB)
    del tensor
    accelerator.reset_peak_memory_stats()
    assert accelerator.max_memory_allocated() == accelerator.memory_allocated()
    accelerator.reset_accumulated_memory_stats()
    assert accelerator.memory_stats()["allocated_bytes.all.allocated"] == 0
    reserved = accelerator.memory_reserved()
    accelerator.empty_cache()
    assert accelerator.memory_reserved() <= reserved - 30 * MIB


def test_torch_accelerator_names_a_device(two_devices):
    tensor = torch.empty(MIB, dtype=torch.uint8, device="musa:1")
    for name in ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved"):
        assert getattr(torch.accelerator, name)(1) == getattr(two_devices, name)(1) >= MIB
    assert torch.accelerator.memory.get_memory_info(1) == two_devices.mem_get_info(1)
    torch.accelerator.reset_peak_memory_stats(1)
    torch.accelerator.reset_accumulated_memory_stats(1)
    assert two_devices.memory_stats(1)["allocation.all.allocated"] == 0
    del tensor


def test_no_function_of_torch_accelerator_memory_is_left_out():
    tested = {
        *(
            "empty_cache",
            "empty_host_cache",
            "get_memory_info",
            "max_memory_allocated",
            "max_memory_reserved",
        ),
        *("memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats"),
        "reset_peak_memory_stats",
    }
    assert set(torch.accelerator.memory.__all__) == tested


# ---- pinned memory

HOST_KEYS = {
    *("num_host_alloc", "num_host_free"),
    *map(
        ".".join,
        itertools.product(("allocations", "allocated_bytes", "active_requests", "active_bytes"), METRICS),
    ),
    *map(
        ".".join,
        itertools.product(("host_alloc_time", "host_free_time"), ("total", "max", "min", "count", "avg")),
    ),
}


@pytest.fixture
def pinned(musa):
    gc.collect()
    torch.accelerator.empty_host_cache()
    musa.reset_peak_host_memory_stats()
    musa.reset_accumulated_host_memory_stats()
    yield musa
    torch.accelerator.empty_host_cache()


def test_pinned_memory_is_counted(pinned):
    before = pinned.host_memory_stats()
    assert set(before) == HOST_KEYS
    tensor = torch.empty(3000, dtype=torch.uint8, pin_memory=True)
    stats = pinned.host_memory_stats()
    # Block sizes are powers of two.
    assert stats["active_bytes.current"] - before["active_bytes.current"] == 4096
    assert stats["active_requests.current"] - before["active_requests.current"] == 1
    assert stats["allocated_bytes.allocated"] == 4096 and stats["num_host_alloc"] == 1
    assert stats["host_alloc_time.count"] == 1
    assert stats["host_free_time.count"] == 0
    assert stats["host_alloc_time.avg"] == stats["host_alloc_time.total"] == stats["host_alloc_time.max"]
    del tensor
    stats = pinned.host_memory_stats()
    assert stats["active_bytes.current"] == before["active_bytes.current"]
    assert stats["allocated_bytes.current"] - before["allocated_bytes.current"] == 4096
    assert stats["active_bytes.peak"] >= 4096
    torch.accelerator.empty_host_cache()
    stats = pinned.host_memory_stats()
    assert stats["allocated_bytes.current"] == before["allocated_bytes.current"]
    assert stats["num_host_free"] == stats["host_free_time.count"] == 1


def test_figures_of_pinned_memory_can_be_reset(pinned):
    tensor = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    del tensor
    assert pinned.host_memory_stats()["active_bytes.peak"] >= MIB
    pinned.reset_peak_host_memory_stats()
    pinned.reset_accumulated_host_memory_stats()
    stats = pinned.host_memory_stats()
    assert stats["active_bytes.peak"] == stats["active_bytes.current"]
    assert stats["active_bytes.allocated"] == stats["host_alloc_time.count"] == 0


def test_the_nested_form_of_pinned_figures(pinned):
    nested = pinned.host_memory_stats_as_nested_dict()
    assert set(nested["host_alloc_time"]) == {"total", "max", "min", "count", "avg"}
    assert nested["active_bytes"]["current"] == pinned.host_memory_stats()["active_bytes.current"]


# ---- the table


def test_the_summary_shows_the_figures(clean):
    tensor = allocate(5 * MIB)
    stats, text = clean.memory_stats(), clean.memory_summary()
    (line,) = [line for line in text.splitlines() if line.startswith("| Allocations")]
    figures = [figure for figure in line.split() if figure != "|"]
    assert figures[1:] == [str(stats[f"allocation.all.{metric}"]) for metric in METRICS]
    (line,) = [line for line in text.splitlines() if line.startswith("| Oversize GPU segments")]
    figures = [figure for figure in line.split() if figure != "|"]
    assert figures[3:] == [str(stats[f"oversize_segments.{metric}"]) for metric in METRICS]
    assert len(clean.memory_summary(abbreviated=True)) < len(text)
    del tensor


@pytest.mark.parametrize("abbreviated", [False, True])
def test_the_summary_is_the_table_of_torch_cuda(clean, monkeypatch, abbreviated):
    tensor = allocate(5 * MIB)
    scales = itertools.cycle([1, 700, 800_000, 3 * 10**6, 5 * 10**9, 10**13])
    stats = {key: value * next(scales) for key, value in clean.memory_stats().items()}
    monkeypatch.setattr(memory, "memory_stats", lambda device=None: stats)
    monkeypatch.setattr(torch.cuda.memory, "memory_stats", lambda device=None: stats)
    expected = torch.cuda.memory_summary(0, abbreviated=abbreviated)
    expected = expected.replace("CUDA", "MUSA").replace("cudaMalloc", "musaMalloc")
    assert clean.memory_summary(0, abbreviated=abbreviated) == expected
    del tensor


def test_emptying_the_cache_counts_as_a_wait_for_all_streams(musa):
    before = musa.memory_stats()["num_sync_all_streams"]
    musa.empty_cache()
    assert musa.memory_stats()["num_sync_all_streams"] == before + 1
