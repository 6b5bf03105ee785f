# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa's memory functions count the memory of tensors, and agree with torch.accelerator."""

import gc

import pytest
import torch

from tests.harness.subprocesses import run_code

MEGABYTE = 1 << 20


@pytest.fixture
def clean(musa):
    musa.init()
    gc.collect()
    musa.synchronize()
    musa.empty_cache()
    musa.reset_peak_memory_stats()
    return musa


def test_allocated_and_reserved_follow_a_tensors_life(clean):
    before = clean.memory_allocated()
    tensor = torch.empty(8 * MEGABYTE, dtype=torch.uint8, device="musa")
    assert clean.memory_allocated() - before == 8 * MEGABYTE
    assert clean.memory_reserved() >= clean.memory_allocated()
    assert clean.max_memory_allocated() >= before + 8 * MEGABYTE
    del tensor
    assert clean.memory_allocated() == before
    assert clean.max_memory_allocated() >= before + 8 * MEGABYTE
    clean.reset_peak_memory_stats()
    assert clean.max_memory_allocated() == before
    reserved = clean.memory_reserved()
    clean.empty_cache()
    assert clean.memory_reserved() <= reserved - 8 * MEGABYTE


def test_older_spellings_agree(clean):
    assert clean.memory_cached() == clean.memory_reserved()
    assert clean.max_memory_cached() == clean.max_memory_reserved()
    clean.reset_max_memory_allocated()
    clean.reset_max_memory_cached()
    assert clean.max_memory_allocated() == clean.memory_allocated()


def test_stats_are_those_of_torch_accelerator(clean):
    tensor = torch.ones(1000, device="musa")
    stats, theirs = clean.memory_stats(), torch.accelerator.memory_stats()
    assert {key: stats[key] for key in theirs} == dict(theirs)
    assert clean.memory_allocated() == torch.accelerator.memory_allocated()
    nested = clean.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"]["current"] == clean.memory_allocated()
    del tensor


def test_accumulated_stats_can_be_reset(clean):
    torch.ones(1000, device="musa")
    assert clean.memory_stats()["allocated_bytes.all.allocated"] > 0
    clean.reset_accumulated_memory_stats()
    assert clean.memory_stats()["allocated_bytes.all.allocated"] == 0


def test_before_first_use_the_figures_are_zero():
    code = """
    import torch
    print(torch.musa.memory_stats(), torch.musa.memory_allocated(), torch.musa.max_memory_reserved())
    torch.musa.empty_cache()
    print(torch.musa.is_initialized())
    """
    assert run_code(code) == "{} 0 0\nFalse\n"


def test_mem_get_info(clean):
    free, total = clean.mem_get_info()
    assert 0 < free <= total == clean.get_device_properties().total_memory


def test_the_summary_names_every_quantity(clean):
    tensor = torch.ones(MEGABYTE, device="musa")
    text = clean.memory_summary()
    assert "Allocated memory" in text and "from large pool" in text and "KiB" in text
    assert "from large pool" not in clean.memory_summary(abbreviated=True)
    assert max(map(len, text.splitlines())) <= 80
    del tensor


BAD_FRACTIONS = [(1.5, ValueError), (-0.1, ValueError), ("half", TypeError), (True, TypeError)]


@pytest.mark.parametrize(("fraction", "error"), BAD_FRACTIONS)
def test_a_bad_memory_fraction_is_refused(musa, fraction, error):
    with pytest.raises(error, match="from 0 to 1"):
        musa.set_per_process_memory_fraction(fraction)


def test_beyond_the_memory_fraction_allocation_fails_and_recovers():
    code = """
    import torch
    assert torch.musa.get_per_process_memory_fraction() == 1.0
    total = torch.musa.get_device_properties().total_memory
    torch.musa.set_per_process_memory_fraction(0.25)
    assert torch.musa.get_per_process_memory_fraction() == 0.25
    try:
        torch.empty(total // 2, dtype=torch.uint8, device="musa")
    except torch.musa.OutOfMemoryError as error:
        print("out of memory", type(error) is torch.OutOfMemoryError)
    torch.musa.set_per_process_memory_fraction(1.0)
    print(torch.ones(2, device="musa").sum().item())
    """
    assert run_code(code).splitlines() == ["out of memory True", "2.0"]


def test_raw_allocation_counts_and_is_freed(clean):
    before = clean.memory_allocated()
    for stream in (None, clean.current_stream(), clean.Stream(), clean.current_stream().musa_stream):
        address = clean.caching_allocator_alloc(4096, stream=stream)
        assert address and clean.memory_allocated() == before + 4096
        clean.caching_allocator_delete(address)
        assert clean.memory_allocated() == before
    with pytest.raises(ValueError, match="bytes"):
        clean.caching_allocator_alloc(-1)
    with pytest.raises(TypeError, match="stream"):
        clean.caching_allocator_alloc(16, stream="default")


def test_raw_allocation_on_another_device(two_devices):
    musa = two_devices
    before = musa.memory_allocated(1)
    address = musa.caching_allocator_alloc(4096, device=1)
    assert musa.memory_allocated(1) == before + 4096 and musa.current_device() == 0
    musa.caching_allocator_delete(address)
    assert musa.memory_allocated(1) == before
