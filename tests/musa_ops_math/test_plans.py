# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Plans of muFFT: the cache and its interface, captures, threads, and each call of muFFT that fails."""

from __future__ import annotations

import gc
import re
import threading

import pytest
import torch

from tests.harness.emulator import INVALID_VALUE, MEMORY_ALLOCATION, UNKNOWN
from tests.harness.subprocesses import run_code
from tests.musa_ops_mudnn.test_symbols import imported

# The names that public programs call on the real SDK (docs/design/math.md).
KNOWN = {
    *("mufftCreate", "mufftDestroy", "mufftSetAutoAllocation", "mufftSetStream", "mufftSetWorkArea"),
    *("mufftXtMakePlanMany", "mufftXtExec"),
}


@pytest.fixture
def cache(musa):
    cache = torch.backends.musa.fft_plan_cache
    cache.clear()
    before = cache.max_size
    yield cache
    cache.max_size = before
    cache.clear()


def transform(size: int) -> torch.Tensor:
    return torch.fft.fft(torch.ones(2, size, dtype=torch.complex64, device="musa"))


def right(result: torch.Tensor) -> bool:
    spectrum = torch.zeros(result.shape, dtype=torch.complex64)
    spectrum[:, 0] = result.size(1)
    return torch.allclose(result.cpu(), spectrum, atol=1e-4)


def test_the_interface_is_that_of_torch_cuda(cache):
    names = {name for name in vars(torch.backends.cuda.cuFFTPlanCache) if not name.startswith("_")}
    assert {"size", "max_size", "clear"} <= names and all(hasattr(cache, name) for name in names)
    assert cache.max_size == 4096 and cache.size == 0
    transform(8), transform(8), transform(12)
    assert cache.size == cache[0].size == cache["musa:0"].size == cache[torch.device("musa")].size == 2
    cache[0].clear()
    assert cache.size == 0


def test_the_least_recently_used_plan_is_destroyed(cache, emulator):
    cache.max_size = 2
    transform(8), transform(12), transform(8)
    made = emulator.calls("mufftXtMakePlanMany")
    assert right(transform(16)) and cache.size == 2  # in place of that of 12
    assert right(transform(8)) and emulator.calls("mufftXtMakePlanMany") == made + 1
    assert right(transform(12)) and emulator.calls("mufftXtMakePlanMany") == made + 2
    cache.max_size = 0
    assert cache.size == 0 and right(transform(8)) and cache.size == 0


def test_wrong_settings_are_refused(cache):
    with pytest.raises(RuntimeError, match="must not be negative"):
        cache.max_size = -1
    with pytest.raises(TypeError, match="must be an int"):
        cache.max_size = 1.5
    for device in (99, "cuda:0", "musa:99"):
        with pytest.raises(RuntimeError, match="expected a musa device below"):
            cache[device]
    assert cache.max_size == 4096


@pytest.mark.once
def test_a_setting_before_the_first_use_of_the_device(musa):
    run_code(
        """
        import torch
        torch.backends.musa.fft_plan_cache.max_size = 3
        for size in range(1, 6):
            torch.fft.fft(torch.ones(size, dtype=torch.complex64, device="musa"))
        assert torch.backends.musa.fft_plan_cache.size == 3
        """
    )


def test_a_captured_transform_is_replayed_after_its_plan_left_the_cache(cache, musa):
    x = torch.zeros(4, 32, device="musa")
    graph = musa.MUSAGraph()
    torch.fft.irfft(torch.fft.rfft(x))  # makes the plans that the capture then keeps
    before = cache.size
    with musa.graph(graph):
        spectrum = torch.fft.rfft(x)
        new = torch.fft.fft(torch.view_as_complex(x.view(4, 16, 2)))  # a plan that is made during the capture
        back = torch.fft.irfft(spectrum)
    assert cache.size < before
    cache.clear()
    for _ in range(2):
        values = torch.randn(4, 32)
        x.copy_(values)
        graph.replay()
        torch.testing.assert_close(spectrum.cpu(), torch.fft.rfft(values), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(back.cpu(), values, rtol=1e-4, atol=1e-4)
        pairs = torch.view_as_complex(values.view(4, 16, 2))
        torch.testing.assert_close(new.cpu(), torch.fft.fft(pairs), rtol=1e-4, atol=1e-4)


def test_a_cache_that_cannot_be_cleared_raises(cache, musa):
    transform(8)
    graph = musa.MUSAGraph()
    with pytest.raises(RuntimeError, match="captur"), musa.graph(graph):
        cache.clear()
    musa.synchronize()
    cache.clear()
    assert cache.size == 0 and right(transform(8))


def test_threads_share_plans(cache):
    x = torch.randn(8, 96)
    want, results = torch.fft.rfft(x), {}

    def run(number: int) -> None:
        with torch.musa.stream(torch.musa.Stream()):
            results[number] = [torch.fft.rfft(x.to("musa")).cpu() for _ in range(10)]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.size == 1 and len(results) == 4
    for kept in results.values():
        for result in kept:
            torch.testing.assert_close(result, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("code", [MEMORY_ALLOCATION, INVALID_VALUE, UNKNOWN])
@pytest.mark.parametrize("call", sorted(KNOWN - {"mufftDestroy"}))
def test_a_call_that_fails_is_named_and_leaves_nothing_behind(cache, musa, emulator, call, code):
    def settled() -> int:
        gc.collect()
        musa.synchronize()
        return musa.memory_allocated()

    transform(8)
    cache.clear()
    before = settled()
    # A plan that ran out of memory is made again once.
    twice = code == MEMORY_ALLOCATION and call in ("mufftSetAutoAllocation", "mufftXtMakePlanMany")
    emulator.fail_nth(call, 1, code)
    if twice:
        assert right(transform(8))
    else:
        kind = musa.OutOfMemoryError if code == MEMORY_ALLOCATION else RuntimeError
        with pytest.raises(kind, match=rf"muFFT answered MUFFT_\w+ to (?:{call}|mufftXtMakePlanMany)"):
            transform(8)
    assert not emulator.fault_pending()
    works = right(transform(8))  # in a statement of its own, so that no temporary value is kept
    assert works and settled() == before


@pytest.mark.once
def test_the_pack_calls_only_known_names(musa):
    from musa_ops_math import _library

    called = {name for name in imported(_library.paths()[-1]) if re.match(r"mufft", name)}
    assert called == KNOWN
