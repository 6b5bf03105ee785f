# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Warnings for replaced names, once per name and process, to the program that uses them.

As Python does with DeprecationWarning, only code of `__main__` is warned: the user of a library such as
torchada, which imports vendor names, cannot change them.
"""

import importlib
import os
import sys
import warnings

import torch_musa

# Frames of files in these folders are skipped to find the program's line.
_BETWEEN = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (importlib, torch_musa)
) + (os.path.dirname(os.path.abspath(__file__)) + os.sep,)
_warned = set()


def warn_once(name, instead):
    """Warns that a name is deprecated, on its first use by `__main__`.

    Args:
        name (str): the name as written in programs, such as "torch_musa.optim.FusedAdam".
        instead (str): the replacement as written in programs.
    """
    level, frame = _program()
    if name in _warned or frame is None or frame.f_globals.get("__name__") != "__main__":
        return
    _warned.add(name)
    warnings.warn(f"{name} is deprecated. Use {instead}.", FutureWarning, stacklevel=level)


def _program():
    """Returns the frame of the program that called `warn_once`, and the `stacklevel` that shows its line."""
    level, frame = 2, sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith((*_BETWEEN, "<frozen importlib")):
        # Python does not count frames of the import system.
        level += not frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return level, frame
