# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa`: the device module, with torch.cuda's spelling. Importing it touches no device."""

import sys

import torch

from musa_runtime import initialization as _initialization
from musa_runtime import memory, ops, random, streams
from musa_runtime.device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from musa_runtime.device import is_in_bad_fork as _is_in_bad_fork  # noqa: F401 - torch.random reads it
from musa_runtime.initialization import lazy_init as _lazy_init  # noqa: F401 - torch's C++ calls it
from musa_runtime.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from musa_runtime.random import (
    _get_generator as _get_generator,
)
from musa_runtime.random import (
    default_generators,
    fork_rng,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from musa_runtime.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)
from musa_runtime.streams import (
    _set_stream_by_id as _set_stream_by_id,
)

OutOfMemoryError = torch.OutOfMemoryError
AcceleratorError = torch.AcceleratorError

# torch.utils.checkpoint reads this attribute, not is_initialized(), to decide whether there is random state
# to save.
_initialized = _initialization.is_initialized()


def _follow_initialization(initialized):
    sys.modules[__name__]._initialized = initialized


def _load_packs():
    from torch_musa import (
        plugins,  # at the first use only: it brings pluggy and reads the metadata of installed packages
    )

    plugins.load_packs()


_initialization.on_change(_follow_initialization)
_initialization.set_pack_loader(_load_packs)

# Named one by one, so that a reader finds here what `torch.musa` offers.
__all__ = [
    "AcceleratorError",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "fork_rng",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "ops",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]
