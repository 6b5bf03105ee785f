# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: what can be asked of MCCL."""

from . import _library


def version():
    """MCCL's version.

    Returns:
        tuple of int: major, minor, patch.

    Raises:
        RuntimeError: there is no MCCL.
    """
    return _library.load().version()


__all__ = ["version"]
