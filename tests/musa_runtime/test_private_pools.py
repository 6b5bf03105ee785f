# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Private pools: the memory and the holders of each pool, and work that is deferred until a capture ends."""

import contextlib
import ctypes
import gc
import threading

import pytest
import torch

from tests.harness.emulator import loaded_sdk

MIB = 1 << 20
GLOBAL = 0  # musaStreamCaptureModeGlobal


@pytest.fixture
def native(musa):
    """The private extension module, with an empty cache before and after."""
    from musa_runtime import _C

    def settle():
        gc.collect()
        for index in range(musa.device_count()):
            with musa.device(index):
                musa.synchronize()
        musa.empty_cache()

    settle()
    yield _C
    settle()


@contextlib.contextmanager
def filling(native, pool, device=0):
    """Allocations of this thread come from the pool; the region's reference to the pool ends with it."""
    native.begin_allocate_current_thread_to_pool(device, pool)
    try:
        yield
    finally:
        native.end_allocate_to_pool(device, pool)
        native.release_pool(device, pool)


@contextlib.contextmanager
def pool_on(native, device=0):
    """A pool that the test holds."""
    pool = native.graph_pool_handle()
    native.create_or_incref_pool(device, pool)
    try:
        yield pool
    finally:
        native.release_pool(device, pool)


def _block(size, device="musa"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def _pool_of(tensor):
    address = tensor.data_ptr()
    for segment in torch.musa.memory_snapshot():
        if segment["address"] <= address < segment["address"] + segment["total_size"]:
            return segment["segment_pool_id"]
    raise AssertionError(f"no segment holds {address:#x}")


def _figures(device=0):
    """Returns the reserved bytes of each private pool."""
    nested = torch.musa.memory_stats_as_nested_dict(device)
    return {pool: stats["all"] for pool, stats in nested["reserved_bytes_by_private_pools"].items()}


def _reserved(pool, device=0):
    return _figures(device).get(pool, {"current": 0})["current"]


def test_handles_differ_and_are_not_the_default_pool(native):
    handles = [native.graph_pool_handle(user) for user in (True, False, True, False)]
    assert len(set(handles)) == 4
    assert (0, 0) not in handles
    assert all(first == 0 for first, _ in handles[::2])
    assert all(second == 0 for _, second in handles[1::2])


@pytest.mark.parametrize("size", [100, 3 * MIB])
def test_allocations_while_filling_are_in_the_pool(native, size):
    with pool_on(native) as pool:
        outside = _block(size)
        with filling(native, pool):
            inside = _block(size)
        after = _block(size)
        assert _pool_of(inside) == pool
        assert _pool_of(outside) == _pool_of(after) == (0, 0)
        del inside


def test_a_freed_block_returns_to_its_own_pool(native):
    with pool_on(native) as pool:
        with filling(native, pool):
            x = _block(3 * MIB)
        pointer = x.data_ptr()
        del x  # outside the region
        y = _block(3 * MIB)
        assert y.data_ptr() != pointer, "the default pool took a private block"
        with filling(native, pool):
            z = _block(3 * MIB)
        assert z.data_ptr() == pointer
        del y, z


def test_a_block_of_the_default_pool_freed_while_filling_stays_there(native):
    x = _block(3 * MIB)
    pointer = x.data_ptr()
    with pool_on(native) as pool:
        with filling(native, pool):
            del x
            y = _block(3 * MIB)
            assert y.data_ptr() != pointer
        z = _block(3 * MIB)
        assert z.data_ptr() == pointer
        del y


def test_a_pool_that_is_held_keeps_its_memory(native, musa):
    with pool_on(native) as pool:
        with filling(native, pool):
            x = _block(30 * MIB)
        del x
        held = _reserved(pool)
        assert held >= 30 * MIB
        musa.empty_cache()
        native.empty_pool(pool)
        assert _reserved(pool) == held, "memory that a graph's replay would use was released"
    assert native.pool_use_count(0, pool) == 0
    musa.empty_cache()
    assert _reserved(pool) == 0


def test_one_pool_can_be_emptied_alone(native, musa):
    pools = [native.graph_pool_handle() for _ in range(2)]
    for pool in pools:
        with filling(native, pool):
            x = _block(30 * MIB)
        del x
    kept, default = _reserved(pools[1]), musa.memory_reserved()
    native.empty_pool(pools[0])
    assert _reserved(pools[0]) == 0
    assert _reserved(pools[1]) == kept
    assert musa.memory_reserved() < default
    musa.empty_cache()
    assert _reserved(pools[1]) == 0


def test_a_released_pool_frees_its_memory_with_its_tensors(native, musa):
    pool = native.graph_pool_handle()
    with filling(native, pool):
        x = torch.full((MIB,), 3.0, device="musa")
    assert native.pool_use_count(0, pool) == 0
    musa.empty_cache()
    assert _reserved(pool) >= 4 * MIB
    assert x.cpu().eq(3).all(), "memory in use was released"
    del x
    musa.empty_cache()
    assert _reserved(pool) == 0


def test_memory_of_released_pools_is_used_before_memory_runs_out(native, musa):
    pool = native.graph_pool_handle()
    with filling(native, pool):
        x = _block(64 * MIB)
    del x
    limit = 96 * MIB + musa.memory_reserved() - _reserved(pool)
    musa.set_per_process_memory_fraction(min(1.0, limit / musa.mem_get_info()[1]))
    try:
        y = _block(80 * MIB)  # fits only after the pool's segment is released
        assert _reserved(pool) == 0
        del y
    finally:
        musa.set_per_process_memory_fraction(1.0)


def test_holders_are_counted(native):
    pool = native.graph_pool_handle()
    assert native.pool_use_count(0, pool) == 0
    native.create_or_incref_pool(0, pool)
    with filling(native, pool):
        assert native.pool_use_count(0, pool) == 2
    assert native.pool_use_count(0, pool) == 1
    native.release_pool(0, pool)
    assert native.pool_use_count(0, pool) == 0
    with pytest.raises(RuntimeError, match="no private memory pool"):
        native.release_pool(0, pool)


def test_a_pool_can_be_reused_by_its_id_while_tensors_hold_it(native):
    pool = native.graph_pool_handle()
    with filling(native, pool):
        x = _block(MIB)
    with filling(native, pool):
        y = _block(MIB)
    assert _pool_of(x) == _pool_of(y) == pool
    del x, y


def test_wrong_use_is_named(native):
    with pytest.raises(RuntimeError, match="default memory pool"):
        native.begin_allocate_current_thread_to_pool(0, (0, 0))
    with pytest.raises(RuntimeError, match="beginAllocateToPool comes first"):
        native.end_allocate_to_pool(0, native.graph_pool_handle())
    with pool_on(native) as pool, filling(native, pool):
        with pytest.raises(RuntimeError, match="already"):
            native.begin_allocate_current_thread_to_pool(0, pool)
        assert native.pool_use_count(0, pool) == 2, "the refused region still holds the pool"
    with pytest.raises(RuntimeError, match="markCaptureBegin"):
        native.mark_capture_end(0)


def test_the_innermost_of_nested_regions_is_used(native):
    with pool_on(native) as outer, pool_on(native) as inner:
        with filling(native, outer):
            with filling(native, inner):
                x = _block(MIB)
            y = _block(MIB)
        assert _pool_of(x) == inner
        assert _pool_of(y) == outer
        del x, y


def test_other_threads_allocate_elsewhere(native):
    with pool_on(native) as pool:
        found = []
        with filling(native, pool):
            thread = threading.Thread(target=lambda: found.append(_block(MIB)))
            thread.start()
            thread.join()
        assert _pool_of(found[0]) == (0, 0)
        found.clear()


def test_a_stream_can_be_chosen_in_place_of_a_thread(native, musa):
    side = musa.Stream()
    with pool_on(native) as pool:
        with musa.stream(side):
            native.begin_allocate_current_stream_to_pool(0, pool)
        x = _block(MIB)
        with musa.stream(side):
            y = _block(MIB)
        native.end_allocate_to_pool(0, pool)
        native.release_pool(0, pool)
        assert _pool_of(x) == (0, 0)
        assert _pool_of(y) == pool
        del y


def test_each_device_has_its_own_pools(native, two_devices):
    with pool_on(native, 1) as pool, filling(native, pool, 1):
        x, y = _block(MIB, "musa:0"), _block(MIB, "musa:1")
        assert _pool_of(x) == (0, 0)
        assert _pool_of(y) == pool
        assert native.pool_use_count(0, pool) == 0
        del y


def test_figures_by_pool(native, musa):
    with pool_on(native) as pool:
        with filling(native, pool):
            x = _block(30 * MIB)
        del x
        row = _figures()[pool]
        assert row["current"] == row["peak"] == row["allocated"] == 30 * MIB
        musa.empty_cache()
        assert _figures()[pool]["current"] == 30 * MIB, "a held pool keeps its memory"
        musa.reset_accumulated_memory_stats()
        assert _figures()[pool]["allocated"] == 0
    musa.empty_cache()
    assert pool not in _figures()


def test_the_figures_of_pools_that_are_gone_do_not_accumulate(musa):
    def use_and_drop_a_pool():
        pool = musa.MemPool()
        with musa.use_mem_pool(pool):
            _block(1024)

    def capture_and_drop_a_graph():
        graph = musa.MUSAGraph()
        with musa.graph(graph):
            _block(1024).zero_()

    for make in (use_and_drop_a_pool, capture_and_drop_a_graph):
        make()
        musa.empty_cache()
        before = len(musa.memory_stats())
        for _ in range(50):
            make()
        musa.empty_cache()
        assert len(musa.memory_stats()) == before


def test_expandable_segments_belong_to_their_pool(native, musa):
    torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    try:
        before = musa.memory_reserved()
        with pool_on(native) as pool:
            with filling(native, pool):
                x = _block(30 * MIB)
                y = _block(100)
            assert _pool_of(x) == _pool_of(y) == pool
            assert _reserved(pool) == musa.memory_reserved() - before >= 30 * MIB
            assert all(s["is_expandable"] for s in musa.memory_snapshot() if s["segment_pool_id"] == pool)
            del x
            musa.empty_cache()
            assert _reserved(pool) >= 30 * MIB, "a held pool must keep its pages"
        musa.empty_cache()
        assert 0 < _reserved(pool) < 30 * MIB
        del y
        musa.empty_cache()
        assert _reserved(pool) == 0
        assert musa.memory_reserved() == before
    finally:
        torch._C._accelerator_setAllocatorSettings("expandable_segments:False")


class _Capture:
    """A stream capture that is made with the SDK directly, and announced to the allocator."""

    def __init__(self, native, stream):
        self.native, self.sdk = native, loaded_sdk()
        self.stream = ctypes.c_void_p(stream.musa_stream)

    def __enter__(self):
        self.native.mark_capture_begin(0)
        assert self.sdk.musaStreamBeginCapture(self.stream, GLOBAL) == 0
        return self

    def still_valid(self):
        status = ctypes.c_int(-1)
        assert self.sdk.musaStreamIsCapturing(self.stream, ctypes.byref(status)) == 0
        return status.value == 1

    def __exit__(self, *_):
        graph = ctypes.c_void_p()
        self.code = self.sdk.musaStreamEndCapture(self.stream, ctypes.byref(graph))
        self.native.mark_capture_end(0)
        if graph.value:
            self.sdk.musaGraphDestroy(graph)


def test_a_capture_survives_all_operations_of_the_allocator(native, musa):
    side, other = musa.Stream(), musa.Stream()
    musa.synchronize()
    before = _block(3 * MIB)
    before.record_stream(other)
    waiting = _block(3 * MIB)
    waiting.record_stream(other)
    del waiting  # its event is pending when the capture begins
    cached = _block(30 * MIB)
    del cached
    with pool_on(native) as pool:
        with musa.stream(side), _Capture(native, side) as capture:
            with filling(native, pool):
                inside = _block(5 * MIB)
            pointer = before.data_ptr()
            del before  # would record an event
            assert capture.still_valid()
            reserved = musa.memory_reserved()
            musa.empty_cache()  # would wait for the device
            assert musa.memory_reserved() == reserved
            again = _block(3 * MIB)
            assert again.data_ptr() != pointer, "memory that another stream may use was reused"
            assert capture.still_valid()
            del again, inside
        assert capture.code == 0, "the capture was lost"
    assert native.pool_use_count(0, pool) == 0
    musa.synchronize()
    musa.empty_cache()
    assert musa.memory_stats()["active.all.current"] == musa.memory_stats()["allocation.all.current"], (
        "memory that was freed during the capture is still pending"
    )


def test_running_out_of_memory_during_a_capture_is_an_error_and_not_a_lost_capture(native, musa):
    side = musa.Stream()
    with musa.stream(side), _Capture(native, side) as capture:
        with pytest.raises(torch.OutOfMemoryError, match="captured"):
            _block(2 * musa.mem_get_info()[1])
        assert capture.still_valid()
    assert capture.code == 0


def test_memory_freed_by_many_threads_waits_for_the_last_capture(native, musa):
    other = musa.Stream()
    for _ in range(2):
        native.mark_capture_begin(0)
    blocks = [_block(MIB) for _ in range(8)]
    for block in blocks:
        block.record_stream(other)
    active = musa.memory_stats()["active.all.current"]
    threads = [threading.Thread(target=blocks.pop) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del block
    assert musa.memory_stats()["active.all.current"] == active
    native.mark_capture_end(0)
    assert musa.memory_stats()["active.all.current"] == active
    native.mark_capture_end(0)
    other.synchronize()
    musa.empty_cache()
    assert musa.memory_stats()["active.all.current"] == active - 8
