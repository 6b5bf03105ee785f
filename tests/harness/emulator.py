# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The SDK that this process loaded, through ctypes: plain runtime calls, and the emulator's own C API."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from . import skips

# The runtime's error code that tests inject.
MEMORY_ALLOCATION = 2
INVALID_VALUE = 1
UNKNOWN = 999


def loaded_sdk() -> ctypes.CDLL:
    """The libmusart.so that the runtime loaded, not another copy of it."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libmusart.so" in line}
    if len(paths) != 1:
        raise RuntimeError(f"expected one loaded libmusart.so, found {sorted(paths) or 'none'}")
    return ctypes.CDLL(paths.pop())


@dataclass(frozen=True)
class Footprint:
    """Resources that the caller of the SDK holds."""

    device_allocations: tuple[int, ...]
    host_allocations: int
    streams: int
    events: int
    graphs: int


class Emulator:
    """The emulator's C API (musa_emulator.h)."""

    def __init__(self, sdk: ctypes.CDLL) -> None:
        self._sdk = sdk
        for name in ("CallCount", "ApiCallCount"):
            getattr(sdk, f"musaEmulator{name}").restype = ctypes.c_ulonglong
        for name in (
            "LiveAllocations",
            "LiveBytes",
            "LiveHostAllocations",
            "LiveHostBytes",
            "LiveStreams",
            "LiveEvents",
            "LiveGraphs",
            "PendingOperations",
        ):
            getattr(sdk, f"musaEmulator{name}").restype = ctypes.c_size_t
        sdk.musaEmulatorMode.restype = ctypes.c_char_p
        sdk.musaEmulatorFailCall.argtypes = (ctypes.c_ulonglong, ctypes.c_int)
        sdk.musaEmulatorFailNext.argtypes = (ctypes.c_char_p, ctypes.c_int)
        sdk.musaEmulatorFailNth.argtypes = (ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_int)
        sdk.musaEmulatorApiCallCount.argtypes = (ctypes.c_char_p,)

    @property
    def mode(self) -> str:
        return self._sdk.musaEmulatorMode().decode()

    def calls(self, api: str | None = None) -> int:
        """Calls of one entry point, or of all, since the process began."""
        if api is None:
            return self._sdk.musaEmulatorCallCount()
        return self._sdk.musaEmulatorApiCallCount(api.encode())

    def fail_call(self, n: int, code: int) -> None:
        """Let the n-th SDK call from now, counted from 1, fail with `code`."""
        self._check(self._sdk.musaEmulatorFailCall(n, code))

    def fail_next(self, api: str, code: int) -> None:
        """Let the next call of `api` fail with `code`."""
        self._check(self._sdk.musaEmulatorFailNext(api.encode(), code))

    def fail_nth(self, api: str, n: int, code: int) -> None:
        """Let the n-th call of `api` from now, counted from 1, fail with `code`."""
        self._check(self._sdk.musaEmulatorFailNth(api.encode(), n, code))

    def fault_pending(self) -> bool:
        """Whether the fault set by fail_call has not been reached yet."""
        return bool(self._sdk.musaEmulatorFaultPending())

    def clear_faults(self) -> None:
        self._sdk.musaEmulatorClearFaults()

    def pending_operations(self) -> int:
        return self._sdk.musaEmulatorPendingOperations()

    def live_bytes(self, device: int) -> int:
        return self._sdk.musaEmulatorLiveBytes(device)

    def footprint(self, devices: int) -> Footprint:
        sdk = self._sdk
        return Footprint(
            device_allocations=tuple(sdk.musaEmulatorLiveAllocations(index) for index in range(devices)),
            host_allocations=sdk.musaEmulatorLiveHostAllocations(),
            streams=sdk.musaEmulatorLiveStreams(),
            events=sdk.musaEmulatorLiveEvents(),
            graphs=sdk.musaEmulatorLiveGraphs(),
        )

    @staticmethod
    def _check(code: int) -> None:
        if code:
            raise ValueError(f"the emulator refused the fault: error {code}")


def emulator_or_skip() -> Emulator:
    """The emulator, if it is the loaded SDK; a test on any other SDK is skipped, permanently."""
    sdk = loaded_sdk()
    if not hasattr(sdk, "musaEmulatorFailCall"):
        skips.skip_permanently("emulator")
    return Emulator(sdk)
