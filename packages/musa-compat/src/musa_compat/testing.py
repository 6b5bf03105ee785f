# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.testing`."""

import torch


def get_musa_arch():
    """Returns the architecture of the current device, 10 * major + minor of its capability, such as 31."""
    major, minor = torch.musa.get_device_capability()
    return 10 * major + minor


__all__ = ["get_musa_arch"]
