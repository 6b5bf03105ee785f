# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa`: the device module, with torch.cuda's names. Importing it does not initialize a device."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import torch

from musa_runtime import device as _utils  # noqa: F401 - torch.load calls its _get_device_index
from musa_runtime import graphs, memory, ops, profiler, random, streams
from musa_runtime import initialization as _initialization
from musa_runtime import markers as mttx
from musa_runtime.device import _exchange_device as _exchange_device
from musa_runtime.device import _maybe_exchange_device as _maybe_exchange_device
from musa_runtime.device import _sleep as _sleep
from musa_runtime.device import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    get_sync_debug_mode,
    init,
    is_available,
    is_bf16_supported,
    is_fp16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    set_sync_debug_mode,
    synchronize,
)
from musa_runtime.device import is_in_bad_fork as _is_in_bad_fork  # noqa: F401 - torch.random reads it
from musa_runtime.errors import DeferredCallError as DeferredMusaCallError
from musa_runtime.errors import MusaError
from musa_runtime.graphs import (
    MUSAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from musa_runtime.initialization import lazy_call as _lazy_call  # noqa: F401 - programs call torch.cuda's
from musa_runtime.initialization import lazy_init as _lazy_init  # noqa: F401 - torch's C++ calls it
from musa_runtime.memory import (
    MemPool,
    MUSAPluggableAllocator,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_disabled,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from musa_runtime.memory import _dump_snapshot as _dump_snapshot
from musa_runtime.memory import _record_memory_history as _record_memory_history
from musa_runtime.memory import _set_allocator_settings as _set_allocator_settings
from musa_runtime.musart import check_error, musart, musaStatus
from musa_runtime.processes import ipc_collect
from musa_runtime.random import (
    _get_generator as _get_generator,
)
from musa_runtime.random import (
    _get_rng_state_offset as _get_rng_state_offset,
)
from musa_runtime.random import (
    _set_rng_state_offset as _set_rng_state_offset,
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
from torch_musa import pack_modules
from torch_musa._version import __version__ as _package_version
from torch_musa.autocast import get_amp_supported_dtype

if TYPE_CHECKING:  # names that __getattr__ imports on first access
    from types import ModuleType

    from musa_runtime import comm, flex_attention, parallel, sparse
    from musa_runtime.blas_handles import current_blas_handle
    from musa_runtime.legacy_types import (  # noqa: F401 - in __all__
        BFloat16Storage,
        BFloat16Tensor,
        BoolStorage,
        BoolTensor,
        ByteStorage,
        ByteTensor,
        CharStorage,
        CharTensor,
        ComplexDoubleStorage,
        ComplexFloatStorage,
        DoubleStorage,
        DoubleTensor,
        FloatStorage,
        FloatTensor,
        HalfStorage,
        HalfTensor,
        IntStorage,
        IntTensor,
        LongStorage,
        LongTensor,
        ShortStorage,
        ShortTensor,
    )
    from musa_runtime.telemetry import (
        clock_rate,
        device_memory_used,
        list_gpu_processes,
        memory_usage,
        power_draw,
        temperature,
        utilization,
    )

# The release of the vendor's torch_musa whose behaviour this module has, with this package's version as the
# local part. Programs such as torchada switch workarounds on for older releases, and none of those is needed
# here: docs/design/compat.md.
__version__ = f"2.13.0+{_package_version}"

OutOfMemoryError = torch.OutOfMemoryError
AcceleratorError = torch.AcceleratorError

# Names in programs in which only "cuda" was replaced by "musa"; not in __all__. Others are submodules, such
# as nvtx, or refused with advice by torch_musa.cuda_names.
CUDAGraph = MUSAGraph
CUDAPluggableAllocator = MUSAPluggableAllocator
CudaError = MusaError
DeferredCudaCallError = DeferredMusaCallError


def _is_compiled() -> bool:
    """Returns True: this module exists only where the device does. Programs call torch.cuda's function."""
    return True


has_half = True  # older programs test whether the device supports float16

# torch.utils.checkpoint reads this attribute instead of is_initialized() to decide whether to save
# random state.
_initialized = _initialization.is_initialized()


def _follow_initialization(initialized: bool) -> None:
    sys.modules[__name__]._initialized = initialized  # type: ignore[attr-defined]


def _load_packs() -> dict[str, str]:
    from torch_musa import (
        plugins,  # on first use only: it imports pluggy and reads the metadata of installed packages
    )

    return {
        record.dist: record.version
        for record in plugins.load_packs()
        if record.status == "loaded" and record.providers
    }


_initialization.on_change(_follow_initialization)
_initialization.set_pack_loader(_load_packs)

# Rarely used names are imported on first access, to keep `import torch` fast. Submodules have files
# in this folder, for `import torch.musa.comm`; packs provide further ones.
_SUBMODULES = ("_memory_viz", "comm", "flex_attention", "nvtx", "parallel", "sparse")
_TELEMETRY = (
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
)
_LEGACY_TYPES = (
    *(f"{kind}Storage" for kind in ("ComplexDouble", "ComplexFloat")),
    *(
        f"{kind}{of}"
        for of in ("Storage", "Tensor")
        for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
    ),
)
_homes = {  # name -> module of musa_runtime
    "current_blas_handle": "blas_handles",
    **dict.fromkeys(_TELEMETRY, "telemetry"),
    **dict.fromkeys(_LEGACY_TYPES, "legacy_types"),
}


def __getattr__(name: str) -> ModuleType:
    if name in _SUBMODULES or name in pack_modules.names():
        try:
            return importlib.import_module(f"torch.musa.{name}")
        except ModuleNotFoundError as error:  # a dependency of the pack's module is missing
            raise AttributeError(str(error)) from error
    home = _homes.get(name)
    if home is None:
        missing = None if name.startswith("_") else pack_modules.why_missing(name)
        raise AttributeError(missing or f"module 'torch.musa' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"musa_runtime.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *pack_modules.names(), *_homes})


# Listed explicitly, so that readers find the contents of `torch.musa` here.
__all__ = [
    "AcceleratorError",
    "DeferredMusaCallError",
    "Event",
    "ExternalStream",
    "MUSAGraph",
    "MUSAPluggableAllocator",
    "MemPool",
    "MusaError",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "check_error",
    "clock_rate",
    "comm",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "flex_attention",
    "fork_rng",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_fp16_supported",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
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
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "mttx",
    "musaStatus",
    "musart",
    "ops",
    "parallel",
    "power_draw",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "sparse",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "use_mem_pool",
    "utilization",
]
if not TYPE_CHECKING:  # type checkers read lists of literals only
    __all__ += _LEGACY_TYPES
