# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Streams and events, as subclasses of torch's device-independent ones (which the compiler and FSDP
require)."""

from __future__ import annotations

import contextlib
import ctypes
from typing import TYPE_CHECKING, Any, overload

import torch
from torch.compiler import is_dynamo_compiling

from . import device as _device
from ._load import extension
from .errors import InvalidDeviceError
from .initialization import lazy_init
from .interprocess_events import InterprocessEvent

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._types import Device


class Stream(torch.Stream):
    """An in-order queue of work on one device. As a context manager it becomes the current stream.

    Args:
        device (int, str, torch.device or None): its device; None is the current one.
        priority (int): lower numbers run first; see :meth:`priority_range`.
    """

    def __new__(cls, device: Device = None, priority: int = 0, **kwargs: Any) -> Self:
        lazy_init()
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, torch.device("musa", _device.device_index(device)), priority=priority)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least, greatest) priority; greater priority is the smaller number."""
        lazy_init()
        return extension().stream_priority_range()

    @property
    def priority(self) -> int:
        """Priority of this stream; a lower number runs first."""
        return extension().stream_priority(self.stream_id, self.device_index)

    @property
    def musa_stream(self) -> int:
        """The SDK's `musaStream_t`, as an int."""
        return extension().stream_native_handle(self.stream_id, self.device_index)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.musa_stream)

    def wait_event(self, event: torch.Event | InterprocessEvent) -> None:
        """Let work queued on this stream from now on wait for an event."""
        if isinstance(event, InterprocessEvent):
            event.wait(self)
        else:
            super().wait_event(event)

    @overload
    def record_event(self, event: InterprocessEvent) -> InterprocessEvent: ...
    @overload
    def record_event(self, event: torch.Event | None = None) -> Event: ...
    def record_event(self, event: Any = None) -> Any:
        """Record an event, a new one if none is given, in this stream, and return it."""
        if isinstance(event, InterprocessEvent):
            event.record(self)
            return event
        return super().record_event(event)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, torch.Stream) and super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"<torch.musa.Stream device={self.device} musa_stream={self.musa_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library, which keeps it alive and destroys it.

    Args:
        stream_ptr (int): the `musaStream_t`.
        device (int, str, torch.device or None): the stream's device.
    """

    def __new__(cls, stream_ptr: int, device: Device = None, **kwargs: Any) -> Self:
        lazy_init()
        if "stream_id" in kwargs:
            return super().__new__(cls, **kwargs)
        return super().__new__(
            cls, **_identity(extension().external_stream(stream_ptr, _device.device_index(device)))
        )


class _EventType(type):
    # `Event(...)` makes a torch.Event; this makes isinstance(x, torch.musa.Event) true for it.
    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        if cls is not Event:
            return False
        if isinstance(instance, InterprocessEvent):
            return True
        return type(instance) is torch.Event and instance.device.type == "musa"


class Event(torch.Event, metaclass=_EventType):
    """A mark in a stream that the host or other streams can wait for, and that can be timed.

    Args:
        enable_timing (bool): needed for `elapsed_time`, which is in milliseconds.
        blocking (bool): the host sleeps in `synchronize` instead of spinning.
        interprocess (bool): the event can be shared with another process; excludes `enable_timing`.

    The methods are torch.Event's: `record`, `wait`, `query`, `synchronize`, `elapsed_time`. `event_id` is the
    SDK's `musaEvent_t` as an int, 0 until first recorded. With `interprocess=True` it is an
    :class:`~musa_runtime.interprocess_events.InterprocessEvent`, which has `ipc_handle` besides.
    """

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Event:
        if interprocess and cls is Event:
            return InterprocessEvent(  # type: ignore[return-value]
                enable_timing=enable_timing, blocking=blocking
            )
        lazy_init()
        # torch.Stream.wait_event and torch.Event.elapsed_time compare the type of their argument exactly, so
        # an instance of a subclass would be refused there.
        made: Any = torch.Event if cls is Event else cls
        return torch.Event.__new__(
            made, "musa", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )

    @classmethod
    def from_ipc_handle(cls, device: Device, handle: bytes) -> Event:
        """Open an event of another process from its `ipc_handle()`.

        Args:
            device (int, str, torch.device or None): the event's device.
            handle (bytes): from the other process, which must keep its event alive until this returns.
        """
        return InterprocessEvent.from_ipc_handle(device, handle)  # type: ignore[return-value]


class StreamContext:
    """Context manager that makes a stream current, and its device too; None changes nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream
        self._before: Stream | None = None
        self._before_on_target: Stream | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        before = current_stream()
        # A stream of another device changes two things: that device's current stream, and the current device.
        if self.stream.device_index != before.device_index:
            self._before_on_target = current_stream(self.stream.device_index)
        set_stream(self.stream)
        self._before = before

    def __exit__(self, *exc_info: object) -> None:
        if self._before is None:
            return
        if self._before_on_target is not None:
            set_stream(self._before_on_target)
        set_stream(self._before)
        self._before = self._before_on_target = None


def stream(stream: torch.Stream | None) -> StreamContext:
    """:class:`StreamContext` for a stream; None changes nothing."""
    if is_dynamo_compiling():  # dynamo treats a stream as a context itself
        return contextlib.nullcontext() if stream is None else stream  # type: ignore[return-value]
    return StreamContext(stream)


def set_stream(stream: torch.Stream | None) -> None:
    """Make a stream current, and its device too. None does nothing. Prefer :func:`stream`."""
    if stream is None:
        return
    if stream.device.type != "musa":
        raise InvalidDeviceError(f"expected a stream of a musa device, but got one of {stream.device}")
    _set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    # dynamo calls this name with these arguments when it restores a stream inside a compiled function.
    lazy_init()
    native = extension()
    native.exchange_device(device_index)
    native.set_stream(stream_id, device_index)


def current_stream(device: Device = None) -> Stream:
    """The current stream of a device."""
    if is_dynamo_compiling():
        current = torch.accelerator.current_stream
        return current() if device is None else current(device)  # type: ignore[return-value]
    lazy_init()
    return Stream(**_identity(extension().current_stream(_device.device_index(device))))


def default_stream(device: Device = None) -> Stream:
    """The stream that is current by default."""
    lazy_init()
    return Stream(**_identity(extension().default_stream(_device.device_index(device))))


def get_stream_from_external(data_ptr: int, device: Device = None) -> ExternalStream:
    """:class:`ExternalStream` for a `musaStream_t` given as an int."""
    return ExternalStream(data_ptr, device)


def _identity(stream: tuple[int, int, int]) -> dict[str, int]:
    stream_id, device_index, device_type = stream
    return {"stream_id": stream_id, "device_index": device_index, "device_type": device_type}


__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
]
