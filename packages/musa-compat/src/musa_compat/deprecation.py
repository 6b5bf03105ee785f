# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Warnings for replaced names, once per name and process."""

import functools
import importlib
import os
import sys
import warnings

import torch_musa

# Frames of files in these folders are skipped to find the program's line.
_BETWEEN = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (importlib, torch_musa)
) + (os.path.dirname(os.path.abspath(__file__)) + os.sep,)


@functools.cache
def warn_once(name, instead):
    """Warns that a name is deprecated, on its first use.

    Args:
        name (str): the name as written in programs, such as "torch_musa.optim.FusedAdam".
        instead (str): the replacement as written in programs.
    """
    warnings.warn(f"{name} is deprecated. Use {instead}.", FutureWarning, stacklevel=_level_of_program())


def _level_of_program():
    """Returns the `stacklevel` that makes a warning of the caller show the program's line."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((*_BETWEEN, "<frozen importlib")):
        # Python does not count frames of the import system.
        level += not frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return level
