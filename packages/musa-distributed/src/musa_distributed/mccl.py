# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: information about MCCL."""

from . import _library


def version():
    """Returns the version of MCCL.

    Returns:
        tuple of int: major, minor, patch.

    Raises:
        RuntimeError: MCCL is not installed.
    """
    return _library.load().version()


__all__ = ["version"]
