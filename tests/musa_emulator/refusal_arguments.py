# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rows of refusals.py about wrong arguments."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_void_p, create_string_buffer

from tests.musa_emulator.refusals import (
    DEVICE_TO_DEVICE,
    DEVICE_TO_HOST,
    DISABLE_TIMING,
    HOST_TO_DEVICE,
    HOST_TO_HOST,
    PAGE,
    ROWS,
    Blob,
    IpcHandle,
    Row,
    Sdk,
    StreamCallback,
    row,
)


@row("arguments", *["InvalidValue"] * 4, "Success")
def only_device_memory_is_freed_and_once(sdk: Sdk):
    device, pinned = sdk.malloc(), sdk.pinned()
    wrong = [sdk("Free", pointer) for pointer in (sdk.page(), pinned, c_void_p(device.value + 256))]
    sdk.must("Free", device)
    return [*wrong, sdk("Free", device), sdk("Free", None)]


@row("arguments", *["InvalidValue"] * 4, "Success")
def only_pinned_memory_is_freed_as_such_and_once(sdk: Sdk):
    device, pinned = sdk.malloc(), sdk.pinned()
    wrong = [sdk("FreeHost", pointer) for pointer in (sdk.page(), device, c_void_p(pinned.value + 64))]
    sdk.must("FreeHost", pinned)
    return [*wrong, sdk("FreeHost", pinned), sdk("FreeHost", None)]


@row(
    "arguments",
    "Success",
    *["HostMemoryAlreadyRegistered"] * 2,
    "HostMemoryNotRegistered",
    "Success",
    "HostMemoryNotRegistered",
    *["InvalidValue"] * 4,
)
def host_memory_is_registered_once(sdk: Sdk):
    page = sdk.page()
    return [
        sdk("HostRegister", page, 2 * PAGE, 0),
        sdk("HostRegister", page, 2 * PAGE, 0),
        sdk("HostRegister", page + PAGE, PAGE, 0),
        sdk("HostUnregister", page + PAGE),
        sdk("HostUnregister", page),
        sdk("HostUnregister", page),
        sdk("HostRegister", None, PAGE, 0),
        sdk("HostRegister", page, 0, 0),
        sdk("HostRegister", page, PAGE, 0x100),
        sdk("HostRegister", sdk.malloc(), PAGE, 0),
    ]


@row(
    "arguments",
    "InvalidValue",
    "Success",
    "MemoryAllocation",
    *["InvalidValue"] * 2,
    *["InvalidValue"] * 2,
)
def allocations_need_a_result_and_room(sdk: Sdk):
    pointer = c_void_p()
    return [
        sdk("Malloc", None, PAGE),
        sdk("Malloc", byref(pointer), 0),
        sdk("Malloc", byref(pointer), 1 << 50),
        sdk("HostAlloc", None, PAGE, 0),
        sdk("HostAlloc", byref(pointer), PAGE, 0x100),
        sdk("MallocManaged", byref(pointer), 0, 1),
        sdk("MallocManaged", byref(pointer), PAGE, 4),
    ]


def _copy(name: str, expected: str, arguments) -> None:
    def run(sdk: Sdk):
        stream = sdk.stream()
        return [sdk("Memcpy", *arguments(sdk)), sdk("MemcpyAsync", *arguments(sdk), stream)]

    ROWS[f"a_copy_{name}"] = Row("arguments", run, (expected, expected))


_copy("of_an_unknown_kind_is_refused", "InvalidMemcpyDirection", lambda s: (s.malloc(), s.malloc(), 64, 77))
_copy("to_null_is_refused", "InvalidValue", lambda s: (None, s.malloc(), 64, DEVICE_TO_HOST))
_copy("from_null_is_refused", "InvalidValue", lambda s: (s.malloc(), None, 64, HOST_TO_DEVICE))
_copy("of_no_bytes_is_none", "Success", lambda s: (None, None, 0, HOST_TO_DEVICE))
_copy(
    "to_the_host_as_if_to_the_device_is_refused",
    "InvalidValue",
    lambda s: (s.page(), s.page(), 64, HOST_TO_DEVICE),
)
_copy(
    "from_the_host_as_if_from_the_device_is_refused",
    "InvalidValue",
    lambda s: (s.page(), s.page(), 64, DEVICE_TO_HOST),
)
_copy(
    "of_host_memory_as_if_on_the_device_is_refused",
    "InvalidValue",
    lambda s: (s.malloc(), s.page(), 64, DEVICE_TO_DEVICE),
)
_copy(
    "of_device_memory_as_if_on_the_host_is_refused",
    "InvalidValue",
    lambda s: (s.malloc(), s.page(), 64, HOST_TO_HOST),
)
_copy(
    "past_the_end_is_refused", "InvalidValue", lambda s: (s.malloc(), s.malloc(), 1 << 20, DEVICE_TO_DEVICE)
)


@row("arguments", "InvalidValue", "InvalidValue", "InvalidValue", "InvalidPitchValue", "InvalidValue")
def only_device_memory_is_filled_within_its_end(sdk: Sdk):
    device, freed = sdk.malloc(), sdk.malloc()
    sdk.must("Free", freed)
    return [
        sdk("Memset", None, 0, 64),
        sdk("Memset", sdk.page(), 0, 64),
        sdk("Memset", device, 0, 1 << 20),
        sdk("Memset2D", device, 8, 0, 16, 2),
        sdk("Memset", freed, 0, 64),
    ]


@row("arguments", "InvalidValue", "InvalidValue", *["InvalidResourceHandle"] * 2, *["InvalidValue"] * 4)
def streams_need_results_known_flags_and_live_handles(sdk: Sdk):
    stream = sdk.stream()
    callback = sdk.keep(StreamCallback(lambda *_: None))
    return [
        sdk("StreamCreate", None),
        sdk("StreamCreateWithFlags", byref(c_void_p()), 4),
        sdk("StreamDestroy", None),
        sdk("StreamDestroy", 1),
        sdk("StreamGetPriority", stream, None),
        sdk("StreamIsCapturing", stream, None),
        sdk("LaunchHostFunc", stream, None, None),
        sdk("StreamAddCallback", stream, callback, None, 1),
    ]


@row("arguments", "-5", "0", "-5", "0", "-3")
def priorities_are_clamped_to_the_range(sdk: Sdk):
    results = []
    for priority in (-100, 100, -6, 1, -3):
        stream, value = sdk.make("StreamCreateWithPriority", 1, priority), c_int()
        sdk.must("StreamGetPriority", stream, byref(value))
        results.append(str(value.value))
    return results


@row("arguments", *["InvalidResourceHandle"] * 6)
def destroyed_streams_and_events_are_recognised(sdk: Sdk):
    stream, event = sdk.stream(), sdk.event()
    sdk.must("StreamDestroy", stream)
    sdk.must("EventDestroy", event)
    return [
        sdk("StreamQuery", stream),
        sdk("StreamDestroy", stream),
        sdk.enqueue(stream),
        sdk("EventQuery", event),
        sdk("EventDestroy", event),
        sdk("StreamWaitEvent", sdk.stream(), event, 0),
    ]


@row(
    "arguments",
    *["InvalidValue"] * 3,
    *["InvalidResourceHandle"] * 5,
    "InvalidValue",
    "InvalidResourceHandle",
)
def events_need_results_known_flags_and_handles(sdk: Sdk):
    event, stream = sdk.event(), sdk.stream()
    return [
        sdk("EventCreate", None),
        sdk("EventCreateWithFlags", byref(c_void_p()), 8),
        sdk("EventCreateWithFlags", byref(c_void_p()), 4),
        sdk("EventRecord", None, stream),
        sdk("EventQuery", None),
        sdk("EventSynchronize", None),
        sdk("EventDestroy", None),
        sdk("StreamWaitEvent", stream, None, 0),
        sdk("EventElapsedTime", None, event, event),
        sdk("IpcGetEventHandle", byref(Blob()), event),
    ]


@row("arguments", *["InvalidResourceHandle"] * 2, "Success", *["InvalidResourceHandle"] * 2, "Success")
def times_need_two_recorded_events_with_timing(sdk: Sdk):
    stream = sdk.stream()
    first, last, untimed = sdk.event(), sdk.event(), sdk.event(DISABLE_TIMING)

    def elapsed(start, end) -> str:
        return sdk("EventElapsedTime", byref(c_float()), start, end)

    def record(event) -> None:
        sdk.must("EventRecord", event, stream)
        sdk.must("EventSynchronize", event)

    results = [elapsed(first, last)]
    record(first)
    results.append(elapsed(first, last))
    record(last)
    record(untimed)
    return [
        *results,
        elapsed(first, last),
        elapsed(first, untimed),
        elapsed(untimed, first),
        elapsed(first, first),
    ]


@row("arguments", *["Success"] * 3)
def an_event_never_recorded_is_complete(sdk: Sdk):
    event = sdk.event()
    return [
        sdk("EventQuery", event),
        sdk("EventSynchronize", event),
        sdk("StreamWaitEvent", sdk.stream(), event, 0),
    ]


@row("arguments", *["InvalidDevice"] * 4, "InvalidValue", "InvalidValue", "UnsupportedLimit", "InvalidDevice")
def devices_are_named_by_their_ordinal(sdk: Sdk):
    value = c_int()
    return [
        sdk("SetDevice", 99),
        sdk("SetDevice", -1),
        sdk("GetDeviceProperties", byref(Blob()), 99),
        sdk("DeviceGetAttribute", byref(value), 10, 99),
        sdk("DeviceGetAttribute", byref(value), 9999, 0),
        sdk("DeviceGetAttribute", None, 10, 0),
        sdk("DeviceSetLimit", 999, 1),
        sdk("DeviceCanAccessPeer", byref(value), 0, 99),
    ]


@row(
    "arguments",
    *["InvalidConfiguration"] * 4,
    "InvalidValue",
    "LaunchOutOfResources",
    "InvalidDeviceFunction",
    "InvalidDeviceFunction",
    "InvalidValue",
)
def launches_keep_within_the_devices_limits(sdk: Sdk):
    kernel, bounded, stream = sdk.kernel(), sdk.kernel(max_threads=64), sdk.stream()
    return [
        sdk.launch(kernel, stream, grid=(0, 1, 1)),
        sdk.launch(kernel, stream, block=(0, 1, 1)),
        sdk.launch(kernel, stream, block=(1025, 1, 1)),
        sdk.launch(kernel, stream, grid=(1 << 31, 1, 1)),
        sdk.launch(kernel, stream, shared=1 << 20),
        sdk.launch(bounded, stream, block=(128, 1, 1)),
        sdk.launch(None, stream),
        sdk.launch(ctypes.cast(sdk.keep(create_string_buffer(8)), c_void_p), stream),
        sdk.launch(sdk.kernel(arguments=1), stream),
    ]


@row("arguments", *["InvalidValue"] * 4, "Success", "DeviceUninitialized", *["InvalidValue"] * 2)
def shared_memory_is_device_memory_opened_elsewhere(sdk: Sdk):
    device, handle, opened = sdk.malloc(), IpcHandle(), c_void_p()
    return [
        sdk("IpcGetMemHandle", byref(handle), sdk.page()),
        sdk("IpcGetMemHandle", byref(handle), sdk.pinned()),
        sdk("IpcGetMemHandle", byref(handle), None),
        sdk("IpcCloseMemHandle", device),
        sdk("IpcGetMemHandle", byref(handle), device),
        sdk("IpcOpenMemHandle", byref(opened), handle, 1),
        sdk("IpcOpenMemHandle", byref(opened), handle, 0),
        sdk("IpcOpenMemHandle", byref(opened), IpcHandle(), 1),
    ]


@row("arguments", *["InvalidValue"] * 6, "InvalidResourceHandle")
def graphs_need_handles(sdk: Sdk):
    graph = sdk.executable()[0]
    return [
        sdk("GraphCreate", byref(c_void_p()), 1),
        sdk("GraphCreate", None, 0),
        sdk("GraphDestroy", None),
        sdk("GraphExecDestroy", None),
        sdk("GraphInstantiateWithFlags", byref(c_void_p()), None, 0),
        sdk("GraphInstantiateWithFlags", None, graph, 0),
        sdk("GraphLaunch", None, sdk.stream()),
    ]
