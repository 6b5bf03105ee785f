# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Select, count, describe and synchronize devices. The names and meanings are torch.cuda's.

A `device` argument may be an int, a str ("musa", "musa:1"), a `torch.device`, or None for the
current device.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch.compiler import is_dynamo_compiling

from ._load import extension, load
from .errors import InvalidDeviceError
from .initialization import is_in_bad_fork, is_initialized, lazy_init

if TYPE_CHECKING:
    from typing import Literal

    from ._C import _MusaDeviceProperties
    from ._types import Device, HasDevice


def is_available() -> bool:
    """Whether at least one musa device is visible. Never raises, and creates no context."""
    return device_count() > 0


def device_count() -> int:
    """Number of visible devices (see `MUSA_VISIBLE_DEVICES`); 0 if the runtime is not loaded. Never
    raises."""
    result = load()
    return 0 if result.error is not None else result.extension.device_count()


def init() -> None:
    """Initialise the device now instead of at its first use. Raises the errors of
    :func:`musa_runtime.initialization.lazy_init`."""
    lazy_init()


def device_index(device: Device = None, allow_cpu: bool = False) -> int:
    """Index of a device, checked against the visible devices.

    Args:
        device (int, str, torch.device or None): None, `"musa"` and a negative int mean the current device.
        allow_cpu (bool): return -1 for a CPU device instead of raising.

    Raises:
        InvalidDeviceError: another device type, an unparsable string, or an index beyond the visible devices.
        MusaError: the runtime is not loaded.
    """
    index = _requested_index(device, allow_cpu)
    if index is None:
        return current_device()
    if index >= 0 and index >= (count := extension().device_count()):
        raise InvalidDeviceError(_out_of_range(index, count))
    return index


def _requested_index(device: Device, allow_cpu: bool = False) -> int | None:
    """The requested index; None for the current device, -1 for a CPU device if `allow_cpu`."""
    if device is None:
        return None
    if isinstance(device, bool):
        raise InvalidDeviceError(f"expected a musa device, but got the bool {device}")
    if isinstance(device, int):
        return device if device >= 0 else None
    if isinstance(device, str):
        try:
            device = torch.device(device)
        except RuntimeError as error:
            raise InvalidDeviceError(f"{device!r} is not a device: {error}") from error
    if not isinstance(device, torch.device):
        raise InvalidDeviceError(
            "expected an int, a str, a torch.device or None as musa device, "
            f"but got {type(device).__name__}: {device!r}"
        )
    if device.type == "cpu" and allow_cpu:
        return -1
    if device.type not in ("musa", "privateuseone"):
        raise InvalidDeviceError(f"expected a musa device, but got {str(device)!r}")
    return device.index


def _out_of_range(index: int, count: int) -> str:
    visible = os.environ.get("MUSA_VISIBLE_DEVICES")
    setting = "is not set" if visible is None else f"is {visible!r}"
    valid = (
        "no index is valid"
        if count == 0
        else "the only valid index is 0"
        if count == 1
        else f"valid are 0 to {count - 1}"
    )
    return (
        f"musa device index {index} is out of range: {count} device(s) visible, {valid}.\n"
        f"MUSA_VISIBLE_DEVICES {setting}; it selects and renumbers the devices a process sees.\n"
        "Fix: use a visible device; python -m torch_musa doctor lists them"
    )


def current_device() -> int:
    """Index of the calling thread's current device."""
    if is_dynamo_compiling():
        return torch.accelerator.current_device_index()
    lazy_init()
    return extension().current_device()


def set_device(device: Device) -> None:
    """Make a device the calling thread's current one. A negative index does nothing. Prefer the
    :class:`device` context."""
    index = _requested_index(device)
    if index is not None:
        lazy_init()
        extension().set_device(device_index(index))


def _exchange_device(device: int) -> int:
    """Makes a device the current one and returns the previous one, as `torch.cuda._exchange_device`; torch's
    compiler calls it. Does nothing for a negative index, and returns -1."""
    if device < 0:
        return -1
    lazy_init()
    return extension().exchange_device(device_index(device))


def _maybe_exchange_device(device: int) -> int:
    """The same, but creates no context on a device that has none."""
    if device < 0:
        return -1
    lazy_init()
    return extension().maybe_exchange_device(device_index(device))


class device:
    """Context manager that changes the current device. None and negative indices change nothing.

    Args:
        device (int, str, torch.device or None): the device to select.

    Raises:
        InvalidDeviceError: on entry, if there is no such device.
    """

    def __init__(self, device: Device) -> None:
        self.idx = _requested_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            lazy_init()
            self.prev_idx = extension().exchange_device(device_index(self.idx))

    def __exit__(self, *exc_info: object) -> Literal[False]:
        if self.prev_idx >= 0:
            extension().maybe_exchange_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager that selects the device of a tensor or storage; does nothing for one that is not on
    musa."""

    def __init__(self, obj: HasDevice) -> None:
        super().__init__(obj.device if obj.device.type == "musa" else None)


def synchronize(device: Device = None) -> None:
    """Wait until all work on all streams of a device is done."""
    if is_dynamo_compiling():
        wait = torch.accelerator.synchronize
        return wait() if device is None else wait(device)
    lazy_init()
    extension().synchronize(device_index(device))


def get_device_properties(device: Device = None) -> _MusaDeviceProperties:
    """Properties of a device: `name major minor total_memory` (bytes) `multi_processor_count warp_size
    is_integrated` ..."""
    lazy_init()
    return extension().get_device_properties(device_index(device))


def get_device_name(device: Device = None) -> str:
    """Name of a device."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Compute capability as (major, minor); (2, 2) is architecture mp_22."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_arch_list() -> list[str]:
    """Architectures of the visible devices, as `["mp_22", ...]`, sorted; empty if there is no device."""
    capabilities = {get_device_capability(index) for index in range(device_count())}
    return [f"mp_{major}{minor}" for major, minor in sorted(capabilities)]


def get_gencode_flags() -> str:
    """The options with which mcc compiles for the visible devices, e.g. `"--offload-arch=mp_22"`; empty if
    there is no device."""
    return " ".join(f"--offload-arch={arch}" for arch in get_arch_list())


def is_tf32_supported() -> bool:
    """Whether matrix products of float32 can run on tensor cores in TF32: compute capability 2.2 and
    later."""
    return is_available() and get_device_capability() >= (2, 2)


_SYNC_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Report the places where the program makes the host wait for the device: reading values (`.item()`),
    copies between host and device that are not `non_blocking`, operators whose result's shape depends on
    data (`nonzero`, indexing with a mask), `Stream.synchronize()`.

    :func:`synchronize` and `Event.synchronize()` are explicit waits, and are not counted. Neither are kernels
    that run on the calling thread, as on devices that share the host's memory.

    Args:
        debug_mode (str or int): "default" or 0 for silence, "warn" or 1 for a warning, "error" or 2 for a
            RuntimeError at each such place, before work is queued.

    Raises:
        ValueError: another mode.
    """
    mode = _SYNC_DEBUG_MODES.get(debug_mode, debug_mode) if isinstance(debug_mode, str) else debug_mode
    if isinstance(mode, bool) or mode not in (0, 1, 2):
        raise ValueError(
            f"the sync debug mode must be 'default' (0), 'warn' (1) or 'error' (2), but got {debug_mode!r}"
        )
    lazy_init()
    extension().set_sync_debug_mode(int(mode))


def get_sync_debug_mode() -> int:
    """The mode set by :func:`set_sync_debug_mode`, as an int: 0, 1 or 2."""
    lazy_init()
    return extension().get_sync_debug_mode()


def _sleep(cycles: float) -> None:
    # torch.cuda._sleep, for tests of overlapping work: keeps the current stream busy for that many cycles of
    # the multiprocessors' clock.
    lazy_init()
    clock = get_device_properties().clock_rate * 1e3  # the SDK reports kHz
    extension().sleep_on_stream(cycles / clock)


def _get_device_index(device: Device, optional: bool = False, allow_cpu: bool = False) -> int:
    # torch.load looks up this name in `torch.musa._utils`. torch itself checks the range: its error explains
    # how to load a checkpoint of a missing device.
    index = _requested_index(device, allow_cpu)
    if index is not None:
        return index
    if device is None and not optional:
        raise InvalidDeviceError("expected a musa device, but got None")
    return current_device() if is_available() else 0


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether a device can address another's memory directly."""
    lazy_init()
    return extension().can_device_access_peer(device_index(device), device_index(peer_device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors are supported.

    Args:
        including_emulation (bool): True includes arithmetic in float32 with rounding, which every device
            supports; False requires bfloat16 units: compute capability 2.2 and later.
    """
    if not is_available():
        return False
    return including_emulation or get_device_capability() >= (2, 2)


def is_fp16_supported() -> bool:
    """Whether float16 tensors are supported: every musa device supports them."""
    return is_available()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """(free, total) bytes of a device, counted by the driver over all processes."""
    lazy_init()
    return extension().mem_get_info(device_index(device))


__all__ = [
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_fp16_supported",
    "is_in_bad_fork",
    "is_initialized",
    "is_tf32_supported",
    "mem_get_info",
    "set_device",
    "set_sync_debug_mode",
    "synchronize",
]
