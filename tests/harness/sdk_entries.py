# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs code of a test at the start of a call of the SDK, on the calling thread, through MUPTI's callbacks."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

from .emulator import loaded_sdk

_RUNTIME_API = 2
_ENTER = 0
# Another thread may still be at the start of a callback when its subscriber is removed, so none is freed.
_callbacks: list[object] = []


class _CallbackData(ctypes.Structure):
    """The first fields of MUpti_CallbackData."""

    _fields_ = (("site", ctypes.c_uint32), ("name", ctypes.c_char_p))


@contextlib.contextmanager
def entering(function: str, action: Callable[[], object]) -> Iterator[None]:
    """Calls `action` before each call of one function of the runtime, such as "musaEventRecord".

    The action may call the SDK; calls inside it are not intercepted.
    """
    mupti = ctypes.CDLL(str(Path(loaded_sdk()._name).with_name("libmupti.so")))
    inside = False

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(_CallbackData))
    def see(_userdata, _domain, _call, data):
        nonlocal inside
        if inside or data[0].site != _ENTER or data[0].name != function.encode():
            return
        inside = True
        try:
            action()
        finally:
            inside = False

    _callbacks.append(see)
    subscriber = ctypes.c_void_p()
    for result in (
        mupti.muptiSubscribe(ctypes.byref(subscriber), see, None),
        mupti.muptiEnableDomain(1, subscriber, _RUNTIME_API),
    ):
        if result != 0:
            raise RuntimeError(f"MUPTI error {result}")
    try:
        yield
    finally:
        mupti.muptiUnsubscribe(subscriber)
