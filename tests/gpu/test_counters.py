# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What musa-cuda counts, and faults that tests inject, beside real work of the GPU."""

from __future__ import annotations

import pytest
import torch

from tests.harness import emulator

pytestmark = pytest.mark.once


def test_launches_of_kernels_are_counted() -> None:
    sdk = emulator.emulator_or_skip()
    x = torch.ones(16, device="musa")
    before = sdk.calls("musaLaunchKernel")
    for _ in range(5):
        x.add_(1)
    assert sdk.calls("musaLaunchKernel") == before + 5


def test_memory_of_the_allocator_is_counted() -> None:
    sdk = emulator.emulator_or_skip()
    torch.musa.empty_cache()
    before = sdk.live_bytes(0)
    x = torch.empty(1 << 26, dtype=torch.uint8, device="musa")
    assert sdk.live_bytes(0) >= before + x.numel()
    del x
    torch.musa.empty_cache()
    assert sdk.live_bytes(0) == before


def test_an_injected_fault_of_a_launch_reaches_the_caller() -> None:
    sdk = emulator.emulator_or_skip()
    x = torch.ones(16, device="musa")
    torch.musa.synchronize()
    sdk.fail_next("musaLaunchKernel", emulator.INVALID_VALUE)
    try:
        with pytest.raises(RuntimeError, match="invalid argument"):
            x.add_(1)
    finally:
        sdk.clear_faults()  # the next test would meet a fault that no call has reached
    x.add_(1)
    assert x.sum().item() == 32
