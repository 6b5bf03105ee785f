# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The current state of a device: load, temperature, power, clock, processes.

The figures come from the vendor's management library through the optional package `mthreads-ml-py` (module
`pymtml`); without it each function raises :class:`TelemetryUnavailableError` with the command to install it.
The package is imported and its library opened at the first call, and stays open. The package searches the
loader's path; an SDK that has a libmtml.so of its own takes precedence.

The management library has its own numbering of devices, independent of `MUSA_VISIBLE_DEVICES`; devices are
matched by their PCI address.

A `device` of None is the current one. All figures are for the whole device, over all processes.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from typing import TYPE_CHECKING, Any

from . import _load
from . import device as _device
from .errors import TelemetryUnavailableError

if TYPE_CHECKING:
    from ._types import Device

_INSTALL = "pip install mthreads-ml-py"
_lock = threading.Lock()  # guards the two below; held while the library opens, so that it opens once
_opened: Any = None
_handles: dict[
    str, Any
] = {}  # PCI address -> the library's device; the library counts handles, so they are kept


def utilization(device: Device = None) -> int:
    """Percent of time, 0 to 100, in which the device was computing, over the library's last sample period."""
    return _of_gpu(device, "mtmlGpuGetUtilization")


def memory_usage(device: Device = None) -> int:
    """Percent of time, 0 to 100, in which device memory was being read or written, over the library's last
    sample period. For bytes see :func:`device_memory_used`."""
    return _of_memory(device, "mtmlMemoryGetUtilization")


def temperature(device: Device = None) -> int:
    """Temperature of the chip in degrees Celsius."""
    return _of_gpu(device, "mtmlGpuGetTemperature")


def power_draw(device: Device = None) -> int:
    """Power drawn by the board in milliwatts."""
    library = _library()
    return _query(library, "mtmlDeviceGetPowerUsage", _handle(library, device))


def clock_rate(device: Device = None) -> int:
    """Current clock of the multiprocessors in MHz."""
    return _of_gpu(device, "mtmlGpuGetClock")


def device_memory_used(device: Device = None) -> int:
    """Bytes of device memory in use, over all processes. From the driver, without the management library."""
    free, total = _device.mem_get_info(device)
    return total - free


def list_gpu_processes(device: Device = None) -> str:
    """The processes that use a device and the memory of each, as printable text.

    The management library may not report processes: mthreads-ml-py up to 2.4 never does. The text then says
    so, since an empty list would look like an idle device.
    """
    index = _device.device_index(device)
    library = _library()
    processes = _query(library, "nvmlDeviceGetComputeRunningProcesses", _handle(library, index))
    lines = [f"GPU:{index}"]
    for process in processes:
        held = process.usedGpuMemory
        size = "unknown memory" if held is None else f"{held / 2**20:9.3f} MB GPU memory"
        lines.append(f"process {process.pid:>10d} uses {size}")
    if not processes:
        used = device_memory_used(index)
        lines.append(
            f"the management library reports no processes; {used / 2**20:.3f} MB of the device are in use"
        )
    return "\n".join(lines)


def _of_gpu(device: Device, name: str) -> Any:
    library = _library()
    with library.mtmlGpuContext(_handle(library, device)) as gpu:
        return _query(library, name, gpu)


def _of_memory(device: Device, name: str) -> Any:
    library = _library()
    with library.mtmlMemoryContext(_handle(library, device)) as memory:
        return _query(library, name, memory)


def _library() -> Any:
    """The module pymtml with its library open."""
    global _opened, _handles
    try:
        library = importlib.import_module("pymtml")
    except ImportError as error:
        raise TelemetryUnavailableError(
            "utilisation, temperature, power, clock and processes of a device come from the vendor's "
            "management library through the optional package mthreads-ml-py, which cannot be imported: "
            f"{error}\n"
            f"Fix: {_INSTALL}"
        ) from error
    with _lock:
        if _opened is library:
            return library
        try:
            _load_library_of_sdk()
            library.mtmlLibraryInit()
        except Exception as error:
            raise TelemetryUnavailableError(
                f"mthreads-ml-py could not open the management library: {error}\n"
                "Likely causes: libmtml.so is not installed (it comes with the driver) or not on the library "
                "path; the kernel driver is not loaded; a container was started without the devices.\n"
                "Fix: compare with the driver's tool: mthreads-gmi"
            ) from error
        _opened, _handles = library, {}
    return library


def _load_library_of_sdk() -> None:
    """Loads libmtml.so of the SDK, if it has one, so that the package gets it by its name."""
    sdk = _load.load().sdk
    if sdk is not None and sdk.home is not None:
        path = os.path.join(sdk.home, "lib", "libmtml.so")
        if os.path.isfile(path):
            ctypes.CDLL(path)


def _handle(library: Any, device: Device) -> Any:
    """The device object of the library."""
    index = _device.device_index(device)
    properties = _device.get_device_properties(index)
    place = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
    try:
        with _lock:
            if place not in _handles:
                _handles[place] = library.mtmlLibraryInitDeviceByPciSbdf(place)
            return _handles[place]
    except Exception as error:
        raise TelemetryUnavailableError(
            f"the management library does not list musa:{index}, which is at {place} on the PCI bus: "
            f"{error}\nLikely causes: no permission to see the device (containers); another version of the "
            "library than of the driver.\nFix: compare with the driver's tool: mthreads-gmi"
        ) from error


def _query(library: Any, name: str, handle: Any) -> Any:
    try:
        return getattr(library, name)(handle)
    except Exception as error:
        raise TelemetryUnavailableError(
            f"{name} failed: {error}\n"
            "Likely causes: this device or driver does not measure it; the process may not read it.\n"
            "Fix: compare with the driver's tool: mthreads-gmi"
        ) from error


__all__ = [
    "clock_rate",
    "device_memory_used",
    "list_gpu_processes",
    "memory_usage",
    "power_draw",
    "temperature",
    "utilization",
]
