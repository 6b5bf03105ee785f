# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""muBLAS handles for libraries that call muBLAS themselves.

A thread has one handle for each device that it uses, as in torch.cuda. Handles of a thread that ended are
used again by other threads, because creating a handle allocates device memory.

Locking: `_lock` guards `_unused` and is a leaf: no SDK call runs while it is held.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from threading import Lock

from . import sdk
from ._load import extension
from .device import current_device
from .errors import LibraryLoadError, SdkCallError
from .initialization import lazy_init

_lock = threading.Lock()
_unused: dict[int, list[int]] = {}  # device index -> handles of threads that ended


class _Handles:
    """The handles of a thread by device index, returned to `_unused` when the thread ends."""

    def __init__(self) -> None:
        self.of_device: dict[int, int] = {}

    # The defaults exist when the interpreter shuts down, unlike the names of the module.
    def __del__(self, lock: Lock = _lock, unused: dict[int, list[int]] = _unused) -> None:
        with lock:
            for index, handle in self.of_device.items():
                unused.setdefault(index, []).append(handle)


class _Thread(threading.local):
    def __init__(self) -> None:
        self.handles = _Handles()


_thread = _Thread()


@functools.cache
def _library() -> ctypes.CDLL:
    path = os.path.join(sdk.resolve().home or "", "lib", "libmublas.so")
    if not os.path.exists(path):
        from . import installation

        command = installation.command("musa-emulator-math")
        raise LibraryLoadError(
            f"the SDK has no muBLAS: there is no {path}.\n"
            "Likely causes: only a part of the SDK is installed; the emulator's mathematical libraries are a "
            f"wheel of their own.\nFix: {command}, or install muBLAS of the SDK",
            command,
        )
    library = ctypes.CDLL(path)
    library.mublasCreate.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    library.mublasSetStream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return library


def _check(status: int, function: str) -> None:
    if status != 0:
        raise SdkCallError(status, f"{function} failed with status {status} of mublasStatus_t")


def current_blas_handle() -> int:
    """Returns the `mublasHandle_t` of the current thread and device as an int, set to the current stream.

    The handle stays valid until the process ends, and is not to be destroyed. Its other settings, such as the
    pointer mode, are those that the last user left.

    Raises:
        LibraryLoadError: if the SDK has no muBLAS.
        SdkCallError: if muBLAS refuses.
    """
    lazy_init()
    library, index = _library(), current_device()
    handles = _thread.handles.of_device
    if index not in handles:
        with _lock:
            kept = _unused.get(index)
            if kept:
                handles[index] = kept.pop()
    if index not in handles:
        created = ctypes.c_void_p()
        _check(library.mublasCreate(ctypes.byref(created)), "mublasCreate")
        handles[index] = created.value or 0
    stream_id, device, _ = extension().current_stream(index)
    stream = extension().stream_native_handle(stream_id, device)
    _check(library.mublasSetStream(handles[index], stream), "mublasSetStream")
    return handles[index]


__all__ = ["current_blas_handle"]
