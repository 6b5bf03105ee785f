# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's shared library and its C interface."""

from __future__ import annotations

import ctypes
import functools
import importlib.resources

from musa_runtime import sdk


def paths() -> list[str]:
    """Returns the libraries to load, in order: the SDK's muFFT, then the pack's own, which links to it.

    Raises:
        RuntimeError: no SDK is installed, or it has no muFFT.
    """
    mufft = sdk.library(
        "libmufft.so",
        component="muFFT",
        causes="only the SDK's runtime is installed; or the emulator is installed without its mathematical "
        "libraries.",
        wheel="musa-emulator-math",
    )
    # importlib.resources also finds the library of an editable install.
    return [mufft, str(importlib.resources.files(__package__) / "lib" / "libmusa_ops_math.so")]


@functools.cache
def library() -> ctypes.CDLL:
    """Returns the ctypes handle of the pack's library, which the pack loader has already loaded."""
    lib = ctypes.CDLL(paths()[-1])
    lib.musa_ops_math_plan_cache_size.restype = ctypes.c_int64
    lib.musa_ops_math_plan_cache_max_size.restype = ctypes.c_int64
    lib.musa_ops_math_set_plan_cache_max_size.argtypes = [ctypes.c_int, ctypes.c_int64]
    lib.musa_ops_math_set_plan_cache_max_size.restype = ctypes.c_char_p
    lib.musa_ops_math_clear_plan_cache.restype = ctypes.c_char_p
    return lib
