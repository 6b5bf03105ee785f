# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Warnings for names that have a replacement: one for each name and process."""

import functools
import importlib
import os
import sys
import warnings

import torch_musa

# Frames of these folders are between the program's line and the warning.
_BETWEEN = tuple(
    os.path.dirname(os.path.abspath(module.__file__)) + os.sep for module in (importlib, torch_musa)
) + (os.path.dirname(os.path.abspath(__file__)) + os.sep,)


@functools.cache
def warn_once(name, instead):
    """Warns that a name is deprecated, at its first use.

    Args:
        name (str): as a program writes it, "torch_musa.optim.FusedAdam".
        instead (str): the replacement, as a program writes it.
    """
    warnings.warn(f"{name} is deprecated. Use {instead}.", FutureWarning, stacklevel=_level_of_program())


def _level_of_program():
    """The `stacklevel` by which a warning of the caller shows the program's line."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((*_BETWEEN, "<frozen importlib")):
        # Python leaves frames of the import system out of the count.
        level += not frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return level
