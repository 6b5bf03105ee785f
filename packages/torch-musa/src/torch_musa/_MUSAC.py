# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Functions that other libraries expect here, such as the driver of the vendor's Triton."""

from __future__ import annotations

import torch

from musa_runtime import device
from musa_runtime._load import extension
from musa_runtime.initialization import lazy_init

from . import entry_points


def _musa_getCurrentRawStream(device_index: int) -> int:
    """Returns the SDK's handle (`musaStream_t`) of the device's current stream as an int.

    Args:
        device_index (int): the index of the device.
    """
    lazy_init()
    stream_id, index, _ = extension().current_stream(device_index)
    return extension().stream_native_handle(stream_id, index)


def _musa_getDeviceCount() -> int:
    """Returns the number of devices, as `torch.musa.device_count()`."""
    return device.device_count()


def _musa_synchronize() -> None:
    """Waits for all work on the current device, as `torch.musa.synchronize()`."""
    device.synchronize()


def _get_allow_tf32() -> bool:
    """Whether products or convolutions of float32 may use TF32.

    True if `torch.backends.musa.matmul.allow_tf32` is, or `allow_tf32` of a pack's library in
    `torch.backends`.
    """
    entries = entry_points.select(entry_points.PLACEHOLDERS)
    libraries = [getattr(torch.backends, entry.name) for entry in entries]
    matmul = torch.backends.musa.matmul  # type: ignore[attr-defined]
    return any(getattr(one, "allow_tf32", False) for one in (matmul, *libraries))


class _musa_MUSAAllocator_AllocatorState:
    """The type that torch's CUDA builds name `torch._C._cuda_CUDAAllocator_AllocatorState`.

    `torch._inductor.cudagraph_trees` imports it for annotations once torch.backends.cuda.is_built() is True,
    which torchada sets. Nothing creates an object of it.
    """
