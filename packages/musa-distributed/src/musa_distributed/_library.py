# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library, loaded when the first process group is made."""

import ctypes
import functools
import importlib
import os

from musa_runtime import sdk


def mccl_path():
    """The SDK's libmccl.so.

    Raises:
        RuntimeError: there is no SDK, or it has no MCCL.
    """
    found = sdk.resolve()
    if found.home is None:
        raise RuntimeError(found.reason)
    path = os.path.join(found.home, "lib", "libmccl.so")
    if not os.path.exists(path):
        raise RuntimeError(
            f"the MUSA SDK at {found.home} has no lib/libmccl.so, which the backend 'mccl' runs on.\n"
            "Likely causes: MCCL is a package of its own and not installed (there is none for MTT S80 and "
            "S3000); or this is the emulator without its MCCL.\n"
            "To mend it: install MCCL into the SDK, or for the emulator: pip install musa-emulator-mccl.\n"
            "Without MCCL: init_process_group('gloo') for tensors on the CPU"
        )
    return path


@functools.cache
def load():
    """The extension module `musa_distributed._C`.

    Raises:
        RuntimeError: there is no MCCL, or the device cannot be used; the text says why.
    """
    import torch

    torch.musa.init()
    # Loaded first, so that the pack's own library finds it by its name, wherever the SDK is.
    ctypes.CDLL(mccl_path(), mode=ctypes.RTLD_GLOBAL)
    return importlib.import_module("musa_distributed._C")
