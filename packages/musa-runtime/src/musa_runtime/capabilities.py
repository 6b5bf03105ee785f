# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Abilities of the installed SDK and its devices that decide how packs compute. They are the same for all
devices of a machine. Each function initializes the device, and raises NoDeviceError if there is none."""

from __future__ import annotations

from ._load import extension
from .initialization import lazy_init


def host_addressable() -> bool:
    """Whether the host can read and write memory that `musaMalloc` returned."""
    lazy_init()
    return extension().host_addressable()


def computes_on_host() -> bool:
    """Whether the SDK declares that its devices compute on the host's processors, as the emulator does, and
    the host can address their memory. Kernels that run on the host are then preferred."""
    lazy_init()
    return extension().computes_on_host()


def computes_float64() -> bool:
    """Whether the devices compute with float64 and complex128. If not, operators compute them on copies in
    host memory. `TORCH_MUSA_FLOAT64` overrides the SDK's declaration."""
    lazy_init()
    return extension().computes_float64()
