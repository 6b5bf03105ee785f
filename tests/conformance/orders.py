# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Orders of providers under which sweeps compare every operator with the CPU in one process."""

from __future__ import annotations

import contextlib

import torch

from tests.harness.device import DEVICE, host_can_address_device_memory

# As installed, and each pack first with torch's own kernels for what it does not serve.
ORDERS = ("installed", "ported", "mudnn")


def order(name: str) -> contextlib.AbstractContextManager:
    if DEVICE == "cpu" or name == "installed":
        return contextlib.nullcontext()
    last = "host" if host_can_address_device_memory() else "host-copy"
    return torch.musa.ops.prefer("*", name, "runtime", last)
