# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Statistics of page-locked host memory (`pin_memory`), with torch.cuda's names."""

from __future__ import annotations

from typing import Any

from ._load import extension
from .initialization import is_initialized, lazy_init
from .memory_keys import flatten


def host_memory_stats() -> dict[str, Any]:
    """Statistics of the pinned-memory allocator as a flat dict; empty before the first use of the device.

    Keys: `num_host_alloc` and `num_host_free`, calls to the driver; `allocations` and `allocated_bytes`,
    blocks from the driver, in use or cached; `active_requests` and `active_bytes`, blocks in use; each of
    these four with `.current .peak .allocated .freed`. `host_alloc_time` and `host_free_time`, microseconds
    spent in the driver, with `.total .max .min .count .avg`. A block's size is a power of two, and a peak is
    the sum of the peaks of each size, so it may exceed the true one.
    """
    return flatten(host_memory_stats_as_nested_dict())


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """:func:`host_memory_stats` as nested dicts."""
    return extension().host_memory_stats() if is_initialized() else {}


def reset_accumulated_host_memory_stats() -> None:
    """Set the accumulated counts of :func:`host_memory_stats` (`allocated`, `freed`, times) to zero."""
    lazy_init()
    extension().reset_accumulated_host_memory_stats()


def reset_peak_host_memory_stats() -> None:
    """Reset every peak of :func:`host_memory_stats` to the current value."""
    lazy_init()
    extension().reset_peak_host_memory_stats()


__all__ = [
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats",
    "reset_peak_host_memory_stats",
]
