# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The caching allocator: rounding, splitting, merging, reuse per stream, and the out-of-memory error."""

import gc
import itertools
import random
import threading

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def empty(musa):
    """torch.musa with an empty cache."""
    gc.collect()
    musa.synchronize()
    musa.empty_cache()
    yield musa
    musa.synchronize()
    musa.empty_cache()


def _block(size):
    return torch.empty(size, dtype=torch.uint8, device="musa")


def _stat(name):
    return torch.accelerator.memory_stats()[name]


@pytest.mark.parametrize(("size", "rounded"), [(1, 512), (512, 512), (513, 1024), (1000, 1024), (MIB, MIB)])
def test_sizes_are_rounded_to_512_bytes(empty, size, rounded):
    before, requested = _stat("allocated_bytes.all.current"), _stat("requested_bytes.all.current")
    x = _block(size)
    assert _stat("allocated_bytes.all.current") - before == rounded
    assert _stat("requested_bytes.all.current") - requested == size
    del x


def test_an_empty_tensor_allocates_nothing(empty):
    before = empty.memory_allocated()
    x = torch.empty(0, device="musa")
    y = torch.empty(3, 0, 5, device="musa")
    assert empty.memory_allocated() == before
    del x, y


def test_freed_memory_is_reused(empty):
    pointer = _block(100 * KIB).data_ptr()
    assert _block(100 * KIB).data_ptr() == pointer


def test_small_requests_share_a_segment(empty):
    segments = _stat("segment.all.current")
    blocks = [_block(KIB) for _ in range(100)]
    # One new segment, or none if a segment in use has free space.
    assert _stat("segment.all.current") <= segments + 1
    assert len({block.data_ptr() for block in blocks}) == 100
    ordered = sorted(block.data_ptr() for block in blocks)
    assert all(right - left >= KIB for left, right in itertools.pairwise(ordered))


def test_neighbours_merge_when_freed(empty):
    split = _stat("inactive_split_bytes.all.current")
    blocks = [_block(512 * KIB) for _ in range(4)]
    segments = _stat("segment.all.current")
    reserved = empty.memory_reserved()
    del blocks
    # The whole small segment is one block again, so it is reused for requests of other sizes.
    again = [_block(MIB) for _ in range(2)]
    assert _stat("segment.all.current") == segments
    assert empty.memory_reserved() == reserved
    del again
    assert _stat("inactive_split_bytes.all.current") == split


def test_empty_cache_releases_free_memory_and_keeps_used_memory(empty, emulator):
    live = emulator.footprint(1).device_allocations[0]
    used = _block(3 * MIB)
    free = _block(30 * MIB)
    assert emulator.footprint(1).device_allocations[0] == live + 2
    used.fill_(7)
    del free
    empty.empty_cache()
    assert emulator.footprint(1).device_allocations[0] == live + 1
    assert used.cpu().eq(7).all()


def test_memory_freed_on_a_stream_is_reused_on_that_stream_only(empty):
    first, second = empty.Stream(), empty.Stream()
    with empty.stream(first):
        x = _block(3 * MIB)
        pointer = x.data_ptr()
        del x
    with empty.stream(second):
        y = _block(3 * MIB)
        assert y.data_ptr() != pointer
    with empty.stream(first):
        z = _block(3 * MIB)
        assert z.data_ptr() == pointer
    del y, z


def test_record_stream_delays_reuse_until_the_other_stream_is_done(empty):
    side = empty.Stream()
    x = torch.full((MIB,), 5.0, device="musa")
    pointer = x.data_ptr()
    side.wait_stream(empty.current_stream())
    with empty.stream(side):
        y = x * 2
        x.record_stream(side)
        del x
    # The side stream must still read fives, regardless of new allocations.
    z = torch.full((MIB,), -1.0, device="musa")
    side.synchronize()
    assert y.cpu().eq(10).all()
    del z
    empty.synchronize()
    # The event is complete, so the block is reused.
    assert any(torch.empty(MIB, device="musa").data_ptr() == pointer for _ in range(3))


def test_memory_is_reused_in_stream_order_without_corruption(empty):
    stream = empty.Stream()
    generator = random.Random(0)
    with empty.stream(stream):
        for _ in range(100):
            size = generator.randrange(1, 2000)
            x = torch.full((size,), float(size), device="musa")
            y = x + 1
            del x
            z = torch.zeros(size, device="musa")
            assert y.sum().item() == size * (size + 1)
            assert z.sum().item() == 0


def test_figures_equal_a_recomputation_after_every_step(empty):
    generator = random.Random(1)
    base_bytes, base_count = _stat("requested_bytes.all.current"), _stat("active.all.current")
    live = {}
    for step in range(400):
        if live and generator.random() < 0.45:
            del live[generator.choice(list(live))]
        else:
            live[step] = _block(generator.choice([1, 700, 5 * KIB, 300 * KIB, MIB, 3 * MIB, 12 * MIB]))
        assert _stat("requested_bytes.all.current") - base_bytes == sum(
            block.numel() for block in live.values()
        )
        assert _stat("active.all.current") - base_count == len(live)
        assert empty.memory_allocated() <= empty.memory_reserved()
        spans = sorted((block.data_ptr(), block.data_ptr() + block.numel()) for block in live.values())
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans)), "two tensors overlap"
    live.clear()
    empty.empty_cache()
    assert _stat("requested_bytes.all.current") == base_bytes


def test_out_of_memory_names_the_figures_and_the_next_operation_works(empty):
    _free, total = empty.mem_get_info()
    with pytest.raises(torch.OutOfMemoryError) as caught:
        _block(2 * total)
    text = str(caught.value).lower()
    for word in ("allocate", "reserved", "free", "musa:0" if "musa:0" in text else "device 0"):
        assert word in text, f"{word!r} is missing in: {caught.value}"
    assert any(unit in text for unit in ("gib", "mib"))
    assert _stat("num_ooms") >= 1
    assert (torch.ones(4, device="musa") + 1).cpu().tolist() == [2] * 4
    assert empty.mem_get_info()[1] == total


def _asks_for_a_smaller_batch(error):
    """Whether accelerate's find_executable_batch_size recognises the error as exhausted memory."""
    return isinstance(error, RuntimeError) and len(error.args) == 1 and " out of memory." in error.args[0]


@pytest.mark.parametrize("size", [1 << 45, 1 << 48, 1 << 60, (1 << 63) - 1])
def test_a_size_beyond_the_device_is_recognised_as_out_of_memory(empty, size):
    with pytest.raises(torch.OutOfMemoryError) as caught:
        _block(size)
    assert _asks_for_a_smaller_batch(caught.value)
    assert not _asks_for_a_smaller_batch(torch.OutOfMemoryError("out of memory: 3 bytes")), "accepts any text"


def test_a_limit_of_the_process_is_recognised_as_out_of_memory(empty):
    empty.set_per_process_memory_fraction(min(1.0, 96 * MIB / empty.mem_get_info()[1]))
    try:
        with pytest.raises(torch.OutOfMemoryError) as caught:
            _block(120 * MIB)
    finally:
        empty.set_per_process_memory_fraction(1.0)
    assert _asks_for_a_smaller_batch(caught.value)


def test_the_cache_is_released_before_memory_runs_out(empty):
    _free, _ = empty.mem_get_info()
    empty.set_per_process_memory_fraction(min(1.0, 96 * MIB / empty.mem_get_info()[1]))
    try:
        cached = _block(64 * MIB)
        del cached
        assert empty.memory_reserved() >= 64 * MIB
        # Fits only after the cached segment is released.
        x = _block(80 * MIB)
        assert x.numel() == 80 * MIB
        with pytest.raises(torch.OutOfMemoryError, match=r"(?i)limit|fraction|allowed"):
            _block(90 * MIB)
        del x
    finally:
        empty.set_per_process_memory_fraction(1.0)


def test_a_refusal_by_the_driver_is_retried_after_emptying_the_cache(empty, emulator):
    cached = _block(30 * MIB)
    del cached
    retries = _stat("num_alloc_retries")
    emulator.fail_next("musaMalloc", MEMORY_ALLOCATION)
    x = _block(60 * MIB)
    assert _stat("num_alloc_retries") == retries + 1
    x.fill_(1)
    assert x.cpu().eq(1).all()


def test_an_exhausted_device_raises_and_loses_nothing(empty, emulator):
    keep = torch.full((1000,), 3.0, device="musa")
    before = empty.memory_allocated()
    for n in range(1, 6):
        emulator.fail_nth("musaMalloc", n, MEMORY_ALLOCATION)
    with pytest.raises(torch.OutOfMemoryError):
        _block(60 * MIB)
    emulator.clear_faults()
    assert empty.memory_allocated() == before
    assert keep.cpu().eq(3).all()
    assert _block(60 * MIB).numel() == 60 * MIB


def test_each_device_has_its_own_memory(two_devices):
    before = [two_devices.memory_allocated(index) for index in range(2)]
    x = torch.empty(MIB, dtype=torch.uint8, device="musa:1")
    assert two_devices.memory_allocated(0) == before[0]
    assert two_devices.memory_allocated(1) == before[1] + MIB
    del x


def test_addresses_of_two_devices_differ(two_devices):
    x, y = torch.zeros(4, device="musa:0"), torch.zeros(4, device="musa:1")
    assert x.data_ptr() != y.data_ptr()


def test_tensors_can_be_freed_on_other_threads(empty):
    before = empty.memory_allocated()
    blocks = [[_block(generator * KIB + 1)] for generator in range(200)]

    def drop(part):
        for holder in part:
            holder.clear()

    threads = [threading.Thread(target=drop, args=(blocks[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert empty.memory_allocated() == before
