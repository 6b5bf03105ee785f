# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The device under test, and properties of its machine."""

from __future__ import annotations

import os

import torch

# "cpu" compares the CPU with itself, to debug the harness.
DEVICE = os.environ.get("MUSA_TEST_DEVICE", "musa")

MEMORY_MODE = os.environ.get("MUSA_EMULATOR_MEMORY", "")
EXECUTION_MODE = os.environ.get("MUSA_EMULATOR_MODE", "inline")


def unavailable_reason() -> str | None:
    """Why the device under test cannot be used, or None."""
    if DEVICE == "cpu":
        return None
    module = getattr(torch, DEVICE, None)
    if module is None:
        return (
            f"torch.{DEVICE} does not exist: torch-musa is not installed in this environment, or "
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 disables it. Fix: python3 tools/dev.py setup"
        )
    if not module.is_available():
        return (
            f"torch.{DEVICE}.is_available() is False: no MUSA SDK with a device was found. "
            "Fix: python -m torch_musa doctor"
        )
    return None


def host_can_address_device_memory() -> bool:
    """Whether device memory is also host memory (unified-memory devices, the emulator's default mode)."""
    if DEVICE == "cpu":
        return True
    from musa_runtime.capabilities import host_addressable

    return host_addressable()


def computes_float64() -> bool:
    """Whether kernels of the device get calls with float64."""
    if DEVICE == "cpu":
        return True
    from musa_runtime.capabilities import computes_float64 as answer

    return answer()


def synchronize() -> None:
    """Wait for everything that was enqueued on the device under test."""
    if DEVICE != "cpu":
        torch.accelerator.synchronize()
