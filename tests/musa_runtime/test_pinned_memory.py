# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Page-locked host memory: its allocation, its detection, and its reuse after the device has finished."""

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION


def test_every_way_to_pin_gives_pinned_memory(musa):
    for x in (
        torch.empty(10, pin_memory=True),
        torch.zeros(10, pin_memory=True),
        torch.tensor([1.0], pin_memory=True),
        torch.randn(10, pin_memory=True),
        torch.ones(10).pin_memory(),
        torch.ones(3, 4).t().pin_memory(),
        torch.empty_strided((2, 3), (1, 2), pin_memory=True),
        torch.empty_like(torch.ones(2), pin_memory=True),
        torch.zeros(5, dtype=torch.complex64).pin_memory(),
    ):
        assert x.device.type == "cpu"
        assert x.is_pinned()


def test_ordinary_and_device_memory_is_not_pinned(musa):
    assert not torch.ones(3).is_pinned()
    assert not torch.ones(3, device="musa").is_pinned()


def test_pinning_copies_values_and_is_done_once(musa):
    x = torch.randn(4, 5)
    pinned = x.pin_memory()
    assert torch.equal(pinned, x)
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()


def test_views_of_pinned_memory_are_pinned(musa):
    x = torch.empty(100, pin_memory=True)
    assert x[10:20].is_pinned()
    assert x[50:].view(5, 10).t().is_pinned()
    assert x.untyped_storage().is_pinned()


def test_device_tensors_cannot_be_pinned(musa):
    with pytest.raises(RuntimeError, match=r"(?i)cpu|pin"):
        torch.ones(3, device="musa").pin_memory()


def test_pinned_memory_of_size_zero(musa):
    assert torch.empty(0, pin_memory=True).numel() == 0


def test_storages_can_be_pinned(musa):
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage().pin_memory()
    assert storage.is_pinned()
    assert list(storage) == [0, 1, 2, 3]


def test_memory_is_reused_after_it_is_freed(musa):
    musa.synchronize()
    pointers = set()
    for _ in range(20):
        pointers.add(torch.empty(12_345, pin_memory=True).data_ptr())
    assert len(pointers) <= 2


def test_memory_is_not_reused_while_the_device_still_reads_it(musa):
    stream = musa.Stream()
    results = []
    for value in range(40):
        with musa.stream(stream):
            source = torch.full((1 << 14,), float(value), pin_memory=True)
            results.append(source.to("musa", non_blocking=True))
            del source
    stream.synchronize()
    for value, result in enumerate(results):
        assert result.cpu().eq(value).all()


def test_the_host_cache_can_be_emptied(musa, emulator):
    torch.accelerator.empty_host_cache()
    before = emulator.footprint(1).host_allocations
    x = torch.empty(1 << 20, pin_memory=True)
    assert emulator.footprint(1).host_allocations == before + 1
    del x
    torch.accelerator.empty_host_cache()
    assert emulator.footprint(1).host_allocations == before


def test_a_failed_pinned_allocation_is_an_exception_and_the_next_works(musa, emulator):
    torch.accelerator.empty_host_cache()
    for attempt in range(1, 5):
        emulator.fail_nth("musaHostAlloc", attempt, MEMORY_ALLOCATION)
    with pytest.raises(RuntimeError, match=r"(?i)memory"):
        torch.empty(1 << 22, pin_memory=True)
    emulator.clear_faults()
    assert torch.empty(1 << 22, pin_memory=True).is_pinned()
