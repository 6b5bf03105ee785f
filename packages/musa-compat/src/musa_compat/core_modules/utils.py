# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core._utils`."""

import torch

from ..deprecation import warn_once
from ..testing import get_musa_arch as _get_musa_arch  # noqa: F401 - part of the module's interface

warn_once("torch_musa.core._utils", "torch.musa")


def _get_musa_device_index(device, optional=False, allow_cpu=False):
    """Returns the index of a device.

    Args:
        device (torch.device, int, str or None): a device.
        optional (bool): whether None means the current device.
        allow_cpu (bool): whether the CPU is accepted, with index -1.
    """
    return torch.musa._utils._get_device_index(device, optional=optional, allow_cpu=allow_cpu)
