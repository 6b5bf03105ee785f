# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Readable test names for cases that are expressions."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def expression(function: Callable) -> str:
    """The text of a lambda on a line of its own, for use as `ids=`."""
    line = inspect.getsource(function).strip().splitlines()[0]
    return line.partition(": ")[2].strip().rstrip(",(")[:60]
