# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ranges and marks in a program's timeline (`torch.musa.mttx`), with the names of `torch.cuda.nvtx`.

They are user annotations of `torch.profiler`: a trace shows them on the thread that made them and, above the
work that they enclose, on the device's streams. They do not use the device.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from . import _load

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """Open a range on this thread, inside those that are open.

    Args:
        msg (str): its name.

    Returns:
        int: the number of ranges of this thread that enclose it.
    """
    return _load.extension().range_push(msg)


def range_pop() -> int:
    """Close the innermost range of this thread.

    Returns:
        int: the number of ranges of this thread that enclosed it.

    Raises:
        RuntimeError: this thread has no open range.
    """
    return _load.extension().range_pop()


def range_start(msg: str) -> int:
    """Open a range that need not nest with others and may be closed on another thread.

    Returns:
        int: the range, for :func:`range_end`.
    """
    return _load.extension().range_start(msg)


def range_end(range_id: int) -> None:
    """Close a range that :func:`range_start` opened.

    Raises:
        ValueError: it is not open.
    """
    _load.extension().range_end(range_id)


def mark(msg: str) -> None:
    """Mark this moment, as a range of length zero."""
    _load.extension().mark(msg)


@contextlib.contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range around a `with` block, or around each call of a decorated function.

    Args:
        msg (str): its name; formatted with `args` and `kwargs` (:meth:`str.format`) if there are any.
    """
    range_push(msg.format(*args, **kwargs) if args or kwargs else msg)
    try:
        yield
    finally:
        range_pop()
