# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""musa tensors between processes, through `torch.multiprocessing`.

A tensor, parameter, storage or module that is put into a queue or pipe of `torch.multiprocessing`, or passed
to a spawned process, arrives as the same memory: nothing is copied, and each process sees the other's writes.
The rules are those of torch.cuda:

* Start processes with "spawn". A process forked after the first use of the device gets a `ForkError`.
* The sender keeps the memory until the last receiver has released it, and must outlive the receivers. A
  message of a sender that has ended raises `ProducerExitedError`; if its memory is still in use when the
  sender ends, a warning is issued.
* A receiver cannot forward received memory; it sends a copy (`tensor.clone()`).
* A queue pickles on a thread of its own, some time after `put()`.

Only untyped storages need reducers of this module: torch reduces tensors, parameters, sparse tensors and
typed storages to them. The reducer passes storages of other devices to torch's own.
"""

from __future__ import annotations

import atexit
import warnings
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing.reductions as _reductions

from ._load import extension
from .errors import ProducerExitedError, SharingError
from .initialization import is_in_bad_fork, is_initialized, lazy_init
from .interprocess_events import InterprocessEvent

_registered = False
_watching_exit = False


def register() -> None:
    """Let torch.multiprocessing send musa memory. Cheap, does not use the device, and may be repeated."""
    global _registered
    if not _registered:
        ForkingPickler.register(torch.UntypedStorage, _reduce_storage)
        ForkingPickler.register(InterprocessEvent, _reduce_event)
        _registered = True


def ipc_collect() -> None:
    """Return memory that receivers have released to the allocator, and report senders that have ended.

    Called automatically when memory is sent, and before more memory is requested from the device.
    """
    if not is_initialized() or is_in_bad_fork():
        return
    extension().ipc_collect()
    for process in extension().ipc_usage()["ended"]:
        warnings.warn(
            f"process {process} has ended while this process still holds musa tensors that it had shared. "
            "Their contents are undefined from now on.\nFix: keep the sender alive until the "
            "receivers have released them, or keep a copy: tensor.clone()",
            RuntimeWarning,
            stacklevel=2,
        )


def _reduce_storage(storage: torch.UntypedStorage) -> tuple[Any, ...]:
    if storage.device.type != "musa":
        return _reductions.reduce_storage(storage)
    lazy_init()
    if storage.nbytes() == 0:
        return _rebuild_empty, (storage.device.index,)
    message = extension().ipc_share(storage)
    _watch_exit()
    return _rebuild_storage, message


def _rebuild_storage(*message: Any) -> torch.UntypedStorage:
    lazy_init()
    return extension().ipc_open(*message)


def _rebuild_empty(device_index: int) -> torch.UntypedStorage:
    # Without memory, only the number of the sender's device is sent; a receiver with fewer devices uses its
    # own.
    lazy_init()
    if device_index >= extension().device_count():
        device_index = extension().current_device()
    return torch.UntypedStorage(0, device=torch.device("musa", device_index))


def _reduce_event(event: InterprocessEvent) -> tuple[Any, ...]:
    handle = event.ipc_handle()
    return _rebuild_event, (event.device.index, handle)  # type: ignore[union-attr]


def _rebuild_event(device_index: int, handle: bytes) -> InterprocessEvent:
    return InterprocessEvent.from_ipc_handle(device_index, handle)


def _watch_exit() -> None:
    global _watching_exit
    if not _watching_exit:
        _watching_exit = True
        atexit.register(_report_at_exit)


def _report_at_exit() -> None:
    if is_in_bad_fork() or not is_initialized():
        return
    held = extension().ipc_usage()["held"]
    if held:
        warnings.warn(
            f"this process ends while others still hold {held} shared musa tensor(s) of it. "
            "Their contents are undefined from now on.\n"
            "Fix: let the receivers drop the tensors, or copy them with tensor.clone(), before this "
            "process ends: wait for an Event that they set, or join() them",
            RuntimeWarning,
            stacklevel=1,
        )


__all__ = ["ProducerExitedError", "SharingError", "ipc_collect", "register"]
