# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The module `torch_musa.as_cuda`: its import turns the switch on for the whole process.

Raises:
    AsCudaError: on import, beside a CUDA device that torch can use.
"""

from .switch import AsCudaError, disable, enable, enabled, is_enabled

enable()

__all__ = ["AsCudaError", "disable", "enable", "enabled", "is_enabled"]
