# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library and its C interface."""

from __future__ import annotations

import ctypes
import functools
import importlib.resources

from musa_runtime import sdk


def paths() -> list[str]:
    """Returns the libraries to load, in order: the SDK's muDNN, then the pack's own, which links to it.

    Raises:
        RuntimeError: No SDK is installed, or it has no muDNN.
    """
    mudnn = sdk.library(
        sdk.MUDNN,
        component="muDNN",
        causes="only the SDK's runtime is installed; or the emulator is installed without its muDNN.",
        wheel="musa-emulator-mudnn",
    )
    # importlib.resources also finds the library of an editable install.
    return [mudnn, str(importlib.resources.files(__package__) / "lib" / "libmusa_ops_mudnn.so")]


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the ctypes handle of the pack's library, which the pack loader has already loaded."""
    lib = ctypes.CDLL(paths()[-1])
    lib.musa_ops_mudnn_version.restype = ctypes.c_int64
    lib.musa_ops_mudnn_families.restype = ctypes.c_char_p
    lib.musa_ops_mudnn_setting.argtypes = [ctypes.c_char_p]
    lib.musa_ops_mudnn_setting.restype = ctypes.POINTER(ctypes.c_bool)
    return lib


def version_text() -> str:
    """Returns muDNN's version, such as `3.1.0`."""
    number = library().musa_ops_mudnn_version()
    return f"{number // 1000}.{number // 100 % 10}.{number % 100}"


def families() -> dict[str, str]:
    """Returns a dict from each operator of the pack to its family, in the order of declaration."""
    lines = library().musa_ops_mudnn_families().decode().splitlines()
    return {op: family for family, op in (line.split(" ") for line in lines)}
