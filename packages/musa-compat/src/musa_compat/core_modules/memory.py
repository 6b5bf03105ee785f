# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.memory`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core.memory",
    {
        **same(
            "MUSAPluggableAllocator",
            "MemPool",
            "change_current_allocator",
            "empty_cache",
            "get_allocator_backend",
            "max_memory_allocated",
            "max_memory_reserved",
            "mem_get_info",
            "memory_allocated",
            "memory_reserved",
            "memory_snapshot",
            "memory_stats",
            "memory_stats_as_nested_dict",
            "memory_summary",
            "reset_accumulated_memory_stats",
            "reset_max_memory_allocated",
            "reset_max_memory_cached",
            "reset_peak_memory_stats",
            "set_per_process_memory_fraction",
            "use_mem_pool",
        ),
        "_dump_snapshot": "memory._dump_snapshot",
        "_record_memory_history": "memory._record_memory_history",
        "_set_allocator_settings": "memory._set_allocator_settings",
    },
)
