# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""User-defined memory pools and allocators. The names and meanings are torch.cuda's."""

from __future__ import annotations

import contextlib
import ctypes
import os
from typing import TYPE_CHECKING, Any

from . import device as _device
from ._load import extension
from .errors import AllocatorInUseError
from .initialization import is_initialized, lazy_init
from .memory_history import memory_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._C import _MUSAAllocator
    from ._types import Device, PoolId


class MemPool:
    """A pool of device memory: allocations inside :func:`use_mem_pool` come from it and return to it.

    The pool keeps its memory while it exists. When it is destroyed, free memory is released to the device,
    and the memory of tensors that are still alive becomes ordinary cached memory once they are freed.

    Args:
        allocator (optional): the allocator of its segments, from :meth:`MUSAPluggableAllocator.allocator`;
            None, the device.
        use_on_oom (bool): use the pool's free memory for other requests before memory runs out.
        no_split (bool): never split a segment; each is as large as the tensor that made it.

    The pool belongs to the device that is current when it is made.
    """

    def __init__(
        self, allocator: _MUSAAllocator | None = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        lazy_init()
        self._pool = extension()._MemPool(allocator, True, use_on_oom, no_split)

    @property
    def id(self) -> PoolId:
        """The pool's id, a pair of ints."""
        return self._pool.id

    @property
    def device(self) -> int:
        """Index of the pool's device."""
        return self._pool.device

    def use_count(self) -> int:
        """The number of holders: this object, the regions that currently fill it, and graphs."""
        return self._pool.use_count()

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """The pool's segments, in the form of :func:`memory_snapshot`.

        Args:
            include_traces (bool): record a mark in the history.
        """
        return memory_snapshot(self.id, include_traces=include_traces)

    def __repr__(self) -> str:
        return f"MemPool(id={self.id}, device={self.device}, use_count={self.use_count()})"


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Device = None) -> Iterator[None]:
    """Allocate from a pool, in this thread.

    Other threads are not affected, so memory that backward() allocates on its own thread comes from
    elsewhere. Regions of different pools may be nested: the innermost is used.

    Args:
        pool (MemPool): the pool to allocate from.
        device (int, str, torch.device or None): whose allocations use the pool; None is the current device.

    Raises:
        RuntimeError: the pool is being filled already, by an outer region or by another thread.
    """
    lazy_init()
    index = _device.device_index(device)
    native = extension()
    native.begin_allocate_current_thread_to_pool(index, pool.id)
    try:
        yield
    finally:
        native.end_allocate_to_pool(index, pool.id)
        native.release_pool(index, pool.id)


class MUSAPluggableAllocator:
    """An allocator made of two functions of a shared library.

    Args:
        path_to_so_file (str or path): the library.
        alloc_fn_name (str): name of `void* f(ssize_t size, int device, musaStream_t stream)`. `size` is in
            bytes; it returns null if there is no memory.
        free_fn_name (str): name of `void f(void* ptr, ssize_t size, int device, musaStream_t stream)`.

    Both are called with the device current, from any thread, and must not be called again from within.

    Raises:
        OSError: the library cannot be loaded. AttributeError: it has no such function.
    """

    def __init__(
        self, path_to_so_file: str | os.PathLike[str], alloc_fn_name: str, free_fn_name: str
    ) -> None:
        library = ctypes.CDLL(os.fspath(path_to_so_file))
        addresses = []
        for name in (alloc_fn_name, free_fn_name):
            try:
                function = getattr(library, name)
            except AttributeError as error:
                path = os.fspath(path_to_so_file)
                raise AttributeError(
                    f"{path} has no function {name!r}.\n"
                    'Likely cause: it was compiled as C++ without extern "C", which changes the name.\n'
                    f'Fix: declare it extern "C"; its functions are listed by: nm -D --defined-only {path}'
                ) from error
            addresses.append(ctypes.cast(function, ctypes.c_void_p).value)
        self._library = library  # keeps the functions loaded while the allocator is used
        self._allocator = extension().custom_allocator(*addresses)

    def allocator(self) -> _MUSAAllocator:
        """The argument `allocator` of :class:`MemPool`."""
        return self._allocator


def change_current_allocator(allocator: MUSAPluggableAllocator) -> None:
    """Replace the caching allocator, for the whole process and permanently.

    Args:
        allocator (MUSAPluggableAllocator): nothing is cached then; each tensor is one call of its functions.
            Statistics count those calls. Private pools and graphs need the caching allocator.

    Raises:
        AllocatorInUseError: the device has been used already.
    """
    if is_initialized():
        raise AllocatorInUseError(
            "the allocator of musa memory cannot be changed any more: the device was used in this process.\n"
            "Fix: call torch.musa.memory.change_current_allocator() before the first tensor on the "
            "device and before torch.musa.init(); to change it for some tensors alone, use "
            "torch.musa.MemPool(allocator.allocator())"
        )
    extension().change_current_allocator(allocator.allocator())


def get_allocator_backend() -> str:
    """Name of the allocator of musa tensors: `"native"`, or `"pluggable"` after
    :func:`change_current_allocator`."""
    return extension().allocator_name()


def caching_allocator_enable(value: bool = True) -> None:
    """Turn caching on or off: when off, each tensor's memory is requested from the device and freed at once.

    Memory checkers then see every access beyond the end. Memory cached before is released at the next free.
    """
    extension().allocator_enable(bool(value))


@contextlib.contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Context manager that turns caching off, and restores the previous setting at its end."""
    before = extension().allocator_is_enabled()
    caching_allocator_enable(False)
    try:
        yield
    finally:
        caching_allocator_enable(before)


def _set_allocator_settings(settings: str) -> None:
    """Change settings of the allocator in the running program.

    Args:
        settings (str): as in PYTORCH_ALLOC_CONF, e.g.
            `"max_split_size_mb:64,garbage_collection_threshold:0.8"`. Keys that are not named keep their
            values, except max_split_size_mb, garbage_collection_threshold and roundup_power2_divisions, which
            torch then resets to their defaults.

    Raises:
        ValueError: a key is unknown or its value malformed; no setting is changed.
    """
    extension().set_allocator_settings(settings)


__all__ = [
    "MUSAPluggableAllocator",
    "MemPool",
    "caching_allocator_enable",
    "change_current_allocator",
    "get_allocator_backend",
    "use_mem_pool",
]
