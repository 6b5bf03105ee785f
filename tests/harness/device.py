# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The device under test, and what the machine below it can do."""

from __future__ import annotations

import os

import torch

# "cpu" turns every comparison into cpu against cpu: that is how the harness itself is debugged.
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
            "TORCH_DEVICE_BACKEND_AUTOLOAD=0 keeps it out. Run: python3 tools/dev.py setup"
        )
    if not module.is_available():
        return (
            f"torch.{DEVICE}.is_available() is False: no MUSA SDK with a device was found. "
            "Run: python -m torch_musa doctor"
        )
    return None


def host_can_address_device_memory() -> bool:
    """True where device memory is also host memory (unified-memory parts, the emulator's default mode)."""
    if DEVICE == "cpu":
        return True
    return bool(torch.musa.get_device_properties(0).is_integrated)


def synchronize() -> None:
    """Wait for everything that was enqueued on the device under test."""
    if DEVICE != "cpu":
        torch.accelerator.synchronize()
