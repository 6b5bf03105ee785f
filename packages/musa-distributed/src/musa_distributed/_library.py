# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library, loaded when the first process group is made."""

import ctypes
import functools
import importlib

from musa_runtime import sdk
from musa_runtime._load import extension


def mccl_path():
    """The SDK's libmccl.so.

    Raises:
        RuntimeError: there is no SDK, or it has no MCCL.
    """
    return sdk.library(
        "libmccl.so",
        component="MCCL",
        causes="MCCL is a package of its own and is not installed (there is none for MTT S80 and S3000); "
        "or this is the emulator without its MCCL. Tensors on the CPU can use init_process_group('gloo').",
        wheel="musa-emulator-mccl",
    )


@functools.cache
def load():
    """The extension module `musa_distributed._C`.

    Raises:
        RuntimeError: there is no MCCL, or the device cannot be used; the text says why.
    """
    import torch

    extension()  # raises the cause if the device cannot be used
    if not torch.musa.device_count():
        torch.musa.init()  # raises the cause
    # The device is not initialized here: `init_device_mesh` starts the process group first, and then sets the
    # device of the rank only if the device has not been initialized.
    # Loaded first, so that the pack's own library finds it by its name, wherever the SDK is.
    ctypes.CDLL(mccl_path(), mode=ctypes.RTLD_GLOBAL)
    return importlib.import_module("musa_distributed._C")
