# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library, loaded when the first process group is made."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

from musa_runtime import sdk
from musa_runtime._load import extension


def mccl_path() -> str:
    """Returns the path of the SDK's libmccl.so.

    Raises:
        RuntimeError: No SDK is installed, or it has no MCCL.
    """
    return sdk.library(
        "libmccl.so",
        component="MCCL",
        causes="MCCL is a separate package and is not installed (there is none for MTT S80 and S3000); "
        "or the emulator is installed without its MCCL. CPU tensors can use init_process_group('gloo').",
        wheel="musa-emulator-mccl",
    )


@functools.cache
def load() -> Any:
    """Returns the extension module `musa_distributed._C`.

    Raises:
        RuntimeError: MCCL is missing, or the device cannot be used; the message gives the cause.
    """
    import torch

    extension()  # raises an error with the cause if the device cannot be used
    if not torch.musa.device_count():  # type: ignore[attr-defined]
        # Raises an error with the cause.
        torch.musa.init()  # type: ignore[attr-defined]
    # The device is not initialized here: `init_device_mesh` creates the process group first, and sets the
    # device of the rank only if no device has been initialized.
    # Loaded before the extension, which then finds it by its name, wherever the SDK is.
    ctypes.CDLL(mccl_path(), mode=ctypes.RTLD_GLOBAL)
    return importlib.import_module("musa_distributed._C")
