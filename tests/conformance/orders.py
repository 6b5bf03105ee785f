# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Orders of providers under which sweeps compare every operator with the CPU in one process."""

from __future__ import annotations

import contextlib

import torch

from tests.harness.device import DEVICE, host_can_address_device_memory

# The installed order, and each pack followed by torch's own kernels.
ORDERS = ("installed", "ported", "mudnn")


def order(name: str) -> contextlib.AbstractContextManager:
    if DEVICE == "cpu" or name == "installed":
        return contextlib.nullcontext()
    last = "host" if host_can_address_device_memory() else "host-copy"
    return torch.musa.ops.prefer("*", name, "runtime", last)
