# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds the Triton backend for musa, which is part of Triton builds for these GPUs."""

import functools
import os
from typing import NamedTuple

_DEFAULT = "TRITON_DEFAULT_BACKEND"


class Driver(NamedTuple):
    """A Triton backend for musa, or the reason why Triton cannot be used."""

    name: str | None  # of the entry point
    reason: str | None  # a clause, if there is no usable backend


@functools.cache
def find():
    """Finds the backend that Triton uses for musa.

    Imports Triton; its drivers may query their devices.

    Returns:
        Driver: with a `name` if the backend is usable, otherwise with a `reason`.
    """
    try:
        from triton.backends import backends
        from triton.backends.compiler import GPUTarget
    except ImportError as error:
        return Driver(None, f"Triton is not installed ({error})")
    except Exception as error:  # noqa: BLE001 - Triton imports every installed backend
        return Driver(None, f"Triton cannot be imported ({error!r})")
    # A backend of any name may compile for musa: the vendor's is called "mthreads". The capability
    # and the warp size are irrelevant here.
    target = GPUTarget("musa", 31, 32)
    for_musa = [name for name, backend in backends.items() if backend.compiler.supports_target(target)]
    if not for_musa:
        has = ", ".join(backends) or "none"
        return Driver(None, f'the installed Triton has no backend for the target "musa" (it has: {has})')
    active = [name for name, backend in backends.items() if backend.driver.is_active()]
    # torch uses the first active backend other than the CPU's.
    first = next((name for name in active if name != "cpu"), None)
    if not set(active) & set(for_musa):
        return Driver(None, f"Triton's driver {for_musa[0]!r} is not active: it found no device")
    if first not in for_musa:
        return Driver(None, f"torch uses Triton's driver {first!r}, which is active too")
    if len(active) > 1 and os.environ.get(_DEFAULT) != first:  # Triton raises without a default
        others = ", ".join(active)
        return Driver(None, f"several Triton drivers are active ({others}) and {_DEFAULT} is not {first}")
    return Driver(first, None)
