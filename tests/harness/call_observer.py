# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs a function of the test at the start and end of each SDK call, through MUPTI's callbacks.

What another thread may do between two calls of an operation can so be done there, in every run.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.harness.emulator import loaded_sdk

_RUNTIME_API = 2


class _CallbackData(ctypes.Structure):
    _fields_ = (("site", ctypes.c_int), ("name", ctypes.c_char_p))  # further fields follow


_Callback = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(_CallbackData)
)


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"an SDK call failed with error {status}")


def _mupti() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(loaded_sdk()._name).with_name("libmupti.so")))


@contextlib.contextmanager
def observed_calls(react: Callable[[str, bool], None]) -> Iterator[None]:
    """Calls ``react(name, ended)`` before and after each runtime call, on the thread of that call.

    Calls that `react` itself makes are not observed. Its first exception is raised at the end of the block.
    """
    mupti, busy, failures = _mupti(), threading.local(), []

    @_Callback
    def callback(_userdata, _domain, _id, data):
        if getattr(busy, "now", False) or failures:
            return
        busy.now = True
        try:
            react(data[0].name.decode(), data[0].site == 1)
        except BaseException as error:  # noqa: BLE001 (ctypes would only print it)
            failures.append(error)
        finally:
            busy.now = False

    subscriber = ctypes.c_void_p()
    check(mupti.muptiSubscribe(ctypes.byref(subscriber), callback, None))
    try:
        check(mupti.muptiEnableDomain(1, subscriber, _RUNTIME_API))
        yield
    finally:
        check(mupti.muptiUnsubscribe(subscriber))
    if failures:
        raise failures[0]
