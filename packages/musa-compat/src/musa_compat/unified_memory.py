# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.use_unified_cpu_allocator`, for devices that share memory with the host (M1000)."""

import contextlib
import warnings


def use_unified_cpu_allocator():
    """Warns that tensors are copied between host and device. Has no other effect.

    The vendor's function lets `Tensor.to` skip the copy, which requires patching `Tensor.to`.

    Returns:
        contextlib.nullcontext: for `with torch_musa.use_unified_cpu_allocator():`.
    """
    warnings.warn(
        "torch_musa.use_unified_cpu_allocator() has no effect: tensors are copied between host and device.",
        stacklevel=2,
    )
    return contextlib.nullcontext()
