# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The dispatch mode that calls the tools of this package for each operator of a program."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import providers
from .call import OperatorCall
from .module_names import ModuleNames

_entered = threading.local()  # `mode`: the mode that this thread has entered


def add(observer: Any) -> None:
    """Registers an observer for operators of this thread and its backward passes."""
    mode = getattr(_entered, "mode", None)
    if mode is None:
        mode = OperatorMode()
        mode.names.start()
        mode.__enter__()
        _entered.mode = mode
    mode.observers = [*mode.observers, observer]


def remove(observer: Any) -> None:
    """Undoes `add`. Removing the last observer exits the mode."""
    mode = _entered.mode
    mode.observers = [other for other in mode.observers if other is not observer]
    if not mode.observers:
        _entered.mode = None
        mode.__exit__(None, None, None)
        mode.names.stop()


class OperatorMode(TorchDispatchMode):
    """Creates an `OperatorCall` per operator, and calls the observers before and after it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.observers: list[Any] = []
        self.names = ModuleNames()
        self._numbers = itertools.count()  # next() is atomic, as backward passes call from several threads
        self._origin = time.perf_counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if any(kind.__module__.startswith("torch._subclasses") for kind in types):
            return func(*args, **kwargs)  # fake and functional tensors have no values
        if any(kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl for kind in types):
            # A tensor subclass such as DTensor: its own dispatch runs first, and calls operators on
            # plain tensors, which are dispatched here again.
            return NotImplemented
        module, phase, node = self.names.current()
        call = OperatorCall(next(self._numbers), func, args, kwargs, module, phase, node)
        observers = self.observers
        with torch._C._DisableTorchDispatch():
            for observer in observers:
                observer.before(call)
        probe = providers.Probe(call.name) if call.on_device and not call.is_view else None
        waits = call.on_device and not torch.musa.is_current_stream_capturing()  # type: ignore[attr-defined]
        if waits:
            torch.musa.synchronize()  # type: ignore[attr-defined]
        call.start = time.perf_counter() - self._origin
        try:
            call.result = func(*args, **kwargs)
        except BaseException as error:
            call.error = error
            raise
        finally:
            if waits:
                torch.musa.synchronize()  # type: ignore[attr-defined]
            call.seconds = time.perf_counter() - self._origin - call.start
            call.provider = probe.provider() if probe else ""
            with torch._C._DisableTorchDispatch():
                for observer in reversed(observers):
                    observer.after(call)
        return call.result
