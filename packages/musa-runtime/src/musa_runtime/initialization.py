# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""First use of the device: packs, then the C++ side, then the calls that were queued before.

`import torch` must not use the device, so code that needs it calls `lazy_init()` first. torch's C++ calls
it too, under the name `torch.musa._lazy_init`, before it creates the first musa tensor.

Locking: `_lock` guards all module state below. It is taken with the GIL held and released while waiting, and
is re-entrant because packs may use the device while they register.
"""

from __future__ import annotations

import itertools
import os
import threading

from . import _load, policy, switches
from .errors import DeferredCallError, ForkError, NoDeviceError, SettingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

_lock = threading.RLock()
_initialized = False
_initializing = False
_pack_loader: Callable[[], Mapping[str, str] | None] | None = None
_queued: dict[
    tuple[Hashable, ...], Callable[[], object]
] = {}  # key -> call; a later call with an equal key replaces the earlier one
_numbers = itertools.count()
_observers: list[Callable[[bool], object]] = []


def is_initialized() -> bool:
    """Whether the device has been used in this process."""
    return _initialized


def is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used the device, and so cannot."""
    result = _load._result
    return result is not None and result.extension is not None and result.extension.is_in_bad_fork()


def set_pack_loader(load_packs: Callable[[], Mapping[str, str] | None]) -> None:
    """Name the function that loads the op packs; it runs once, before the device is first used.

    Args:
        load_packs (callable): returns the version of each distribution whose pack is loaded and has
            providers, or None for none.
    """
    global _pack_loader
    _pack_loader = load_packs


def on_change(observer: Callable[[bool], object]) -> None:
    """Call `observer(initialized: bool)` whenever :func:`is_initialized` changes."""
    _observers.append(observer)


def lazy_init() -> None:
    """Initialise the device; returns immediately if it is initialised.

    Raises:
        ForkError: in a process forked after the device was initialised.
        MusaError: the recorded cause, if the runtime is not loaded.
        NoDeviceError: no device is visible.
        torch.AcceleratorError: the SDK refuses.
    """
    # The fork check comes first: the child inherits `_initialized`, and a device context does not survive a
    # fork.
    if is_in_bad_fork():
        raise ForkError(
            "the musa device cannot be used in a process forked after the device was initialised.\n"
            "Fix: use the 'spawn' start method (multiprocessing.set_start_method('spawn'), or "
            "DataLoader(multiprocessing_context='spawn')), or fork before the first use of the device"
        )
    if not _initialized:
        _initialize()


def call_when_initialized(call: Callable[[], object], key: tuple[Hashable, ...]) -> None:
    """Run `call()` now if the device is initialised, otherwise when it is.

    Args:
        key (tuple): the function's name first. A queued call with an equal key is replaced, so that seeding
            in a loop does not grow the queue.
    """
    with _lock:
        if not _initialized:
            _queued.pop(key, None)  # re-inserted at the end: the order of the last calls matters
            _queued[key] = call
            return
    call()


def lazy_call(callable: Callable[[], object], **kwargs: object) -> None:
    """Run `callable()` now if the device is initialised, otherwise when it is, as `torch.cuda._lazy_call`.

    Args:
        kwargs: `seed` and `seed_all`, which torch passes for functions that seed; the order of calls is kept
            for all functions.
    """
    call_when_initialized(callable, ("_lazy_call", next(_numbers)))


def _initialize() -> None:
    global _initialized, _initializing
    native = _load.extension()
    with _lock:
        if _initialized or _initializing:  # the latter: a pack or a queued call on this thread
            return
        _initializing = True
        try:
            native.ops_await_packs()
            packs = _pack_loader() if _pack_loader is not None else None
            policy.check_environment()
            if native.device_count() == 0:
                raise NoDeviceError(_no_device(native.device_count_error()))
            from . import measured_orders  # on first use only: `import torch` must stay fast

            measured_orders.apply(packs or {})
            native.init()
            keep_threads = switches.flag("TORCH_MUSA_BACKWARD_THREADS")
            if native.computes_on_host() and not keep_threads:
                _run_backward_on_the_calling_thread()
            _run_queued()
        finally:
            _initializing = False
        _initialized = True
        os.register_at_fork(after_in_child=_forget_in_child)
        _notify()


def _run_backward_on_the_calling_thread() -> None:
    # If kernels run on the calling thread, the engine's own thread adds no parallelism, only a thread switch
    # for each backward pass and a second OpenMP pool that competes with the caller's for the same cores:
    # small training steps take 1.2 to 3 times as long. The switch is torch's own, for the thread that first
    # uses the device; backward passes of CPU tensors run on the calling thread anyway.
    import torch

    torch.autograd.set_multithreading_enabled(False)


def _no_device(error: str | None) -> str:
    """Returns the message for 0 devices. `error` is the name of the SDK's error, if counting failed."""
    if error == "musaErrorMemoryAllocation":
        return (
            "no musa device can be used: the SDK could not allocate memory when it counted the devices "
            f"({error}).\n"
            "Likely causes: the virtual memory of this process is limited, or the host has no memory left.\n"
            "Fix: raise the limit (ulimit -v unlimited), or end other programs"
        )
    visible = os.environ.get("MUSA_VISIBLE_DEVICES")
    reported = f" (musaGetDeviceCount returned {error})" if error not in (None, "musaErrorNoDevice") else ""
    lines = [f"no musa device is visible{reported}. Likely causes:"]
    if visible is not None:
        odd = [part for part in visible.split(",") if not part.strip().isdigit()]
        fault = f"{odd[0]!r} in it is no device index" if odd and visible.strip() else "it hides every device"
        lines.append(f"  MUSA_VISIBLE_DEVICES={visible!r}: {fault}; expected are indices such as '0,1'")
    lines += [
        "  the kernel driver is not loaded, or a container was started without the devices",
        "Fix: "
        + ("unset MUSA_VISIBLE_DEVICES, or name devices that exist; " if visible is not None else "")
        + "list the devices of the driver with mthreads-gmi",
    ]
    return "\n".join(lines)


def _run_queued() -> None:
    while _queued:
        key = next(iter(_queued))
        call = _queued.pop(key)
        try:
            call()
        except SettingError:
            raise  # names the variable and the mending command; no function was called
        except Exception as error:
            raise DeferredCallError(
                f"torch.musa.{key[0]}() was queued until the device was initialised, and failed now: {error}"
            ) from error


def _forget_in_child() -> None:
    # Another thread may have held the lock at the fork; in the child no thread would ever release it.
    global _lock, _initialized, _initializing
    _lock = threading.RLock()
    _initializing = False
    if _initialized:
        _initialized = False
        _notify()


def _notify() -> None:
    for observer in _observers:
        observer(_initialized)
