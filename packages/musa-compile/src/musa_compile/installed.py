# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Locates the installed C++ files of this package: headers for generated code, and the library that
generated code calls.
"""

import ctypes
import functools
import os
import sys

from musa_runtime._load import extension
from musa_runtime.errors import LibraryLoadError
from musa_runtime.installation import command

LIBRARY = "lib/libmusa_aoti.so"
HEADER = "include/musa_compile/python_wrapper.h"
CMAKE = "share/cmake/musa_compile/musa_compileConfig.cmake"


def file(relative):
    """Returns the absolute path of an installed file of this package.

    Args:
        relative (str): path below the package's folder, with forward slashes.

    Raises:
        LibraryLoadError: if the file does not exist.
    """
    # An editable install has Python files in the source tree and compiled files in site-packages;
    # `__path__` contains both.
    for folder in sys.modules[__package__].__path__:
        path = os.path.join(folder, *relative.split("/"))
        if os.path.exists(path):
            return path
    fix = command("musa-compile", reinstall=True)
    raise LibraryLoadError(
        f"this installation of musa_compile has no {relative}.\n"
        f"Likely cause: an incomplete installation.\nFix: {fix}",
        fix,
    )


def include_dir():
    """Returns the include folder of generated code."""
    return os.path.dirname(os.path.dirname(file(HEADER)))


@functools.cache
def load_library():
    """Loads the library that C++ wrappers and AOTInductor packages need, once.

    Raises:
        MusaError: if the runtime or the library cannot be loaded.
    """
    extension()  # loads libmusa_runtime.so, which the library needs
    path = file(LIBRARY)
    try:
        # RTLD_GLOBAL: models that are loaded later find its functions by name.
        return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        fix = command("musa-compile", reinstall=True)
        raise LibraryLoadError(
            f"{path} cannot be loaded: {error}.\n"
            "Likely cause: it was built with another musa-runtime or another torch than the installed ones.\n"
            f"Fix: {fix}",
            fix,
        ) from error
