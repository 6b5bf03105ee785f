# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Failures of every SDK call of a memory pool, and of the work that a capture deferred."""

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION
from tests.musa_runtime import test_fault_sweep as sweep
from tests.musa_runtime.test_fault_sweep import _full_stream_pools  # noqa: F401 - a fixture of this module, too

MIB = 1 << 20


def _a_pool_lives_and_dies():
    pool = torch.musa.MemPool()
    with torch.musa.use_mem_pool(pool):
        x = torch.full((MIB,), 3.0, device="musa")
        y = torch.ones(100, device="musa")
    assert x.cpu().eq(3).all()
    del x
    assert y.cpu().eq(1).all()


def _a_pool_of_the_second_device():
    with torch.musa.device(1):
        pool = torch.musa.MemPool(no_split=True)
        with torch.musa.use_mem_pool(pool):
            x = torch.ones(5 * MIB, dtype=torch.uint8, device="musa")
        assert x.cpu().eq(1).all()


def _memory_freed_during_a_capture():
    from musa_runtime import _C

    side = torch.musa.Stream()
    x = torch.ones(100_000, device="musa")
    side.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(side):
        y = x * 2
    x.record_stream(side)
    _C.mark_capture_begin(0)
    try:
        del x
    finally:
        _C.mark_capture_end(0)
    side.synchronize()
    assert y.cpu().eq(2).all()
    torch.musa.empty_cache()


def _a_pool_helps_out():
    torch.musa.empty_cache()
    pool = torch.musa.MemPool(use_on_oom=True)
    with torch.musa.use_mem_pool(pool):
        torch.empty(64 * MIB, dtype=torch.uint8, device="musa")
    total = torch.musa.mem_get_info()[1]
    torch.musa.set_per_process_memory_fraction((torch.musa.memory_reserved() + MIB) / total)
    try:
        torch.empty(60 * MIB, dtype=torch.uint8, device="musa")
    finally:
        torch.musa.set_per_process_memory_fraction(1.0)


SCENARIOS = [
    _a_pool_lives_and_dies,
    _a_pool_of_the_second_device,
    _memory_freed_during_a_capture,
    _a_pool_helps_out,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.strip("_"))
def test_any_sdk_call_of_a_pool_may_fail(two_devices, emulator, scenario):
    sweep.test_any_sdk_call_may_fail(two_devices, emulator, scenario, MEMORY_ALLOCATION)
