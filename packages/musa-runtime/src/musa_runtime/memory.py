# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Device memory: statistics, limits, and raw allocation. The names and meanings are torch.cuda's; sizes are
in bytes.

Statistics come from torch's own accelerator interface, so `torch.accelerator.memory_stats` and this module
cannot differ; keys of torch.cuda that it lacks are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from . import device as _device
from ._load import extension
from .device import mem_get_info
from .host_memory import (
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    reset_accumulated_host_memory_stats,
    reset_peak_host_memory_stats,
)
from .initialization import is_initialized, lazy_init
from .memory_history import _allocation_traceback as _allocation_traceback
from .memory_history import _attach_out_of_memory_observer as _attach_out_of_memory_observer
from .memory_history import _dump_snapshot as _dump_snapshot
from .memory_history import _get_memory_metadata as _get_memory_metadata
from .memory_history import _record_memory_history as _record_memory_history
from .memory_history import _save_memory_usage as _save_memory_usage
from .memory_history import _save_segment_usage as _save_segment_usage
from .memory_history import _set_memory_metadata as _set_memory_metadata
from .memory_history import _snapshot as _snapshot
from .memory_history import memory_snapshot
from .memory_keys import flatten as _flatten
from .memory_pools import (
    MemPool,
    MUSAPluggableAllocator,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    get_allocator_backend,
    use_mem_pool,
)
from .memory_pools import _set_allocator_settings as _set_allocator_settings

if TYPE_CHECKING:
    from ._types import Device


def empty_cache() -> None:
    """Release cached blocks that no tensor uses to the device.

    Waits for the work that may still use them. Other threads run meanwhile, unlike with
    `torch.accelerator.empty_cache()`.
    """
    if is_initialized():
        extension().empty_pool((0, 0))


def memory_stats(device: Device = None) -> dict[str, Any]:
    """Allocator statistics of a device as a flat dict, e.g. `"allocated_bytes.all.current"`; empty before the
    first use.

    Keys are `<quantity>.<pool>.<metric>`. Pools: `all, large_pool, small_pool`. Metrics: `current, peak`, and
    the sums of increases and decreases, `allocated, freed`. Quantities, each a count and (`_bytes`) a size:

    - `allocation, allocated_bytes`: allocated memory; `requested_bytes`: the sizes before rounding.
    - `active, active_bytes`: also memory that was freed while another stream still uses it.
    - `segment, reserved_bytes`: memory reserved from the device.
    - `inactive_split, inactive_split_bytes`: free parts of segments that are partly in use.

    Counters: `num_alloc_retries`, failed calls to the driver after which cached memory was released;
    `num_ooms`, errors raised; `num_oom_rejections`, requests refused without trying; `num_sync_all_streams`,
    waits for other streams' use of freed memory; `num_device_alloc` and `num_device_free`, calls to the
    driver. `max_split_size` is the setting (bytes), `oversize_allocations.<metric>` and
    `oversize_segments.<metric>` count the larger ones, and
    `reserved_bytes_by_private_pools.<id>.<pool>.<metric>` is the share of each memory pool.
    """
    return _flatten(memory_stats_as_nested_dict(device))


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """:func:`memory_stats` as nested dicts; empty before the first use of the device."""
    if not is_initialized():
        return {}
    index = _device.device_index(device)
    return torch._C._accelerator_getDeviceStats(index) | extension().memory_stats_beyond_torch(index)


def memory_allocated(device: Device = None) -> int:
    """Bytes held by tensors."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes held by tensors since the start, or since :func:`reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator has reserved from the device, in use or cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes reserved by the allocator since the start, or since :func:`reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def memory_cached(device: Device = None) -> int:
    """Older spelling of :func:`memory_reserved`."""
    return memory_reserved(device)


def max_memory_cached(device: Device = None) -> int:
    """Older spelling of :func:`max_memory_reserved`."""
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Reset every peak to the current value."""
    lazy_init()
    torch._C._accelerator_resetPeakStats(_device.device_index(device))


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Set the accumulated counts (`allocated`, `freed`, `num_alloc_retries`, `num_ooms`) to zero."""
    lazy_init()
    torch._C._accelerator_resetAccumulatedStats(_device.device_index(device))


def reset_max_memory_allocated(device: Device = None) -> None:
    """Older spelling of :func:`reset_peak_memory_stats`; resets every peak."""
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Device = None) -> None:
    """Older spelling of :func:`reset_peak_memory_stats`; resets every peak."""
    reset_peak_memory_stats(device)


def set_per_process_memory_fraction(fraction: float, device: Device = None) -> None:
    """Limit the memory that the allocator reserves from a device.

    Args:
        fraction (float): of the device's total memory, 0 to 1. Beyond it, allocation raises
            `torch.OutOfMemoryError`.

    Raises:
        TypeError: not a number. ValueError: outside 0 to 1.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, (int, float)):
        raise TypeError(
            f"the memory fraction must be a number from 0 to 1, not {type(fraction).__name__}: {fraction!r}"
        )
    if not 0 <= fraction <= 1:
        raise ValueError(f"the memory fraction must be from 0 to 1, but got {fraction}")
    lazy_init()
    extension().set_per_process_memory_fraction(float(fraction), _device.device_index(device))


def get_per_process_memory_fraction(device: Device = None) -> float:
    """The fraction set by :func:`set_per_process_memory_fraction`; 1.0 by default."""
    lazy_init()
    return extension().get_per_process_memory_fraction(_device.device_index(device))


def caching_allocator_alloc(
    size: int, device: Device = None, stream: torch.Stream | int | None = None
) -> int:
    """Allocate from the caching allocator, for libraries that manage memory themselves.

    Args:
        size (int): bytes.
        device (int, str, torch.device or None): the device of the memory.
        stream (Stream or int, optional): the stream that will use the memory, or its `musaStream_t`; None is
            the current one.

    Returns:
        int: the address; free it with :func:`caching_allocator_delete`.
    """
    from . import streams

    if size < 0:
        raise ValueError(f"the size must be a number of bytes, 0 or more, but got {size}")
    lazy_init()
    index = _device.device_index(device)
    if stream is None:
        stream = streams.current_stream(index)
    if isinstance(stream, torch.Stream):
        stream = extension().stream_native_handle(stream.stream_id, stream.device_index)
    if not isinstance(stream, int):
        raise TypeError(
            f"the stream must be a torch.musa.Stream, an int or None, but got {type(stream).__name__}"
        )
    with _device.device(index):
        return extension().raw_alloc(size, stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free memory from :func:`caching_allocator_alloc`."""
    extension().raw_delete(mem_ptr)


def list_gpu_processes(device: Device = None) -> str:
    """:func:`torch.musa.list_gpu_processes`."""
    from . import telemetry  # here, so that `import torch` does not pay for it

    return telemetry.list_gpu_processes(device)


# torch.cuda's rows: label, quantity, whether it is in bytes, whether each pool has a row.
_SUMMARY_ROWS = [
    ("Allocated memory", "allocated_bytes", True, True),
    ("Active memory", "active_bytes", True, True),
    ("Requested memory", "requested_bytes", True, True),
    ("GPU reserved memory", "reserved_bytes", True, True),
    ("Non-releasable memory", "inactive_split_bytes", True, True),
    ("Allocations", "allocation", False, True),
    ("Active allocs", "active", False, True),
    ("GPU reserved segments", "segment", False, True),
    ("Non-releasable allocs", "inactive_split", False, True),
    ("Oversize allocations", "oversize_allocations", False, False),
    ("Oversize GPU segments", "oversize_segments", False, False),
]
_SUMMARY_METRICS = ("current", "peak", "allocated", "freed")
_SUMMARY_COLUMNS = ("Cur Usage", "Peak Usage", "Tot Alloc", "Tot Freed")
_SUMMARY_WIDTH = 75


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """A printable table of :func:`memory_stats`, in the layout of `torch.cuda.memory_summary`.

    Args:
        abbreviated (bool): only totals, without a row for each pool.
    """
    index = _device.device_index(device)
    stats = memory_stats(index)
    heavy, light = "=" * _SUMMARY_WIDTH, "-" * _SUMMARY_WIDTH
    ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
    lines = [
        heavy,
        f"{'PyTorch MUSA memory summary, device ID':>56} {index:<18d}",
        light,
        f"{'MUSA OOMs:':>22} {ooms:<12d} |{'musaMalloc retries:':>27} {retries:<8d}  ",
        heavy,
        "|".join([f" {'Metric':^21} ", *(f" {column:^10} " for column in _SUMMARY_COLUMNS)]),
    ]
    for label, quantity, in_bytes, pooled in _SUMMARY_ROWS:
        lines.append(light)
        pools = [(label, "all")]
        if pooled and not abbreviated:
            pools += [("      from large pool", "large_pool"), ("      from small pool", "small_pool")]
        totals = None
        for name, pool in pools:
            prefix = f"{quantity}.{pool}" if pooled else quantity
            values = [stats.get(f"{prefix}.{metric}", 0) for metric in _SUMMARY_METRICS]
            totals = totals or values  # the pools of a row are in the units of their total
            cells = [_cell(value, total, in_bytes) for value, total in zip(values, totals)]
            lines.append("|".join([f" {name:<21} ", *(f" {cell} " for cell in cells)]))
    lines.append(heavy)
    return "".join(f"|{line}|\n" for line in lines)


def _cell(value: int, total: float, in_bytes: bool) -> str:
    """A number in ten columns, in the unit in which `total` has at most six digits."""
    base, most, units = (1024, 768 * 1024, "B KiB MiB GiB TiB PiB") if in_bytes else (1000, 750_000, " K M")
    units = units.split(" ")
    exponent = 0
    while total >= most and exponent + 1 < len(units):
        total /= base
        value //= base
        exponent += 1
    return f"{value:6d} {units[exponent]:<3}" if in_bytes else f"{value:7d} {units[exponent]:<2}"


# The name in programs in which only "cuda" was replaced by "musa"; not in __all__.
CUDAPluggableAllocator = MUSAPluggableAllocator

__all__ = [
    "MUSAPluggableAllocator",
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]
