# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""MemPool, use_mem_pool, and allocators of the user."""

import ctypes
import gc
import os
import shutil
import subprocess
import threading

import pytest
import torch

from tests.harness.subprocesses import run_code

MIB = 1 << 20

# An allocator that counts its calls. It calls the SDK's library that the process has loaded.
SOURCE = r"""
#include <cstdint>
#include <cstdio>
#include <sys/types.h>
#include <musa_runtime_api.h>
namespace {
long allocations, frees, bytes, refuse, last_device, last_stream;
}
extern "C" {
void* counted_alloc(ssize_t size, int device, musaStream_t stream) {
  void* ptr = nullptr;
  if (refuse || musaMalloc(&ptr, size) != musaSuccess) return nullptr;
  ++allocations; bytes += size; last_device = device; last_stream = reinterpret_cast<intptr_t>(stream);
  return ptr;
}
void counted_free(void* ptr, ssize_t size, int device, musaStream_t) {
  ++frees; bytes -= size; last_device = device;
  musaFree(ptr);
}
long counted(int what) {
  const long answers[] = {allocations, frees, bytes, last_device, last_stream};
  return answers[what];
}
void counted_refuse(int value) { refuse = value; }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The path of a compiled allocator."""
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        pytest.fail(f"needs a C++ compiler, and there is no {compiler}")
    from musa_runtime import sdk

    home = sdk.resolve().home
    folder = tmp_path_factory.mktemp("allocator")
    source, target = folder / "counted.cpp", folder / "libcounted.so"
    source.write_text(SOURCE)
    # Not linked with the SDK, so that its symbols resolve to the library in use.
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", f"-I{home}/include", "-o", target, source], check=True
    )
    return target


class Counted:
    """The compiled allocator, and its counters."""

    def __init__(self, library):
        self._library = ctypes.CDLL(os.fspath(library))
        self._library.counted.restype = ctypes.c_long
        self.allocator = torch.musa.MUSAPluggableAllocator(library, "counted_alloc", "counted_free")

    allocations = property(lambda self: self._library.counted(0))
    frees = property(lambda self: self._library.counted(1))
    bytes = property(lambda self: self._library.counted(2))
    device = property(lambda self: self._library.counted(3))
    stream = property(lambda self: self._library.counted(4))

    def refuse(self, value):
        self._library.counted_refuse(int(value))


@pytest.fixture
def counted(musa, library):
    from tests.harness.emulator import loaded_sdk

    ctypes.CDLL(loaded_sdk()._name, mode=ctypes.RTLD_GLOBAL)
    counted = Counted(library)
    yield counted
    counted.refuse(False)
    gc.collect()
    assert counted.bytes == 0, "memory of the pluggable allocator leaked"


def _block(size, device="musa"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def test_tensors_of_a_region_are_allocated_in_the_pool(musa):
    pool = musa.MemPool()
    with musa.use_mem_pool(pool):
        x = _block(3 * MIB)
    y = _block(3 * MIB)
    (segment,) = pool.snapshot()
    assert segment["segment_pool_id"] == pool.id
    assert segment["address"] <= x.data_ptr() < segment["address"] + segment["total_size"]
    assert not segment["address"] <= y.data_ptr() < segment["address"] + segment["total_size"]
    del x, y


def test_a_deleted_pool_frees_its_memory(musa, emulator):
    pool = musa.MemPool()
    with musa.use_mem_pool(pool):
        x = _block(30 * MIB)
    del x
    live = emulator.live_bytes(0)
    del pool
    gc.collect()
    assert emulator.live_bytes(0) == live - 30 * MIB


def test_tensors_outlive_their_pool(musa, emulator):
    musa.empty_cache()
    pool = musa.MemPool()
    with musa.use_mem_pool(pool):
        x = torch.full((MIB,), 7.0, device="musa")
    del pool
    gc.collect()
    live = emulator.live_bytes(0)
    assert x.cpu().eq(7).all()
    del x
    musa.empty_cache()
    assert emulator.live_bytes(0) < live


def test_use_is_counted(musa):
    pool = musa.MemPool()
    assert pool.use_count() == 1
    with musa.use_mem_pool(pool):
        assert pool.use_count() == 2
    assert pool.use_count() == 1
    assert "use_count=1" in repr(pool)


def test_ids_differ(musa):
    pools = [musa.MemPool() for _ in range(3)]
    assert len({pool.id for pool in pools}) == 3
    assert (0, 0) not in {pool.id for pool in pools}


def test_a_region_that_fails_ends(musa):
    pool = musa.MemPool()
    with pytest.raises(ZeroDivisionError), musa.use_mem_pool(pool):
        1 / 0  # noqa: B018
    assert pool.use_count() == 1
    x = _block(3 * MIB)
    assert pool.snapshot() == []
    del x


def test_nesting_a_pool_in_itself_is_refused_and_the_outer_region_stays_active(musa):
    pool = musa.MemPool()
    with musa.use_mem_pool(pool):
        with pytest.raises(RuntimeError, match="already"), musa.use_mem_pool(pool):
            pass
        x = _block(MIB)
    assert len(pool.snapshot()) == 1
    del x


def test_threads_fill_their_own_pools(musa):
    pools = [musa.MemPool() for _ in range(4)]
    blocks = [[] for _ in pools]

    def work(index):
        with musa.use_mem_pool(pools[index]):
            for size in range(1, 40):
                blocks[index].append(_block(size * 10_000))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pool, held in zip(pools, blocks, strict=True):
        spans = [(s["address"], s["address"] + s["total_size"]) for s in pool.snapshot()]
        assert len(held) == 39
        assert all(any(low <= b.data_ptr() < high for low, high in spans) for b in held)
        held.clear()


def test_a_pool_of_another_device(two_devices):
    with two_devices.device(1):
        pool = two_devices.MemPool()
    assert pool.device == 1
    with two_devices.use_mem_pool(pool, device=1):
        x, y = _block(MIB, "musa:1"), _block(MIB, "musa:0")
    assert [segment["device"] for segment in pool.snapshot()] == [1]
    del x, y


def test_a_segment_is_not_split_with_no_split(musa):
    pool = musa.MemPool(no_split=True)
    with musa.use_mem_pool(pool):
        blocks = [_block(size) for size in (1000, 5 * MIB, 3 * MIB)]
    segments = {segment["address"]: segment for segment in pool.snapshot()}
    assert len(segments) == 3
    for block in blocks:
        assert len(segments[block.data_ptr()]["blocks"]) == 1
    assert segments[blocks[0].data_ptr()]["total_size"] == 1024
    blocks.clear()


def test_a_pool_is_used_on_exhausted_memory_with_use_on_oom(musa):
    for helps in (True, False):
        musa.empty_cache()
        pool = musa.MemPool(use_on_oom=helps)
        with musa.use_mem_pool(pool):
            x = _block(64 * MIB)
        pointer = x.data_ptr()
        del x
        musa.set_per_process_memory_fraction((musa.memory_reserved() + MIB) / musa.mem_get_info()[1])
        try:
            if helps:
                y = _block(60 * MIB)
                assert y.data_ptr() == pointer
                del y
            else:
                with pytest.raises(torch.OutOfMemoryError, match="MemPools"):
                    _block(60 * MIB)
        finally:
            musa.set_per_process_memory_fraction(1.0)
        del pool


def test_a_pool_with_its_own_allocator(musa, counted):
    before = counted.allocations
    pool = musa.MemPool(counted.allocator.allocator())
    with musa.use_mem_pool(pool):
        x = torch.full((MIB,), 3.0, device="musa")
        y = torch.full((MIB,), 4.0, device="musa")
    assert counted.allocations == before + 1, "two tensors of 4 MiB must share a segment of 20 MiB"
    assert counted.device == 0
    assert (x + y).cpu().eq(7).all()
    frees = counted.frees
    del x, y
    assert counted.frees == frees, "the pool does not cache"
    del pool
    gc.collect()
    assert counted.frees == frees + 1


def test_the_allocator_of_a_pool_gets_the_stream(musa, counted):
    side = musa.Stream()
    pool = musa.MemPool(counted.allocator.allocator())
    with musa.stream(side), musa.use_mem_pool(pool):
        x = _block(3 * MIB)
    assert counted.stream == side.musa_stream
    del x, pool


def test_an_allocator_without_memory_means_out_of_memory(musa, counted):
    pool = musa.MemPool(counted.allocator.allocator())
    counted.refuse(True)
    with musa.use_mem_pool(pool), pytest.raises(torch.OutOfMemoryError):
        _block(3 * MIB)
    counted.refuse(False)
    with musa.use_mem_pool(pool):
        x = _block(3 * MIB)
    assert x.fill_(1).cpu().eq(1).all()
    del x, pool


def test_python_functions_may_be_a_pools_allocator(musa):
    """They acquire the GIL, which must not happen while the allocator's lock is held."""
    from musa_runtime import _C
    from tests.harness.emulator import loaded_sdk

    sdk = loaded_sdk()
    calls = []
    alloc_type = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)
    free_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p)

    @alloc_type
    def alloc(size, device, stream):
        pointer = ctypes.c_void_p()
        assert sdk.musaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
        other = torch.empty(1000, device="musa:0")  # a nested allocation
        calls.append(("alloc", size, device, other.device.index))
        return pointer.value

    @free_type
    def free(pointer, size, device, stream):
        calls.append(("free", size, device))
        sdk.musaFree(ctypes.c_void_p(pointer))

    addresses = [ctypes.cast(function, ctypes.c_void_p).value for function in (alloc, free)]
    pool = musa.MemPool(_C.custom_allocator(*addresses))
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            torch.empty(4000, device="musa")

    thread = threading.Thread(target=churn)
    thread.start()
    side = musa.Stream()
    try:
        # Selected by stream, so that the function's own allocation does not come from the growing pool.
        with musa.stream(side):
            _C.begin_allocate_current_stream_to_pool(0, pool.id)
        side_block = musa.caching_allocator_alloc(3 * MIB, stream=side)
        _C.end_allocate_to_pool(0, pool.id)
        _C.release_pool(0, pool.id)
        musa.caching_allocator_delete(side_block)
    finally:
        stop.set()
        thread.join()
    del pool
    gc.collect()
    assert [call[0] for call in calls] == ["alloc", "free"]


def test_a_missing_function_is_named(musa, library):
    with pytest.raises(AttributeError, match='extern "C"'):
        musa.MUSAPluggableAllocator(library, "no_such_function", "counted_free")
    with pytest.raises(OSError):
        musa.MUSAPluggableAllocator("/nonexistent/liballocator.so", "a", "b")


def test_the_allocator_cannot_be_changed_after_use(musa, counted):
    with pytest.raises(RuntimeError, match="cannot be changed any more"):
        musa.memory.change_current_allocator(counted.allocator)
    assert musa.memory.get_allocator_backend() == "native"


_CHANGED = """
import ctypes, sys, torch
assert torch.musa.get_allocator_backend() == "native"
library = ctypes.CDLL(sys.argv[1])
allocator = torch.musa.memory.MUSAPluggableAllocator(sys.argv[1], "counted_alloc", "counted_free")
torch.musa.memory.change_current_allocator(allocator)
assert torch.musa.get_allocator_backend() == "pluggable"
x = torch.ones(1000, device="musa")
y = x @ x + torch.nn.functional.relu(x).sum()
assert y.item() == 2000
assert torch.musa.memory_allocated() == library.counted(2) > 0
side = torch.musa.Stream()
with torch.musa.stream(side):
    z = x * 2
x.record_stream(side)
del x
assert z.cpu().eq(2).all()
del y, z
torch.musa.synchronize()
assert library.counted(0) == library.counted(1) > 0
assert torch.musa.memory_allocated() == 0
library.counted_refuse(1)
try:
    torch.ones(1000, device="musa")
except torch.OutOfMemoryError as error:
    print("out of memory:", "pluggable" in str(error))
library.counted_refuse(0)
try:
    torch.musa.MemPool()
except RuntimeError as error:
    print("pool:", "caching allocator" in str(error))
try:
    torch.musa.memory.change_current_allocator(allocator)
except RuntimeError as error:
    print("again:", "any more" in str(error))
print(float(torch.ones(3, device="musa").sum()))
"""


def test_the_whole_process_may_use_another_allocator(musa, library, tmp_path):
    script = tmp_path / "changed.py"
    # The allocator's calls of the SDK must resolve to the library that torch loads.
    script.write_text(_CHANGED)
    out = run_code(
        f"""
        import sys, runpy
        import ctypes
        from musa_runtime import sdk
        home = sdk.resolve().home
        ctypes.CDLL(f"{{home}}/lib/libmusart.so", mode=ctypes.RTLD_GLOBAL)
        sys.argv = ["changed", {os.fspath(library)!r}]
        runpy.run_path({os.fspath(script)!r}, run_name="__main__")
        """
    )
    assert out.splitlines() == ["out of memory: True", "pool: True", "again: True", "3.0"]
