# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A table of the calls that the runtime refuses, and a program that runs its rows for test_refusals.py.

The rows about captures, lost devices and wrong pointers were measured with the same calls on CUDA 13.0
(driver 580, one H200); those about two devices are from CUDA's documentation.
"""

from __future__ import annotations

import _ctypes
import ctypes
import json
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_void_p, create_string_buffer
from dataclasses import dataclass
from pathlib import Path

GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NON_BLOCKING, BLOCKING = 1, 0
HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = range(4)
DISABLE_TIMING, EXTERNAL = 2, 1
PAGE = 4096
RESERVED = 2 << 20
LIBRARY = _ctypes.__file__  # a small shared library, which passes for a module

HostFunction = ctypes.CFUNCTYPE(None, c_void_p)
StreamCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)


class Dim3(ctypes.Structure):
    _fields_ = [("x", c_uint), ("y", c_uint), ("z", c_uint)]


KernelEntry = ctypes.CFUNCTYPE(c_int, ctypes.POINTER(c_void_p), Dim3, Dim3, c_size_t)


class KernelInfo(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("entry", KernelEntry),
        ("argument_sizes", ctypes.POINTER(c_size_t)),
        ("argument_count", c_size_t),
        ("max_threads", c_int),
        ("static_shared", c_size_t),
    ]


class Blob(ctypes.Structure):
    """Memory for any structure that a row passes but does not read."""

    _fields_ = [("bytes", ctypes.c_char * 4096)]


class IpcHandle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 64)]


class AllocationProp(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("type", "handles", "location", "device")] + [
        ("metadata", c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Extent(ctypes.Structure):
    _fields_ = [(name, c_size_t) for name in ("width", "height", "depth")]


class ChannelDesc(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("x", "y", "z", "w", "kind")]


BYTES = ChannelDesc(8, 0, 0, 0, 1)  # elements of one unsigned byte


class Access(ctypes.Structure):
    _fields_ = [(name, c_int) for name in ("location", "device", "flags")]


class Sdk:
    """Calls functions by name without `musa`; returns the error's name without `musaError`, or "Success"."""

    def __init__(self, runtime: str, driver: str) -> None:
        self.runtime = ctypes.CDLL(runtime)
        self.driver = ctypes.CDLL(driver)
        self.runtime.musaGetErrorName.restype = ctypes.c_char_p
        self.runtime.musaLaunchKernel.argtypes = [c_void_p, Dim3, Dim3, c_void_p, c_size_t, c_void_p]
        self.runtime.musaIpcOpenMemHandle.argtypes = [c_void_p, IpcHandle, c_uint]
        self.kept: list[object] = []  # callbacks and buffers that enqueued work uses
        self.nothing = self.keep(HostFunction(lambda _: None))

    def keep(self, value):
        self.kept.append(value)
        return value

    def __call__(self, name: str, *arguments) -> str:
        function = getattr(self.runtime, "musa" + name)
        if function.argtypes is None:
            # ctypes passes an int as 32 bits; every integer or pointer parameter here fits in a register.
            arguments = tuple(c_size_t(a & (2**64 - 1)) if isinstance(a, int) else a for a in arguments)
        return self.name(function(*arguments))

    def name(self, status: int) -> str:
        return self.runtime.musaGetErrorName(status).decode().removeprefix("musaError").removeprefix("musa")

    def drive(self, name: str, *arguments) -> str:
        """Calls a function of the driver, whose codes equal the runtime's."""
        return self.name(getattr(self.driver, name)(*arguments))

    def make(self, name: str, *arguments) -> c_void_p:
        created = c_void_p()
        self.must(name, byref(created), *arguments)
        return created

    def must(self, name: str, *arguments) -> None:
        status = self(name, *arguments)
        assert status == "Success", f"musa{name}: {status}"

    def malloc(self, size: int = PAGE) -> c_void_p:
        return self.make("Malloc", size)

    def pinned(self, size: int = PAGE) -> c_void_p:
        return self.make("HostAlloc", size, 0)

    def page(self) -> int:
        """Returns the address of a page of pageable memory."""
        buffer = self.keep(create_string_buffer(4 * PAGE))
        return (ctypes.addressof(buffer) + PAGE - 1) // PAGE * PAGE

    def stream(self, flags: int = NON_BLOCKING) -> c_void_p:
        return self.make("StreamCreateWithFlags", flags)

    def event(self, flags: int = 0) -> c_void_p:
        return self.make("EventCreateWithFlags", flags)

    def recorded(self, stream: c_void_p | None = None) -> c_void_p:
        event = self.event()
        self.must("EventRecord", event, stream or self.stream())
        self.must("EventSynchronize", event)
        return event

    def begin(self, mode: int = RELAXED, flags: int = NON_BLOCKING) -> c_void_p:
        stream = self.stream(flags)
        self.must("StreamBeginCapture", stream, mode)
        return stream

    def end(self, stream: c_void_p) -> str:
        return self("StreamEndCapture", stream, byref(c_void_p()))

    def status(self, stream: c_void_p | None) -> str:
        value = c_int(-1)
        answer = self("StreamIsCapturing", stream, byref(value))
        return ("None", "Active", "Invalidated")[value.value] if answer == "Success" else answer

    def fork(self) -> tuple[c_void_p, c_void_p]:
        """Returns a capturing stream, and a second stream that has joined its capture."""
        origin, joined = self.begin(), self.stream()
        self.must("StreamWaitEvent", joined, self.captured(origin), 0)
        return origin, joined

    def captured(self, stream: c_void_p) -> c_void_p:
        event = self.event()
        self.must("EventRecord", event, stream)
        return event

    def enqueue(self, stream: c_void_p | None) -> str:
        return self("LaunchHostFunc", stream, self.nothing, None)

    def executable(self) -> tuple[c_void_p, c_void_p]:
        origin = self.begin()
        assert self.enqueue(origin) == "Success"
        graph = c_void_p()
        self.must("StreamEndCapture", origin, byref(graph))
        return graph, self.make("GraphInstantiateWithFlags", graph, 0)

    def module(self) -> c_void_p:
        module = c_void_p()
        assert self.drive("muModuleLoad", byref(module), LIBRARY.encode()) == "Success"
        return module

    def exchange(self, mode: int) -> int:
        value = c_int(mode)
        self.must("ThreadExchangeStreamCaptureMode", byref(value))
        return value.value

    def kernel(self, status: int = 0, arguments: int = 0, max_threads: int = 0) -> c_void_p:
        entry = self.keep(KernelEntry(lambda *_: status))
        sizes = self.keep((c_size_t * 1)(8))
        info = self.keep(KernelInfo(b"kernel", entry, sizes, arguments, max_threads, 0))
        symbol = self.keep(create_string_buffer(8))
        assert self.runtime.musaEmulatorRegisterKernel(symbol, byref(info)) == 0
        return ctypes.cast(symbol, c_void_p)

    def launch(self, kernel, stream=None, grid=(1, 1, 1), block=(1, 1, 1), shared: int = 0) -> str:
        return self("LaunchKernel", kernel, Dim3(*grid), Dim3(*block), None, shared, stream)

    def lose(self) -> c_void_p:
        """Launches a kernel that fails, so that the current device is lost; returns the stream."""
        stream = self.stream()
        assert self.launch(self.kernel(status=719), stream) == "Success"
        assert self("StreamSynchronize", stream) == "LaunchFailure"
        self("GetLastError")
        return stream


def on_thread(body: Callable[[], object]):
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(body).result()


# ---- calls during a capture ----------------------------------------------------------------------
#
# Each entry prepares a call that runs after the capture has begun.

Prepare = Callable[[Sdk], Callable[[], str]]
CALLS: dict[str, tuple[str, Prepare]] = {}


def call(kind: str) -> Callable[[Prepare], Prepare]:
    def add(prepare: Prepare) -> Prepare:
        CALLS[prepare.__name__] = (kind, prepare)
        return prepare

    return add


def simple(kind: str, name: str, prepare: Callable[[Sdk], tuple]) -> None:
    def prepare_call(sdk: Sdk) -> Callable[[], str]:
        arguments = prepare(sdk)
        return lambda: sdk(name.split("_")[0], *arguments)

    CALLS[name] = (kind, prepare_call)


def driver(kind: str, name: str, prepare: Callable[[Sdk], tuple]) -> None:
    def prepare_call(sdk: Sdk) -> Callable[[], str]:
        arguments = prepare(sdk)
        return lambda: sdk.drive(name, *arguments)

    CALLS[name] = (kind, prepare_call)


def out(*arguments) -> Callable[[Sdk], tuple]:
    return lambda sdk: (byref(c_void_p()), *arguments)


simple("unsafe", "Malloc", out(PAGE))
simple("unsafe", "MallocManaged", out(PAGE, 1))
simple("unsafe", "MallocPitch", lambda sdk: (byref(c_void_p()), byref(c_size_t()), 100, 10))
simple("unsafe", "Malloc3D", lambda sdk: (byref(Blob()), Extent(100, 10, 1)))
simple("unsafe", "MallocArray", lambda sdk: (byref(c_void_p()), byref(BYTES), 16, 16, 0))
simple("unsafe", "FreeArray", lambda sdk: (sdk.make("MallocArray", byref(BYTES), 16, 16, 0),))
simple("unsafe", "Free", lambda sdk: (sdk.malloc(),))
simple("unsafe", "Free_null", lambda sdk: (None,))
simple("unsafe", "MallocHost", out(PAGE))
simple("unsafe", "HostAlloc", out(PAGE, 0))
simple("unsafe", "FreeHost", lambda sdk: (sdk.pinned(),))
simple("unsafe", "HostRegister", lambda sdk: (sdk.page(), PAGE, 0))
simple("unsafe", "EventQuery_never_recorded", lambda sdk: (sdk.event(),))
simple("unsafe", "EventQuery_recorded_before", lambda sdk: (sdk.recorded(),))
simple("unsafe", "EventSynchronize_never_recorded", lambda sdk: (sdk.event(),))
simple("unsafe", "EventSynchronize_recorded_before", lambda sdk: (sdk.recorded(),))
simple("unsafe", "StreamQuery_of_another_stream", lambda sdk: (sdk.stream(),))
simple("unsafe", "StreamQuery_of_the_default_stream", lambda sdk: (None,))
simple("unsafe", "StreamSynchronize_of_another_stream", lambda sdk: (sdk.stream(),))
simple("unsafe", "StreamSynchronize_of_the_default_stream", lambda sdk: (None,))
simple("unsafe", "DeviceSetLimit", lambda sdk: (0, 1024))
simple("unsafe", "GraphInstantiateWithFlags", lambda sdk: (byref(c_void_p()), sdk.executable()[0], 0))
simple("unsafe", "GraphInstantiate", lambda sdk: (byref(c_void_p()), sdk.executable()[0], None, None, 0))
simple("unsafe", "GraphExecDestroy", lambda sdk: (sdk.executable()[1],))
simple("forbidden", "DeviceSynchronize", lambda sdk: ())
driver("unsafe", "muMemAlloc", lambda sdk: (byref(c_void_p()), c_size_t(PAGE)))
driver(
    "unsafe",
    "muMemAllocPitch",
    lambda sdk: (byref(c_void_p()), byref(c_size_t()), c_size_t(64), c_size_t(4), 4),
)
driver("unsafe", "muMemFree", lambda sdk: (sdk.malloc(),))
driver("unsafe", "muStreamQuery", lambda sdk: (sdk.stream(),))
driver("unsafe", "muStreamSynchronize", lambda sdk: (sdk.stream(),))
driver("unsafe", "muEventQuery", lambda sdk: (sdk.recorded(),))
driver("unsafe", "muEventSynchronize", lambda sdk: (sdk.recorded(),))
driver("unsafe", "muModuleLoad", lambda sdk: (byref(c_void_p()), LIBRARY.encode()))
driver("unsafe", "muModuleLoadData", lambda sdk: (byref(c_void_p()), sdk.keep(Path(LIBRARY).read_bytes())))
driver(
    "unsafe", "muModuleLoadFatBinary", lambda sdk: (byref(c_void_p()), sdk.keep(Path(LIBRARY).read_bytes()))
)
driver("unsafe", "muModuleUnload", lambda sdk: (sdk.module(),))
driver("forbidden", "muCtxSynchronize", lambda sdk: ())
simple("safe", "MemGetInfo", lambda sdk: (byref(c_size_t()), byref(c_size_t())))
simple("safe", "EventCreateWithFlags", out(DISABLE_TIMING))
simple("safe", "EventDestroy", lambda sdk: (sdk.event(),))
simple("safe", "EventRecord_on_another_stream", lambda sdk: (sdk.event(), sdk.stream()))
simple("safe", "StreamCreateWithFlags", out(NON_BLOCKING))
simple("safe", "StreamDestroy", lambda sdk: (sdk.stream(),))
simple("safe", "Memcpy", lambda sdk: (sdk.malloc(), sdk.page(), 64, HOST_TO_DEVICE))
simple("safe", "Memset", lambda sdk: (sdk.malloc(), 0, 64))
simple("safe", "MemcpyAsync_on_another_stream", lambda sdk: (sdk.malloc(), sdk.page(), 64, 1, sdk.stream()))
simple("safe", "IpcGetMemHandle", lambda sdk: (byref(Blob()), sdk.malloc()))
simple("safe", "PointerGetAttributes", lambda sdk: (byref(Blob()), sdk.malloc()))
simple("safe", "GraphLaunch_on_another_stream", lambda sdk: (sdk.executable()[1], sdk.stream()))
simple("safe", "GraphDestroy", lambda sdk: (sdk.executable()[0],))
simple("safe", "MallocAsync_on_another_stream", lambda sdk: (byref(c_void_p()), PAGE, sdk.stream()))
simple("safe", "FreeAsync_on_another_stream", lambda sdk: (sdk.malloc(), sdk.stream()))
simple("safe", "StreamGetCaptureInfo", lambda sdk: (sdk.stream(), byref(c_int()), byref(c_size_t())))
simple("safe", "DeviceGetDefaultMemPool", out(0))
simple("safe", "LaunchHostFunc_on_another_stream", lambda sdk: (sdk.stream(), sdk.nothing, None))


@call("unsafe")
def HostUnregister(sdk: Sdk) -> Callable[[], str]:
    page = sdk.page()
    sdk.must("HostRegister", page, PAGE, 0)
    return lambda: sdk("HostUnregister", page)


@call("safe")
def EventElapsedTime(sdk: Sdk) -> Callable[[], str]:
    stream = sdk.stream()
    first, last = sdk.recorded(stream), sdk.recorded(stream)
    return lambda: sdk("EventElapsedTime", byref(c_float()), first, last)


@call("safe")
def virtual_memory(sdk: Sdk) -> Callable[[], str]:
    def map_and_unmap() -> str:
        driver, base, handle = sdk.driver, ctypes.c_uint64(), ctypes.c_uint64()
        size = c_size_t(RESERVED)
        steps = (
            driver.muMemAddressReserve(byref(base), size, c_size_t(0), c_size_t(0), c_size_t(0)),
            driver.muMemCreate(byref(handle), size, byref(AllocationProp(1, 0, 1, 0)), c_size_t(0)),
            driver.muMemMap(base, size, c_size_t(0), handle, c_size_t(0)),
            driver.muMemSetAccess(base, size, byref(Access(1, 0, 3)), c_size_t(1)),
            driver.muMemUnmap(base, size),
            driver.muMemRelease(handle),
            driver.muMemAddressFree(base, size),
        )
        return "Success" if not any(steps) else str(steps)

    return map_and_unmap


# Capture mode, whether another thread calls, the caller's interaction mode, whether unsafe calls are refused.
CASES = {
    "in a global capture, by its thread": (GLOBAL, False, GLOBAL, True),
    "in a global capture, by another thread": (GLOBAL, True, GLOBAL, True),
    "in a thread-local capture, by its thread": (THREAD_LOCAL, False, GLOBAL, True),
    "in a thread-local capture, by another thread": (THREAD_LOCAL, True, GLOBAL, False),
    "in a relaxed capture, by its thread": (RELAXED, False, GLOBAL, False),
    "in a relaxed capture, by another thread": (RELAXED, True, GLOBAL, False),
    "in a global capture, by its thread as thread-local": (GLOBAL, False, THREAD_LOCAL, True),
    "in a global capture, by another thread as thread-local": (GLOBAL, True, THREAD_LOCAL, False),
    "in a global capture, by its thread as relaxed": (GLOBAL, False, RELAXED, False),
    "in a thread-local capture, by its thread as relaxed": (THREAD_LOCAL, False, RELAXED, False),
}


# Functions of this kind are in CALLS, which test_refusals.py checks.
POTENTIALLY_UNSAFE = re.compile(
    r"(?:musa|mu)(?:Malloc|Mem(?:Alloc|Free)|Free|Host(?:Alloc|Register|Unregister)|(?:Stream|Event)(?:Query|Synchronize)"
    r"|(?:Device|Ctx)Synchronize|DeviceSetLimit|GraphInstantiate|GraphExecDestroy|Module(?:Load|Unload))\w*"
)


def during_capture(sdk: Sdk, prepare: Prepare, mode: int, other: bool, interaction: int) -> list[str]:
    """Returns the status of the call, and of the end of the capture."""
    body = prepare(sdk)
    stream = sdk.begin(mode)

    def interact() -> str:
        before = sdk.exchange(interaction) if interaction != GLOBAL else GLOBAL
        try:
            return body()
        finally:
            if interaction != GLOBAL:
                sdk.exchange(before)

    status = on_thread(interact) if other else interact()
    return [status, sdk.end(stream)]


# ---- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    group: str
    run: Callable[[Sdk], list[str]]
    expected: tuple[str, ...]


ROWS: dict[str, Row] = {}
REFUSED = ("StreamCaptureUnsupported", "StreamCaptureInvalidated")  # of the call, of the capture's end


def row(group: str, *expected: str):
    def add(run: Callable[[Sdk], list[str]]):
        ROWS[run.__name__] = Row(group, run, expected)
        return run

    return add


def calls_in_cases() -> Iterator[tuple[str, Row]]:
    """Yields one row for each call of CALLS in each case of CASES."""
    for name, (kind, prepare) in CALLS.items():
        for case, (mode, other, interaction, refused) in CASES.items():
            unsupported = kind == "forbidden" or (kind == "unsafe" and refused)
            expected = REFUSED if unsupported else ("Success", "Success")

            def run(sdk: Sdk, prepare=prepare, mode=mode, other=other, interaction=interaction) -> list[str]:
                return during_capture(sdk, prepare, mode, other, interaction)

            yield f"{name} {case}", Row("calls in captures", run, expected)


def run_all(sdk: Sdk, names: list[str]) -> dict[str, list[str]]:
    rows = {**dict(calls_in_cases()), **ROWS}
    results = {}
    for name in names or rows:
        sdk.runtime.musaEmulatorReset()
        sdk("GetLastError")
        try:
            results[name] = list(rows[name].run(sdk))
        except (AssertionError, AttributeError) as error:
            results[name] = [repr(error)]
    sdk.runtime.musaEmulatorReset()
    return results


if __name__ == "__main__":
    from tests.musa_emulator import refusal_arguments, refusal_rows, refusals

    assert refusal_rows.ROWS is refusal_arguments.ROWS is refusals.ROWS
    json.dump(refusals.run_all(refusals.Sdk(*sys.argv[1:3]), sys.argv[3:]), sys.stdout)
