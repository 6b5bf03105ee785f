# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Events that another process can open.

torch.Event takes `interprocess=True` but cannot export a handle for an out-of-tree device, so these events
have their own class, with torch.Event's methods. Streams of `torch.musa` can wait for them
(`Stream.wait_event`, `event.wait(stream)`). They cannot be timed: a clock reading is meaningless in another
process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from . import device as _device
from ._load import extension
from .errors import SharingError
from .initialization import lazy_init

if TYPE_CHECKING:
    from typing import NoReturn

    from ._C import _InterprocessEvent
    from ._types import Device


class InterprocessEvent:
    """A mark in a stream that other processes can wait for too: `torch.musa.Event(interprocess=True)`.

    Args:
        enable_timing (bool): must be False.
        blocking (bool): the host sleeps in `synchronize` instead of spinning.

    Raises:
        ValueError: `enable_timing=True`.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        *,
        _opened: _InterprocessEvent | None = None,
    ) -> None:
        if enable_timing:
            raise ValueError(
                "an interprocess event cannot be timed.\nFix: leave enable_timing=False, and time "
                "with an event of one process"
            )
        lazy_init()
        self._event = _opened if _opened is not None else extension()._InterprocessEvent(bool(blocking))

    @classmethod
    def from_ipc_handle(cls, device: Device, handle: bytes) -> InterprocessEvent:
        """Open the event of another process from its `ipc_handle()`. That process must keep the event alive
        until this returns.

        Raises:
            torch.AcceleratorError: the handle was made by this process, or the other process or its event no
                longer exists.
        """
        lazy_init()
        return cls(_opened=extension()._InterprocessEvent.from_handle(_device.device_index(device), handle))

    @property
    def device(self) -> torch.device | None:
        """The device of the event; None before the first `record` or `ipc_handle`."""
        index = self._event.device_index
        return None if index < 0 else torch.device("musa", index)

    @property
    def event_id(self) -> int:
        """The SDK's `musaEvent_t` as an int, 0 until the event exists."""
        return self._event.event_id

    def record(self, stream: torch.Stream | None = None) -> None:
        """Mark the work queued on a stream until now; None is the current stream."""
        self._event.record(*_identity(stream))

    def wait(self, stream: torch.Stream | None = None) -> None:
        """Let work queued on a stream from now on wait for the event, whichever process recorded it last."""
        self._event.wait(*_identity(stream))

    def query(self) -> bool:
        """Whether the work before the mark has finished; True for an event never recorded."""
        return self._event.query()

    def synchronize(self) -> None:
        """Wait on the host until the work before the mark has finished."""
        self._event.synchronize()

    def elapsed_time(self, end_event: object) -> NoReturn:
        """Always raises ValueError: interprocess events have no time."""
        raise ValueError("an interprocess event cannot be timed")

    def ipc_handle(self) -> bytes:
        """The handle for `from_ipc_handle`, as bytes. Keep this event alive until it is opened."""
        return self._event.ipc_handle()

    def __repr__(self) -> str:
        return f"<torch.musa.Event interprocess device={self.device} musa_event={self.event_id:#x}>"


def _identity(stream: torch.Stream | None) -> tuple[int, int]:
    """(stream id, device index) of a stream; None is the current stream."""
    if stream is None:
        lazy_init()
        stream_id, device_index, _ = extension().current_stream(_device.current_device())
        return stream_id, device_index
    if stream.device.type != "musa":
        raise SharingError(f"expected a stream of a musa device, but got one of {stream.device}")
    return stream.stream_id, stream.device_index


__all__ = ["InterprocessEvent"]
