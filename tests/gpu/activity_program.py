# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A program without torch, which records its own activity with libmupti and prints it as JSON."""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from pathlib import Path

U8, U16, U32, U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
P = ctypes.POINTER
BYTES = 1 << 20
KINDS = {5: "calls", 1: "copies", 2: "fills", 38: "waits", 39: "external"}


def record(*fields: tuple[str, type]) -> type[ctypes.Structure]:
    """A structure of mupti_activity.h."""
    return type("Record", (ctypes.Structure,), {"_fields_": [("kind", U32), *fields]})


TIMES = (("start", U64), ("end", U64))
PLACE = (("device", U32), ("context", U32), ("stream", U32), ("correlation", U32))
RECORDS = {
    "calls": record(
        ("call", U32), *TIMES, ("process", U32), ("thread", U32), ("correlation", U32), ("result", U32)
    ),
    "copies": record(
        *((name, U8) for name in ("direction", "source", "target", "flags")), ("bytes", U64), *TIMES, *PLACE
    ),
    "fills": record(("value", U32), ("bytes", U64), *TIMES, *PLACE, ("flags", U16), ("memory", U16)),
    "waits": record(
        ("type", U32), *TIMES, ("correlation", U32), ("context", U32), ("stream", U32), ("event", U32)
    ),
    "external": record(("stack", U32), ("id", U64), ("correlation", U32), ("reserved", U32)),
}


class CallbackData(ctypes.Structure):
    """The first fields of MUpti_CallbackData."""

    _fields_ = (("site", U32), ("name", ctypes.c_char_p))


libraries = Path(os.environ["MUSA_HOME"]) / "lib"
runtime = ctypes.CDLL(str(libraries / "libmusart.so"))
mupti = ctypes.CDLL(str(libraries / "libmupti.so"))
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = libc.pthread_self.restype = ctypes.c_void_p

buffers: set[int] = set()
found: dict[str, list] = {name: [] for name in KINDS.values()}
seen: list[str] = []


def check(result: int) -> None:
    if result != 0:
        raise RuntimeError(f"error {result}")


@ctypes.CFUNCTYPE(None, P(ctypes.c_void_p), P(ctypes.c_size_t), P(ctypes.c_size_t))
def request(buffer, size, most):
    buffer[0] = libc.aligned_alloc(ctypes.c_size_t(8), ctypes.c_size_t(BYTES))
    buffers.add(buffer[0])
    size[0], most[0] = BYTES, 0


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, U32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
def complete(_context, _stream, buffer, _size, valid):
    place = ctypes.c_void_p()
    while (
        mupti.muptiActivityGetNextRecord(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), ctypes.byref(place))
        == 0
    ):
        name = KINDS[U32.from_address(place.value).value]
        one = RECORDS[name].from_address(place.value)
        found[name].append({field: getattr(one, field) for field, _ in one._fields_})
    buffers.discard(buffer)
    libc.free(ctypes.c_void_p(buffer))


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, U32, U32, P(CallbackData))
def see(_userdata, _domain, _call, data):
    seen.append("+-"[data[0].site] + data[0].name.decode())


def work() -> None:
    memory, host = ctypes.c_void_p(), ctypes.create_string_buffer(BYTES)
    check(runtime.musaMalloc(ctypes.byref(memory), ctypes.c_size_t(BYTES)))
    check(runtime.musaMemset(memory, 7, ctypes.c_size_t(BYTES)))
    check(runtime.musaMemcpy(host, memory, ctypes.c_size_t(BYTES), 2))
    check(runtime.musaDeviceSynchronize())
    check(runtime.musaFree(memory))
    assert host.raw == b"\7" * BYTES


def main() -> None:
    begin = time.time_ns()
    check(mupti.muptiActivityRegisterCallbacks(request, complete))
    for kind in KINDS:
        check(mupti.muptiActivityEnable(kind))
    check(mupti.muptiActivityPushExternalCorrelationId(3, U64(42)))
    work()
    check(mupti.muptiActivityPopExternalCorrelationId(3, None))
    for kind in KINDS:
        check(mupti.muptiActivityDisable(kind))
    check(mupti.muptiActivityFlushAll(1))
    end = time.time_ns()

    subscriber, second = ctypes.c_void_p(), ctypes.c_void_p()
    check(mupti.muptiSubscribe(ctypes.byref(subscriber), see, None))
    refused = mupti.muptiSubscribe(ctypes.byref(second), see, None)
    check(mupti.muptiEnableDomain(1, subscriber, 2))
    work()
    check(mupti.muptiUnsubscribe(subscriber))
    check(mupti.muptiFinalize())
    thread = libc.pthread_self() & 0xFFFFFFFF
    assert threading.current_thread() is threading.main_thread()
    kept = {"begin": begin, "end": end, "buffers": len(buffers), "refused": refused, "thread": thread}
    print(json.dumps({**found, **kept, "seen": seen}))


main()
