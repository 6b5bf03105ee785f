# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The history of device memory, with the program's stacks. Names, arguments and the snapshot's
format are torch.cuda.memory's, so that torch's memory_viz (`torch/cuda/_memory_viz.py`, and
https://pytorch.org/memory_viz) opens a snapshot of musa memory.

    torch.musa.memory._record_memory_history()
    ...
    torch.musa.memory._dump_snapshot("memory.pickle")
    torch.musa.memory._record_memory_history(enabled=None)
"""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

from . import device as _device
from ._load import extension
from .initialization import lazy_init

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Literal

    from ._types import Device, PoolId

_ENABLED = (None, "state", "all")
_CONTEXTS = (None, "state", "alloc", "all")
_STACKS = ("python", "all")
# The actions of TraceEntry, in the order in which they are documented.
_ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "oom",
    "snapshot",
)


def _require(name: str, value: object, allowed: tuple[str | None, ...]) -> None:
    # True equals 1, but must not be accepted for it.
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, but got {value!r}")


def _record_memory_history(
    enabled: Literal["state", "all"] | None = "all",
    context: Literal["state", "alloc", "all"] | None = "all",
    stacks: Literal["python", "all"] = "all",
    max_entries: int = sys.maxsize,
    device: Device = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: Iterable[str] | None = None,
) -> None:
    """Start or stop recording the history of device memory.

    Args:
        enabled: `"all"` records every event, `"state"` only the stacks of live memory, None stops and
            drops the events (live memory keeps its stacks).
        context: which stacks are recorded: None; `"state"`, those of live memory; `"alloc"`, also those of
            allocation events; `"all"`, also those of frees.
        stacks: `"python"` frames (and TorchScript's), or `"all"`, C++ frames too. A stack costs a few
            microseconds and some hundred bytes.
        max_entries (int): events kept for each device; the oldest are dropped first.
        device: the device to record; None, every device.
        clear_history (bool): drop earlier events.
        compile_context (bool): mark events that happen while torch.compile compiles with the name of the
            compilation.
        global_record_annotations (bool): record the ranges of `torch.profiler.record_function` too, as the
            snapshot's `external_annotations`.
        skip_actions (list of str): events that are not recorded: `alloc`, `free_requested`,
            `free_completed`, `segment_alloc`, `segment_free`, `segment_map`, `segment_unmap`, `oom`,
            `snapshot`.

    Raises:
        ValueError: an argument has none of the values above.
    """
    _require("enabled", enabled, _ENABLED)
    _require("context", context, _CONTEXTS)
    _require("stacks", stacks, _STACKS)
    if max_entries < 0:
        raise ValueError(f"max_entries must be a number of events, 0 or more, but got {max_entries}")
    skip_actions = list(skip_actions or ())
    for action in skip_actions:
        _require("an action in skip_actions", action, _ACTIONS)
    lazy_init()
    index = -1 if device is None else _device.device_index(device)
    extension().record_memory_history(
        enabled,
        context,
        stacks,
        min(max_entries, sys.maxsize),
        clear_history,
        global_record_annotations,
        skip_actions,
        index,
    )
    _follow_compilations(enabled is not None and compile_context)


_compile_callbacks: Any = None


def _follow_compilations(wanted: bool) -> None:
    global _compile_callbacks
    if wanted == (_compile_callbacks is not None):
        return
    from torch._dynamo.callback import callback_handler  # imported here because it takes seconds

    if wanted:

        def start(compilation: Any) -> None:
            extension().push_compile_context(str(compilation.compile_id))

        def end(compilation: Any) -> None:
            extension().pop_compile_context()

        callback_handler.register_start_callback(start)
        callback_handler.register_end_callback(end)
        _compile_callbacks = (start, end)
    else:
        start, end = _compile_callbacks
        callback_handler.remove_start_callback(start)
        callback_handler.remove_end_callback(end)
        _compile_callbacks = None


def _snapshot(device: Device = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """The state of the caching allocator, and the history since :func:`_record_memory_history`.

    Args:
        device: the device of the segments and events; None, every device. `device_traces` has a list
            for each device in any case.
        augment_with_fx_traces (bool): name the lines of the model behind frames of code that FX generated.

    Returns:
        dict: `segments`, a list of dicts with `device, address, total_size, allocated_size, active_size,
        requested_size, stream, segment_type` (`small` or `large`)`, segment_pool_id, is_expandable, frames`
        and `blocks` (`address, size, requested_size, state, frames`; a state is `active_allocated`,
        `active_awaiting_free` or `inactive`); `device_traces`, for each device a list of dicts with `action,
        addr` (for `oom` instead `device_free`)`, size, stream, time_us, pool_id, frames, compile_context,
        user_metadata`; `allocator_settings`; `external_annotations`. Sizes are in bytes, and frames are dicts
        of `filename, line, name`, the innermost first.
    """
    lazy_init()
    index = -1 if device is None else _device.device_index(device)
    snapshot: Any = extension().memory_snapshot(None, True, index)
    if augment_with_fx_traces:
        from torch._utils import _augment_memory_snapshot_stack_traces

        snapshot = _augment_memory_snapshot_stack_traces(snapshot)
    return snapshot


def _dump_snapshot(
    filename: str | os.PathLike[str] = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write :func:`_snapshot` of every device to a file that memory_viz opens."""
    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def memory_snapshot(mempool_id: PoolId | None = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of the caching allocator, of every device: `_snapshot()["segments"]`.

    Args:
        mempool_id (pair of int, optional): only the segments of this memory pool.
        include_traces (bool): record a mark (`snapshot`) in the history; False makes the call cheap
            if a long history is recorded.
    """
    lazy_init()
    pool = None if mempool_id is None else tuple(mempool_id)
    return extension().memory_snapshot(pool, include_traces, -1)["segments"]


def _allocation_traceback(data_ptr: int) -> list[dict[str, Any]] | None:
    """The stack that allocated live memory, as a list of frames; None if it was not recorded.

    Args:
        data_ptr (int): address of the allocation's first byte, e.g. `tensor.untyped_storage().data_ptr()`.
    """
    return extension().allocation_traceback(data_ptr)


def _set_memory_metadata(metadata: str) -> None:
    """Mark this thread's later memory events with a text (`user_metadata`); "" ends it."""
    extension().set_memory_metadata(metadata)


def _get_memory_metadata() -> str:
    """The text set by :func:`_set_memory_metadata`, or ""."""
    return extension().get_memory_metadata()


def _attach_out_of_memory_observer(observer: Callable[[int, int, int, int], object]) -> None:
    """Call a function whenever memory is exhausted, before the error is raised. It cannot be detached.

    Args:
        observer: called with the device's index and three numbers of bytes: requested, in total on the
            device, free on the device. It may take a snapshot. An exception in it is reported and does not
            replace the out-of-memory error.
    """
    if not callable(observer):
        raise TypeError(f"the observer must be a function, not {type(observer).__name__}")
    lazy_init()
    extension().attach_out_of_memory_observer(observer)


def _save_segment_usage(
    filename: str | os.PathLike[str] = "output.svg", snapshot: dict[str, Any] | None = None
) -> None:
    """Write a flame graph of each segment's blocks. torch's memory_viz downloads the drawing program."""
    from torch.cuda import _memory_viz

    _write(filename, _memory_viz.segments(_snapshot() if snapshot is None else snapshot))


def _save_memory_usage(
    filename: str | os.PathLike[str] = "output.svg", snapshot: dict[str, Any] | None = None
) -> None:
    """Write a flame graph of the memory allocated by each line."""
    from torch.cuda import _memory_viz

    _write(filename, _memory_viz.memory(_snapshot() if snapshot is None else snapshot))


def _write(filename: str | os.PathLike[str], text: str) -> None:
    with open(filename, "w", encoding="utf-8") as file:
        file.write(text)


__all__ = ["memory_snapshot"]
