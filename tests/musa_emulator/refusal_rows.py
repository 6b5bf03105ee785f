# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rows of refusals.py about captures, host functions, devices and lost devices."""

from __future__ import annotations

import threading
from ctypes import byref, c_float, c_int, c_size_t, c_void_p

from tests.musa_emulator.refusals import (
    BLOCKING,
    DEVICE_TO_HOST,
    DISABLE_TIMING,
    EXTERNAL,
    GLOBAL,
    HOST_TO_DEVICE,
    PAGE,
    RELAXED,
    ROWS,
    THREAD_LOCAL,
    Blob,
    HostFunction,
    Row,
    Sdk,
    StreamCallback,
    on_thread,
    row,
)

UNSUPPORTED, INVALIDATED = "StreamCaptureUnsupported", "StreamCaptureInvalidated"

# ---- captures ------------------------------------------------------------------------------------


@row("captures", UNSUPPORTED, "Invalidated", INVALIDATED, INVALIDATED, "None")
def a_capturing_stream_cannot_be_synchronized(sdk: Sdk):
    stream = sdk.begin()
    return [
        sdk("StreamSynchronize", stream),
        sdk.status(stream),
        sdk.enqueue(stream),
        sdk.end(stream),
        sdk.status(stream),
    ]


# A CUDA driver records a graph node for each of these two calls; such nodes are not emulated.
@row("captures", UNSUPPORTED, INVALIDATED)
def a_capturing_stream_cannot_allocate(sdk: Sdk):
    stream = sdk.begin()
    return [sdk("MallocAsync", byref(c_void_p()), PAGE, stream), sdk.end(stream)]


@row("captures", UNSUPPORTED, INVALIDATED)
def a_capturing_stream_cannot_free(sdk: Sdk):
    pointer = sdk.malloc()
    stream = sdk.begin()
    return [sdk("FreeAsync", pointer, stream), sdk.end(stream)]


@row("captures", UNSUPPORTED, INVALIDATED)
def a_capturing_stream_cannot_be_queried(sdk: Sdk):
    stream = sdk.begin()
    return [sdk("StreamQuery", stream), sdk.end(stream)]


@row("captures", UNSUPPORTED, UNSUPPORTED, INVALIDATED)
def a_relaxed_thread_cannot_wait_for_a_capturing_stream_either(sdk: Sdk):
    stream = sdk.begin(GLOBAL)
    sdk.exchange(RELAXED)
    try:
        return [sdk("StreamSynchronize", stream), sdk("StreamQuery", stream), sdk.end(stream)]
    finally:
        sdk.exchange(GLOBAL)


@row("captures", UNSUPPORTED, INVALIDATED)
def a_relaxed_thread_cannot_synchronize_the_device_either(sdk: Sdk):
    stream = sdk.begin(GLOBAL)
    sdk.exchange(RELAXED)
    try:
        return [sdk("DeviceSynchronize"), sdk.end(stream)]
    finally:
        sdk.exchange(GLOBAL)


@row(
    "captures",
    UNSUPPORTED,
    "Success",
    *[INVALIDATED] * 2,
    *[UNSUPPORTED] * 2,
    INVALIDATED,
    "Invalidated",
    *[UNSUPPORTED] * 3,
    "IllegalState",
    INVALIDATED,
    "IllegalState",
)
def an_invalidated_capture_takes_no_more_work_until_it_is_ended(sdk: Sdk):
    stream = sdk.begin(GLOBAL)
    event = c_void_p()
    return [
        sdk("StreamQuery", stream),
        sdk("EventCreateWithFlags", byref(event), 0),
        sdk("EventRecord", event, stream),
        sdk("StreamWaitEvent", stream, event, 0),
        sdk("StreamQuery", stream),
        sdk("StreamSynchronize", stream),
        sdk.enqueue(stream),
        sdk.status(stream),
        sdk("Malloc", byref(c_void_p()), PAGE),
        sdk("Free", None),
        sdk("DeviceSynchronize"),
        sdk("StreamBeginCapture", stream, GLOBAL),
        sdk.end(stream),
        sdk.end(stream),
    ]


@row("captures", "CapturedEvent", INVALIDATED, *["InvalidValue"] * 3, "Success", "Success")
def a_captured_event_cannot_be_queried_then_or_later(sdk: Sdk):
    stream, other = sdk.begin(), sdk.stream()
    event = sdk.captured(stream)
    return [
        sdk("EventQuery", event),
        sdk.end(stream),
        sdk("EventQuery", event),
        sdk("EventSynchronize", event),
        sdk("StreamWaitEvent", other, event, 0),
        sdk("EventRecord", event, other),
        sdk("EventSynchronize", event),
    ]


@row("captures", "CapturedEvent", INVALIDATED)
def a_captured_event_cannot_be_synchronized(sdk: Sdk):
    stream = sdk.begin()
    return [sdk("EventSynchronize", sdk.captured(stream)), sdk.end(stream)]


@row("captures", "CapturedEvent", "Success")
def captured_events_have_no_time(sdk: Sdk):
    stream = sdk.begin()
    first, last = sdk.captured(stream), sdk.captured(stream)
    return [sdk("EventElapsedTime", byref(c_float()), first, last), sdk.end(stream)]


@row("captures", "Success", "InvalidValue", INVALIDATED)
def a_capture_cannot_wait_for_an_event_of_one_that_has_ended(sdk: Sdk):
    first = sdk.begin()
    event = sdk.captured(first)
    ended = sdk.end(first)
    second = sdk.begin()
    return [ended, sdk("StreamWaitEvent", second, event, 0), sdk.end(second)]


@row("captures", "StreamCaptureIsolation", "Invalidated", INVALIDATED)
def a_capture_cannot_wait_for_an_event_recorded_before_it(sdk: Sdk):
    event, stream = sdk.recorded(), sdk.begin()
    return [sdk("StreamWaitEvent", stream, event, 0), sdk.status(stream), sdk.end(stream)]


@row("captures", "Success", "Success")
def a_capture_may_wait_for_an_event_never_recorded(sdk: Sdk):
    event, stream = sdk.event(), sdk.begin()
    return [sdk("StreamWaitEvent", stream, event, 0), sdk.end(stream)]


@row("captures", "StreamCaptureMerge", INVALIDATED, INVALIDATED)
def two_captures_cannot_be_joined(sdk: Sdk):
    first, second = sdk.begin(), sdk.begin()
    return [sdk("StreamWaitEvent", second, sdk.captured(first), 0), sdk.end(first), sdk.end(second)]


@row("captures", "Success", "StreamCaptureUnjoined", "None", "None")
def forked_work_must_be_joined(sdk: Sdk):
    origin, joined = sdk.fork()
    return [sdk.enqueue(joined), sdk.end(origin), sdk.status(joined), sdk.status(origin)]


@row("captures", "Success", "StreamCaptureUnjoined", "None")
def forked_work_after_the_join_must_be_joined_too(sdk: Sdk):
    origin, joined = sdk.fork()
    assert sdk.enqueue(joined) == "Success"
    sdk.must("StreamWaitEvent", origin, sdk.captured(joined), 0)
    return [sdk.enqueue(joined), sdk.end(origin), sdk.status(joined)]


@row("captures", "Success", "StreamCaptureUnjoined")
def destroying_a_joined_stream_does_not_join_its_work(sdk: Sdk):
    origin, joined = sdk.fork()
    assert sdk.enqueue(joined) == "Success"
    return [sdk("StreamDestroy", joined), sdk.end(origin)]


@row("captures", "Success", "Active", "Success")
def a_joined_stream_without_work_may_be_destroyed(sdk: Sdk):
    origin, joined = sdk.fork()
    return [sdk("StreamDestroy", joined), sdk.status(origin), sdk.end(origin)]


@row("captures", "StreamCaptureUnmatched", "Invalidated", INVALIDATED)
def a_capture_ends_on_the_stream_where_it_began(sdk: Sdk):
    origin, joined = sdk.fork()
    return [sdk.end(joined), sdk.status(origin), sdk.end(origin)]


@row("captures", *["StreamCaptureWrongThread", "None", "IllegalState"] * 2, "Success", "None", "IllegalState")
def a_capture_that_is_not_relaxed_ends_on_its_thread(sdk: Sdk):
    results = []
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        stream = sdk.begin(mode)
        results += [on_thread(lambda stream=stream: sdk.end(stream)), sdk.status(stream), sdk.end(stream)]
    return results


@row("captures", "IllegalState", "Active", "Success", "IllegalState", "IllegalState")
def beginning_and_ending_must_alternate(sdk: Sdk):
    stream = sdk.begin(GLOBAL)
    again = [sdk("StreamBeginCapture", stream, GLOBAL), sdk.status(stream), sdk.end(stream), sdk.end(stream)]
    origin, joined = sdk.fork()
    again.append(sdk("StreamBeginCapture", joined, GLOBAL))
    sdk.end(origin)
    return again


@row("captures", *[UNSUPPORTED] * 3, "InvalidValue", "InvalidValue")
def the_default_stream_and_unknown_modes_cannot_be_captured(sdk: Sdk):
    return [
        sdk("StreamBeginCapture", None, GLOBAL),
        sdk("StreamBeginCapture", 1, GLOBAL),
        sdk("StreamBeginCapture", 1, RELAXED),
        sdk("StreamBeginCapture", sdk.stream(), 3),
        sdk("StreamBeginCapture", sdk.stream(), -1),
    ]


def _implicit(name: str, prepare) -> None:
    def run(sdk: Sdk):
        results = []
        for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
            arguments = prepare(sdk)
            stream = sdk.begin(mode, BLOCKING)
            sdk.exchange(RELAXED)  # otherwise queries would be refused as unsafe
            results += [sdk(name, *arguments), sdk.end(stream)]
            sdk.exchange(GLOBAL)
        return results

    expected = ["StreamCaptureImplicit", INVALIDATED] * 3
    ROWS[f"{name}_on_the_default_stream_would_wait_for_a_blocking_capture"] = Row(
        "captures", run, tuple(expected)
    )


_implicit("LaunchHostFunc", lambda sdk: (None, sdk.nothing, None))
_implicit("EventRecord", lambda sdk: (sdk.event(), None))
_implicit("StreamQuery", lambda sdk: (None,))
_implicit("StreamSynchronize", lambda sdk: (None,))
_implicit("StreamWaitEvent", lambda sdk: (None, sdk.event(), 0))
_implicit("Memcpy", lambda sdk: (sdk.malloc(), sdk.page(), 64, HOST_TO_DEVICE))
_implicit("Memset", lambda sdk: (sdk.malloc(), 0, 64))
_implicit("MemsetAsync", lambda sdk: (sdk.malloc(), 0, 64, None))


@row("captures", "StreamCaptureImplicit", "Success")
def querying_whether_the_default_stream_captures_invalidates_nothing(sdk: Sdk):
    stream = sdk.begin(RELAXED, BLOCKING)
    return [sdk.status(None), sdk.end(stream)]


@row("captures", UNSUPPORTED, "Invalidated", INVALIDATED)
def stream_callbacks_cannot_be_captured(sdk: Sdk):
    callback = sdk.keep(StreamCallback(lambda *_: None))
    stream = sdk.begin()
    return [sdk("StreamAddCallback", stream, callback, None, 0), sdk.status(stream), sdk.end(stream)]


@row("captures", "Success", "Success", "Success")
def copies_of_pageable_memory_can_be_captured(sdk: Sdk):
    device, host = sdk.malloc(), sdk.page()
    stream = sdk.begin(GLOBAL)
    return [
        sdk("MemcpyAsync", device, host, 64, HOST_TO_DEVICE, stream),
        sdk("MemcpyAsync", host, device, 64, DEVICE_TO_HOST, stream),
        sdk.end(stream),
    ]


@row("captures", *["IllegalState"] * 2, *["InvalidValue"] * 2, "Success", "Success", "Success")
def external_records_and_waits_are_for_captures_only(sdk: Sdk):
    event, stream = sdk.event(DISABLE_TIMING), sdk.stream()
    outside = [
        sdk("EventRecordWithFlags", event, stream, EXTERNAL),
        sdk("StreamWaitEvent", stream, event, EXTERNAL),
    ]
    unknown = [sdk("EventRecordWithFlags", event, stream, 2), sdk("StreamWaitEvent", stream, event, 2)]
    capturing = sdk.begin(GLOBAL)
    return [
        *outside,
        *unknown,
        sdk("EventRecordWithFlags", event, capturing, EXTERNAL),
        sdk("StreamWaitEvent", capturing, event, EXTERNAL),
        sdk.end(capturing),
    ]


@row("captures", "Success", "Success", "Success")
def destroying_the_origin_ends_the_capture(sdk: Sdk):
    stream = sdk.begin(GLOBAL)
    return [sdk("StreamDestroy", stream), sdk("Malloc", byref(c_void_p()), PAGE), sdk("DeviceSynchronize")]


def _scope(mine: int, theirs: int | None, interaction: int):
    def run(sdk: Sdk):
        def other() -> list[str]:
            before = sdk.exchange(interaction)
            try:
                stream = sdk.begin(theirs) if theirs is not None else None
                return [sdk("Malloc", byref(c_void_p()), PAGE), sdk.end(stream) if stream else "Success"]
            finally:
                sdk.exchange(before)

        origin = sdk.begin(mine)
        return [*on_thread(other), sdk.end(origin)]

    # The thread's own capture applies, and global ones of other threads; none applies to a relaxed thread.
    own = theirs in (GLOBAL, THREAD_LOCAL) and interaction != RELAXED
    foreign = mine == GLOBAL and interaction == GLOBAL
    expected = (
        UNSUPPORTED if own or foreign else "Success",
        INVALIDATED if own else "Success",
        INVALIDATED if foreign else "Success",
    )
    modes = ("global", "thread_local", "relaxed")
    inside = "in_none" if theirs is None else f"in_a_{modes[theirs]}_one"
    name = f"an_allocation_beside_a_{modes[mine]}_capture_and_{inside}_as_{modes[interaction]}"
    ROWS[name] = Row("captures of two threads", run, expected)


for mine in (GLOBAL, THREAD_LOCAL, RELAXED):
    for theirs in (GLOBAL, THREAD_LOCAL, RELAXED, None):
        for interaction in (GLOBAL, THREAD_LOCAL, RELAXED):
            _scope(mine, theirs, interaction)


@row("captures", "0", "2", "0", "1", "InvalidValue", "InvalidValue")
def the_interaction_mode_is_exchanged_for_one_thread(sdk: Sdk):
    before = [sdk.exchange(RELAXED), sdk.exchange(THREAD_LOCAL), on_thread(lambda: sdk.exchange(RELAXED))]
    before.append(sdk.exchange(GLOBAL))
    return [
        *map(str, before),
        sdk("ThreadExchangeStreamCaptureMode", byref(c_int(3))),
        sdk("ThreadExchangeStreamCaptureMode", None),
    ]


# ---- host functions ------------------------------------------------------------------------------


def _in_host_function(name: str, prepare) -> None:
    def run(sdk: Sdk):
        stream, results = sdk.stream(), []
        arguments = prepare(sdk)
        body = sdk.keep(HostFunction(lambda _: results.append(sdk(name, *arguments))))
        enqueued = threading.Thread(
            target=lambda: (sdk("LaunchHostFunc", stream, body, None), sdk("StreamSynchronize", stream))
        )
        enqueued.start()
        enqueued.join()
        return results

    ROWS[f"{name}_is_not_permitted_in_a_host_function"] = Row("host functions", run, ("NotPermitted",))


for name, prepare in {
    "Malloc": lambda sdk: (byref(c_void_p()), PAGE),
    "Free": lambda sdk: (sdk.malloc(),),
    "HostAlloc": lambda sdk: (byref(c_void_p()), PAGE, 0),
    "FreeHost": lambda sdk: (sdk.pinned(),),
    "StreamCreate": lambda sdk: (byref(c_void_p()),),
    "StreamDestroy": lambda sdk: (sdk.stream(),),
    "StreamQuery": lambda sdk: (sdk.stream(),),
    "StreamSynchronize": lambda sdk: (sdk.stream(),),
    "StreamIsCapturing": lambda sdk: (sdk.stream(), byref(c_int())),
    "StreamWaitEvent": lambda sdk: (sdk.stream(), sdk.event(), 0),
    "StreamGetPriority": lambda sdk: (sdk.stream(), byref(c_int())),
    "EventCreate": lambda sdk: (byref(c_void_p()),),
    "EventDestroy": lambda sdk: (sdk.event(),),
    "EventRecord": lambda sdk: (sdk.event(), sdk.stream()),
    "EventQuery": lambda sdk: (sdk.event(),),
    "EventSynchronize": lambda sdk: (sdk.event(),),
    "DeviceSynchronize": lambda sdk: (),
    "DeviceGetAttribute": lambda sdk: (byref(c_int()), 10, 0),
    "GetDevice": lambda sdk: (byref(c_int()),),
    "SetDevice": lambda sdk: (0,),
    "GetDeviceProperties": lambda sdk: (byref(Blob()), 0),
    "MemGetInfo": lambda sdk: (byref(c_size_t()), byref(c_size_t())),
    "PointerGetAttributes": lambda sdk: (byref(Blob()), sdk.malloc()),
    "Memcpy": lambda sdk: (sdk.malloc(), sdk.page(), 64, HOST_TO_DEVICE),
    "MemcpyAsync": lambda sdk: (sdk.malloc(), sdk.pinned(), 64, HOST_TO_DEVICE, sdk.stream()),
    "MemsetAsync": lambda sdk: (sdk.malloc(), 0, 64, sdk.stream()),
    "LaunchHostFunc": lambda sdk: (sdk.stream(), sdk.nothing, None),
    "GraphLaunch": lambda sdk: (sdk.executable()[1], sdk.stream()),
    "GraphCreate": lambda sdk: (byref(c_void_p()), 0),
    "ThreadExchangeStreamCaptureMode": lambda sdk: (byref(c_int(RELAXED)),),
    "DriverGetVersion": lambda sdk: (byref(c_int()),),
}.items():
    _in_host_function(name, prepare)


# ---- two devices ---------------------------------------------------------------------------------


def _on_device_1(sdk: Sdk, body):
    sdk.must("SetDevice", 1)
    try:
        return body()
    finally:
        sdk.must("SetDevice", 0)


@row("devices", "InvalidResourceHandle")
def an_event_is_recorded_on_streams_of_its_device(sdk: Sdk):
    return [sdk("EventRecord", sdk.event(), _on_device_1(sdk, sdk.stream))]


@row("devices", "InvalidResourceHandle", "InvalidResourceHandle", "Success")
def there_is_no_time_between_events_of_two_devices(sdk: Sdk):
    here = sdk.recorded()
    there = _on_device_1(sdk, sdk.recorded)
    pairs = (here, there), (there, here), (there, there)
    return [sdk("EventElapsedTime", byref(c_float()), *pair) for pair in pairs]


@row("devices", "InvalidResourceHandle", "Success")
def a_kernel_is_launched_on_streams_of_the_current_device(sdk: Sdk):
    kernel, there = sdk.kernel(), _on_device_1(sdk, sdk.stream)
    return [sdk.launch(kernel, there), _on_device_1(sdk, lambda: sdk.launch(kernel, there))]


@row("devices", *["Success"] * 7)
def copies_waits_and_frees_take_any_device(sdk: Sdk):
    here, there, source = sdk.recorded(), _on_device_1(sdk, sdk.stream), _on_device_1(sdk, sdk.malloc)
    return [
        sdk("StreamWaitEvent", there, here, 0),
        sdk("MemsetAsync", source, 0, 64, there),
        sdk("StreamSynchronize", there),
        sdk("MemcpyPeer", sdk.malloc(), 0, source, 1, 64),
        _on_device_1(sdk, lambda: sdk("EventQuery", here)),
        sdk("DeviceSynchronize"),
        sdk("Free", source),
    ]


@row("devices", *["InvalidDevice"] * 3, *["InvalidValue"] * 2)
def peer_copies_name_devices_that_hold_the_memory(sdk: Sdk):
    here, there = sdk.malloc(), _on_device_1(sdk, sdk.malloc)
    return [
        sdk("MemcpyPeer", here, 0, there, 99, 64),
        sdk("MemcpyPeer", here, 99, there, 1, 64),
        sdk("MemcpyPeer", here, 0, there, -1, 64),
        sdk("MemcpyPeer", here, 1, there, 1, 64),
        sdk("MemcpyPeer", here, 0, there, 0, 64),
    ]


@row(
    "devices",
    "Success",
    "PeerAccessAlreadyEnabled",
    "Success",
    "PeerAccessNotEnabled",
    "InvalidDevice",
    "InvalidDevice",
    "InvalidValue",
)
def peer_access_is_enabled_once_and_for_another_device(sdk: Sdk):
    return [
        sdk("DeviceEnablePeerAccess", 1, 0),
        sdk("DeviceEnablePeerAccess", 1, 0),
        sdk("DeviceDisablePeerAccess", 1),
        sdk("DeviceDisablePeerAccess", 1),
        sdk("DeviceEnablePeerAccess", 0, 0),
        sdk("DeviceEnablePeerAccess", 99, 0),
        sdk("DeviceEnablePeerAccess", 1, 1),
    ]


# ---- after errors --------------------------------------------------------------------------------


def _on_lost_device(name: str, expected: str, prepare) -> None:
    def run(sdk: Sdk):
        arguments = prepare(sdk)
        sdk.lose()
        return [sdk(name, *arguments), sdk("GetLastError"), sdk("GetLastError"), sdk(name, *arguments)]

    promise = "reports_a_lost_device" if expected != "Success" else "works_on_a_lost_device"
    ROWS[f"{name}_{promise}"] = Row("lost devices", run, (expected, expected, "Success", expected))


for name, prepare in {
    "Malloc": lambda sdk: (byref(c_void_p()), PAGE),
    "Free": lambda sdk: (None,),
    "HostAlloc": lambda sdk: (byref(c_void_p()), PAGE, 0),
    "StreamCreate": lambda sdk: (byref(c_void_p()),),
    "StreamQuery": lambda sdk: (sdk.stream(),),
    "StreamSynchronize": lambda sdk: (sdk.stream(),),
    "StreamIsCapturing": lambda sdk: (sdk.stream(), byref(c_int())),
    "StreamWaitEvent": lambda sdk: (sdk.stream(), sdk.recorded(), 0),
    "StreamBeginCapture": lambda sdk: (sdk.stream(), GLOBAL),
    "EventCreate": lambda sdk: (byref(c_void_p()),),
    "EventRecord": lambda sdk: (sdk.event(), sdk.stream()),
    "EventQuery": lambda sdk: (sdk.recorded(),),
    "EventSynchronize": lambda sdk: (sdk.recorded(),),
    "DeviceSynchronize": lambda sdk: (),
    "DeviceGetStreamPriorityRange": lambda sdk: (byref(c_int()), byref(c_int())),
    "MemGetInfo": lambda sdk: (byref(c_size_t()), byref(c_size_t())),
    "MemcpyAsync": lambda sdk: (sdk.malloc(), sdk.pinned(), 64, HOST_TO_DEVICE, sdk.stream()),
    "LaunchHostFunc": lambda sdk: (sdk.stream(), sdk.nothing, None),
    "GraphLaunch": lambda sdk: (sdk.executable()[1], sdk.stream()),
}.items():
    _on_lost_device(name, "LaunchFailure", prepare)
for name, prepare in {
    "GetDevice": lambda sdk: (byref(c_int()),),
    "SetDevice": lambda sdk: (0,),
    "GetDeviceCount": lambda sdk: (byref(c_int()),),
    "GetDeviceProperties": lambda sdk: (byref(Blob()), 0),
    "DeviceGetAttribute": lambda sdk: (byref(c_int()), 10, 0),
    "DriverGetVersion": lambda sdk: (byref(c_int()),),
    "PointerGetAttributes": lambda sdk: (byref(Blob()), sdk.malloc()),
    "ThreadExchangeStreamCaptureMode": lambda sdk: (byref(c_int(GLOBAL)),),
}.items():
    _on_lost_device(name, "Success", prepare)


@row("lost devices", "Success", "LaunchFailure", "LaunchFailure", "Success")
def a_lost_device_is_lost_to_every_thread(sdk: Sdk):
    sdk.lose()
    return on_thread(
        lambda: [
            sdk("PeekAtLastError"),
            sdk("Malloc", byref(c_void_p()), PAGE),
            sdk("GetLastError"),
            sdk("GetLastError"),
        ]
    )


@row("errors", "InvalidDevice", "InvalidDevice", "Success", "InvalidDevice", "InvalidDevice", "Success")
def the_last_error_stays_until_it_is_fetched(sdk: Sdk):
    return [
        sdk("SetDevice", 99),
        sdk("PeekAtLastError"),
        sdk("Malloc", byref(c_void_p()), PAGE),
        sdk("PeekAtLastError"),
        sdk("GetLastError"),
        sdk("GetLastError"),
    ]


@row("errors", "Success", "InvalidDevice", "InvalidDevice")
def the_last_error_is_the_threads_own(sdk: Sdk):
    sdk("SetDevice", 99)
    return [on_thread(lambda: sdk("GetLastError")), sdk("PeekAtLastError"), sdk("GetLastError")]
