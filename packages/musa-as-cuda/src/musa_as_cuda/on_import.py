# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The module `torch_musa.as_cuda`: importing it turns the switch on for the whole process.

Raises:
    AsCudaError: if torch can use a CUDA device.
"""

from .switch import AsCudaError, disable, enable, enabled, is_enabled

enable()

__all__ = ["AsCudaError", "disable", "enable", "enabled", "is_enabled"]
