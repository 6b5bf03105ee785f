# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Direct SDK calls: `torch.musa.musart()` has the functions, `check_error` converts their codes to
exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._load import extension
from .errors import SdkCallError
from .initialization import lazy_init

if TYPE_CHECKING:
    from types import ModuleType
    from typing import SupportsInt


def musart() -> ModuleType:
    """A namespace of SDK calls; initialises the device.

    * `musaError`: the enum of codes, e.g. `musaError.success`; `musaGetErrorString(code)` and
      `musaGetErrorName(code)` describe a code.
    * `musaProfilerStart()`, `musaProfilerStop()`.
    * `musaHostRegister(address, nbytes, flags)`, `musaHostUnregister(address)`: pin existing memory.
    * `musaStreamCreate(address)`: writes a `musaStream_t` to an address; `musaStreamDestroy(stream)`.
    * `musaMemGetInfo(device)`: (free, total) bytes.

    Functions without another result return a `musaError`, to be checked with :func:`check_error`.
    """
    lazy_init()
    return extension()._musart


class musaStatus:
    """Codes that programs compare with by name."""

    SUCCESS = 0
    ERROR_NOT_READY = 600


def check_error(res: SupportsInt) -> None:
    """Raise :class:`SdkCallError` (a `torch.musa.MusaError`) unless a code of the SDK is success.

    Args:
        res (int or musaError): the result of an SDK call.
    """
    code = int(res)
    if code != musaStatus.SUCCESS:
        native = extension()._musart
        error = native.musaError(code)
        raise SdkCallError(
            code, f"{native.musaGetErrorName(error)} ({code}): {native.musaGetErrorString(error)}"
        )


__all__ = ["check_error", "musaStatus", "musart"]
