# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.mccl`: information about MCCL."""

from __future__ import annotations

from . import _extension


def version() -> tuple[int, int, int]:
    """Returns the version of MCCL.

    Returns:
        tuple of int: major, minor, patch.

    Raises:
        RuntimeError: MCCL is not installed.
    """
    return _extension.load().version()


__all__ = ["version"]
