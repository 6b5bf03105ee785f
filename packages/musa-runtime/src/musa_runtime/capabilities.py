# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Abilities of the installed SDK and its devices that decide how packs compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._load import extension
from .initialization import lazy_init

if TYPE_CHECKING:
    from ._C import Capabilities


def capabilities() -> Capabilities:
    """Returns the abilities of the devices, which are the same for all devices of a machine.

    `host_addressable`: the host can read and write memory that `musaMalloc` returned.
    `computes_on_host`: the SDK declares that its devices compute on the host's processors, as the emulator
    does, and the host can address their memory. Kernels that run on the host are then preferred.

    Initializes the device. Raises NoDeviceError if there is none.
    """
    lazy_init()
    return extension().capabilities()
