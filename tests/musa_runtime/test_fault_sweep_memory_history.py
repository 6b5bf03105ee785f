# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Failures of every SDK call while the history of memory is recorded."""

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION
from tests.musa_runtime import test_fault_sweep as sweep
from tests.musa_runtime.test_fault_sweep import _full_stream_pools  # noqa: F401 - a fixture of every test here

MIB = 1 << 20


def _recorded(work):
    memory = torch.musa.memory
    memory._record_memory_history(stacks="python", max_entries=200, global_record_annotations=True)
    try:
        with torch.profiler.record_function("recorded"):
            work()
        snapshot = memory._snapshot()
        assert {"alloc", "free_completed"} <= {entry["action"] for entry in snapshot["device_traces"][0]}
    finally:
        memory._record_memory_history(enabled=None)


def recorded_allocations():
    def work():
        torch.musa.empty_cache()
        for size in (100, 3 * MIB, 30 * MIB):
            torch.empty(size, dtype=torch.uint8, device="musa")
        torch.musa.empty_cache()

    _recorded(work)


def recorded_use_on_two_streams():
    def work():
        side = torch.musa.Stream()
        tensor = torch.ones(100_000, device="musa")
        tensor.record_stream(side)
        del tensor
        torch.musa.synchronize()
        torch.musa.empty_cache()

    _recorded(work)


@pytest.mark.parametrize("scenario", [recorded_allocations, recorded_use_on_two_streams])
def test_any_sdk_call_may_fail_while_memory_is_recorded(two_devices, emulator, scenario):
    sweep.test_any_sdk_call_may_fail(two_devices, emulator, scenario, MEMORY_ALLOCATION)
    # The end of each recording clears the history, even if a call failed.
    assert torch.musa.memory._snapshot()["device_traces"] == [[]] * two_devices.device_count()
