# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The devices of the machine as the management library (libmtml) reports them, without torch.

`torch.musa.utilization()` and its neighbours read the same library, through the package `mthreads-ml-py`, for
the devices of this process.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess

from musa_runtime import sdk
from musa_runtime.errors import TelemetryUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOT_SUPPORTED = 4  # MTML_ERROR_NOT_SUPPORTED
_PROGRAM = "mthreads-gmi"
# A row of `mthreads-gmi -pm`: device, process, name, memory.
_ROW = re.compile(r"(\d+)\s+(\d+)\s+(.*\S)\s+(?:(\d+)MiB|N/A)\s*$")


class Library:
    """libmtml, opened: that of the SDK, otherwise that of the loader's path.

    Raises:
        TelemetryUnavailableError: there is none, or it finds no driver.
    """

    def __init__(self) -> None:
        home = sdk.resolve().home
        names = ["libmtml.so.2", "libmtml.so"]
        if home is not None:
            names.insert(0, os.path.join(home, "lib", "libmtml.so"))
        attempts = []
        for name in names:
            try:
                self._library = ctypes.CDLL(name)
                break
            except OSError as error:
                attempts.append(f"  {name}: {error}")
        else:
            raise TelemetryUnavailableError(
                "the management library libmtml.so was not found. Places searched:\n"
                + "\n".join(attempts)
                + "\nLikely causes: the driver, with which the library comes, is not installed; a container "
                "was started without it.\nFix: export MUSA_HOME=<directory of the MUSA SDK>"
            )
        self._library.mtmlErrorString.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p()
        self._call("mtmlLibraryInit", ctypes.byref(self._handle))

    def driver(self) -> str | None:
        """Version of the driver."""
        system = self._part("mtmlLibraryInitSystem", self._handle)
        return self._text("mtmlSystemGetDriverVersion", system, 80)

    def devices(self) -> list[dict[str, Any]]:
        """Returns for each device `index`, `name`, `uuid`, `memory_total` and `memory_used` in bytes,
        `utilization` in percent, `temperature` in degrees Celsius and `power` in watts; None for a figure
        that the device does not have."""
        count = self._number("mtmlLibraryCountDevice", self._handle) or 0
        return [self._device(index) for index in range(count)]

    def _device(self, index: int) -> dict[str, Any]:
        device = ctypes.c_void_p()
        self._call("mtmlLibraryInitDeviceByIndex", self._handle, ctypes.c_uint(index), ctypes.byref(device))
        gpu = self._part("mtmlDeviceInitGpu", device)
        memory = self._part("mtmlDeviceInitMemory", device)
        power = self._number("mtmlDeviceGetPowerUsage", device)
        return {
            "index": index,
            "name": self._text("mtmlDeviceGetName", device, 64),
            "uuid": self._text("mtmlDeviceGetUUID", device, 48),
            "memory_total": self._number("mtmlMemoryGetTotal", memory, ctypes.c_ulonglong),
            "memory_used": self._number("mtmlMemoryGetUsed", memory, ctypes.c_ulonglong),
            "utilization": self._number("mtmlGpuGetUtilization", gpu),
            "temperature": self._number("mtmlGpuGetTemperature", gpu),
            "power": None if power is None else power / 1000,
        }

    def _call(self, name: str, *arguments: Any) -> bool:
        """Returns whether the function has a value; raises for other failures."""
        status = getattr(self._library, name)(*arguments)
        if status in (0, _NOT_SUPPORTED):
            return status == 0
        text = self._library.mtmlErrorString(status).decode(errors="replace")
        raise TelemetryUnavailableError(
            f"{name} of the management library failed: {text}\n"
            "Likely causes: the kernel driver is not loaded; a container was started without the devices.\n"
            "Fix: compare with the driver's tool: mthreads-gmi"
        )

    def _part(self, name: str, owner: Any) -> ctypes.c_void_p | None:
        handle = ctypes.c_void_p()
        return handle if self._call(name, owner, ctypes.byref(handle)) else None

    def _number(self, name: str, part: Any, kind: Any = ctypes.c_uint) -> int | None:
        value = kind()
        return value.value if part is not None and self._call(name, part, ctypes.byref(value)) else None

    def _text(self, name: str, part: Any, size: int) -> str | None:
        buffer = ctypes.create_string_buffer(size)
        known = part is not None and self._call(name, part, buffer, ctypes.c_uint(size))
        return buffer.value.decode(errors="replace") if known else None


def processes() -> list[dict[str, Any]]:
    """Returns the processes that use devices: `device`, `pid`, `name` and `memory` in bytes, None if unknown.

    libmtml has no function for them; the driver's program `mthreads-gmi` prints them.

    Raises:
        TelemetryUnavailableError: the program is missing, or does not report processes.
    """
    home = sdk.resolve().home
    folders = [*([os.path.join(home, "bin")] if home else []), *os.environ.get("PATH", "").split(os.pathsep)]
    program = shutil.which(_PROGRAM, path=os.pathsep.join(folders))
    if program is None:
        raise TelemetryUnavailableError(
            f"{_PROGRAM}, which lists the processes of a device, was not found in "
            f"{os.pathsep.join(folders)}\n"
            "Likely cause: the driver, with which it comes, is not installed.\n"
            "Fix: export PATH=<folder of mthreads-gmi>:$PATH"
        )
    try:
        done = subprocess.run([program, "-pm"], capture_output=True, text=True, errors="replace", timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TelemetryUnavailableError(
            f"{program} -pm failed: {error}\nFix: run it in a terminal"
        ) from error
    if done.returncode != 0:
        reason = (done.stderr + done.stdout).strip() or f"exit status {done.returncode}"
        raise TelemetryUnavailableError(f"{program} -pm lists no processes: {reason}")
    rows = [match.groups() for line in done.stdout.splitlines() if (match := _ROW.match(line))]
    return [
        {
            "device": int(device),
            "pid": int(pid),
            "name": name,
            "memory": int(size) << 20 if size else None,
        }
        for device, pid, name, size in rows
    ]
