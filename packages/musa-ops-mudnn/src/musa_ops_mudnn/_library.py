# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library and its C interface."""

import ctypes
import functools
import importlib.resources

from musa_runtime import sdk


def paths():
    """The libraries to load, in order: the SDK's muDNN, then the pack's own, which finds the former by name.

    Raises:
        RuntimeError: there is no SDK, or it has no muDNN.
    """
    mudnn = sdk.library(
        sdk.MUDNN,
        component="muDNN",
        causes="only the SDK's runtime is installed; or this is the emulator without its muDNN.",
        wheel="musa-emulator-mudnn",
    )
    # Through importlib.resources, which also finds the library of an editable install.
    return [mudnn, str(importlib.resources.files(__package__) / "lib" / "libmusa_ops_mudnn.so")]


@functools.cache
def library():
    """The pack's library as ctypes sees it. The loader loads it before anybody asks."""
    lib = ctypes.CDLL(paths()[-1])
    lib.musa_ops_mudnn_version.restype = ctypes.c_int64
    lib.musa_ops_mudnn_families.restype = ctypes.c_char_p
    lib.musa_ops_mudnn_setting.argtypes = [ctypes.c_char_p]
    lib.musa_ops_mudnn_setting.restype = ctypes.POINTER(ctypes.c_bool)
    return lib


def version_text():
    """muDNN's version, as `3.1.0`."""
    number = library().musa_ops_mudnn_version()
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}"


def families():
    """Which family each operator of the pack belongs to: a dict of operator to family, as declared."""
    lines = library().musa_ops_mudnn_families().decode().splitlines()
    return {op: family for family, op in (line.split(" ") for line in lines)}
