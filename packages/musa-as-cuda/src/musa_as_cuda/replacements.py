# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The attributes of torch that the switch replaces: a closed list, each with its reason.

A torch function mode cannot intercept these. They are replaced when the switch is turned on and restored when
it is turned off. Names that this torch lacks are skipped. docs/design/as_cuda.md has the same table.
"""

import importlib
import sys
from dataclasses import dataclass
from types import ModuleType

from . import stand_ins

_ABSENT = object()
_replaced = []  # (owner, name, original value)


@dataclass(frozen=True)
class Group:
    """Attributes of one module or class that are replaced for one reason.

    Attributes:
        owner (str): the module or class, as in `"torch.cuda"`.
        names (tuple of str): its attributes. A function is also replaced in the module that defines it.
        make (callable): `make(name, original)` returns the replacement.
        reason (str): what happens without it, in a torch without CUDA.
    """

    owner: str
    names: tuple[str, ...]
    make: object
    reason: str


_FUNCTIONS = (
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "can_device_access_peer",
    "clock_rate",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "device_memory_used",
    "empty_cache",
    "get_allocator_backend",
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
    "graph_pool_handle",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
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
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "power_draw",
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
    "stream",
    "synchronize",
    "temperature",
    "utilization",
)
_CLASSES = (
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "MemPool",
    "Stream",
    "StreamContext",
    "device",
    "device_of",
    "graph",
)
_TENSOR_TYPES = tuple(
    f"{kind}Tensor"
    for kind in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
)
_PRIVATE = (
    "_get_generator",
    "_get_rng_state_offset",
    "_is_in_bad_fork",
    "_lazy_init",
    "_set_rng_state_offset",
    "_set_stream_by_id",
    "_sleep",
)
# Not imported for the replacement, because it imports Dynamo. switch.py installs again once it is imported.
LATE_MODULE = "torch.nn.attention.flex_attention"
_COMM = ("broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter")

TABLE = (
    Group("torch.cuda", _FUNCTIONS, stand_ins.function, "they report no device, or raise"),
    Group("torch.cuda", _CLASSES, stand_ins.class_, "they are placeholders whose constructors raise"),
    Group("torch.cuda", _TENSOR_TYPES, stand_ins.tensor_type, "they are placeholders that raise when called"),
    Group(
        "torch.cuda",
        _PRIVATE,
        stand_ins.function,
        "torch's own Python calls them: checkpointing, DataLoader, random state of devices",
    ),
    Group("torch.cuda", ("default_generators",), stand_ins.value, "it is an empty tuple"),
    Group(
        "torch.cuda",
        ("_initialized",),
        stand_ins.initialized,
        "torch.utils.checkpoint reads it, and saves no random state of the device if it is false",
    ),
    Group(
        "torch.cuda.profiler",
        ("profile", "start", "stop"),
        stand_ins.profiler,
        "they call CUDA's runtime, which is missing",
    ),
    Group(
        "torch.cuda.nvtx",
        ("mark", "range_end", "range_pop", "range_push", "range_start"),
        stand_ins.marker,
        "they raise without NVTX",
    ),
    Group("torch.cuda.nccl", ("version",), stand_ins.mccl_version, "it raises in a torch without NCCL"),
    Group(
        "torch.nn.parallel.comm",
        _COMM,
        stand_ins.comm,
        "DataParallel calls them, and their C++ is not in a torch without CUDA",
    ),
    Group("torch", ("Generator",), stand_ins.of_torch, "no mode is called for its constructor"),
    Group(
        "torch",
        ("set_default_tensor_type",),
        stand_ins.set_default_tensor_type,
        "it accepts types of torch alone, and that of CUDA only in a torch with CUDA",
    ),
    Group(
        "torch",
        ("set_default_device", "get_default_device"),
        stand_ins.default_device,
        "the mode of the default device comes last, after the translation",
    ),
    Group(
        "torch.amp.autocast_mode.autocast",
        ("__init__",),
        stand_ins.autocast,
        'autocast("cuda") would set the switch of another device; no mode is called for it',
    ),
    Group(
        "torch",
        ("get_autocast_dtype", "is_autocast_enabled", "set_autocast_dtype", "set_autocast_enabled"),
        stand_ins.autocast_setting,
        "they read and set the switch of another device; custom_fwd uses them",
    ),
    Group(
        "torch.profiler.profiler._KinetoProfile",
        ("__init__",),
        stand_ins.profiler_activities,
        "ProfilerActivity.CUDA records nothing and warns at each operator",
    ),
    Group(
        "torch.autograd.profiler.profile",
        ("__init__",),
        stand_ins.profiler_device,
        'use_device="cuda" and use_cuda=True record nothing',
    ),
    Group(
        "torch.storage._StorageBase",
        ("cuda",),
        stand_ins.storage,
        "no mode is called for storages, which map_location functions move",
    ),
    Group(
        "torch.autograd",
        ("_engine_run_backward",),
        stand_ins.engine,
        "Tensor.backward suspends the mode, also for hooks and backward functions of the program",
    ),
    Group(
        "torch.autograd.graph.saved_tensors_hooks",
        ("__init__",),
        stand_ins.saved_tensors_hooks,
        "its hooks are called while the mode is suspended; checkpointing compares devices in them",
    ),
    Group(
        "torch.Tensor",
        ("_make_wrapper_subclass",),
        stand_ins.wrapper_subclass,
        "DTensor and other wrappers pass it the device of a tensor, and no mode is called",
    ),
    Group(
        "torch.backends.cudnn.m",
        ("is_acceptable",),
        stand_ins.not_acceptable,
        "recurrent networks call it with CUDA tensors, and it warns that cuDNN is missing",
    ),
    Group(
        "torch.distributed",
        ("init_process_group", "new_group"),
        stand_ins.process_group,
        'they raise for "nccl" in a torch without NCCL',
    ),
    Group("torch.distributed", ("get_backend",), stand_ins.get_backend, 'programs compare it with "nccl"'),
    Group("torch.distributed", ("is_nccl_available",), stand_ins.is_nccl_available, "it is false"),
    Group(
        LATE_MODULE,
        ("setup_compilation_env",),
        stand_ins.compilation_env,
        "flex_attention is traced with fake tensors on cuda, which end the process in a torch without CUDA",
    ),
)


def replaced_names():
    """Returns the dotted names in the table, in order."""
    return [f"{group.owner}.{name}" for group in TABLE for name in group.names]


def planned():
    """Yields (module or class, name, function that makes the replacement) for this torch."""
    for group in TABLE:
        owner = _resolve(group.owner)
        for name in group.names:
            if hasattr(owner, name):
                for place in _places(owner, name, getattr(owner, name)):
                    yield place, name, group.make


def install():
    """Replaces every attribute in the table that is not replaced yet."""
    made = {}
    replaced = {(owner, name) for owner, name, _ in _replaced}
    try:
        for owner, name, make in list(planned()):
            if (owner, name) in replaced:
                continue
            original = getattr(owner, name)
            # One replacement for all locations of an attribute, so that they remain the same
            # object.
            key = name, id(original), make
            if key not in made:
                made[key] = make(name, original)
            # If the class inherits the attribute, uninstall() deletes the replacement.
            _replaced.append((owner, name, original if name in vars(owner) else _ABSENT))
            setattr(owner, name, made[key])
    except BaseException:
        uninstall()
        raise


def uninstall():
    """Restores the original values."""
    while _replaced:
        owner, name, before = _replaced.pop()
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _resolve(dotted):
    """Returns a module or class by name; None if torch lacks it, as some builds lack torch.distributed, or if
    it is not imported yet.
    """
    if dotted in sys.modules:  # a module becomes an attribute of its package after its import
        return sys.modules[dotted]
    owner = importlib.import_module("torch")
    for part in dotted.split(".")[1:]:
        owner = getattr(owner, part, None)
    return owner


def _places(owner, name, original):
    """Yields the owner, and the module that defines the function or class."""
    yield owner
    home = sys.modules.get(getattr(original, "__module__", None) or "")
    if isinstance(owner, ModuleType) and home not in (None, owner) and vars(home).get(name) is original:
        yield home
