# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The dtypes of `torch.autocast("musa")`, which torch reads from the device module.

The autocast rules are in the pack with `torch.musa.amp`. torch reads the dtypes even if autocast is disabled,
as in checkpoints, and tests whether its own dtype is among them only if autocast is enabled. Therefore that
test reports a missing pack.
"""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_dynamo_compiling

from musa_runtime import device

if TYPE_CHECKING:
    from collections.abc import Sequence


class _SupportedDtypes(collections.abc.Sequence[torch.dtype]):
    """The dtypes of autocast, computed on access so that autocast objects initialize no device."""

    def _dtypes(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16] if _has_bfloat16() else [torch.float16]

    def __getitem__(self, index: Any) -> Any:
        return self._dtypes()[index]

    def __len__(self) -> int:
        return len(self._dtypes())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, collections.abc.Sequence):
            return NotImplemented
        return self._dtypes() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._dtypes())

    def __contains__(self, dtype: object) -> bool:
        _check_pack()
        if dtype == torch.bfloat16 and not _has_bfloat16():
            raise RuntimeError(
                f"{device.get_device_name()} has no units for bfloat16, the dtype of this autocast.\n"
                'Fix: torch.autocast("musa", dtype=torch.float16), with a GradScaler.'
            )
        return dtype in (torch.float16, torch.bfloat16)


def _has_bfloat16() -> bool:
    # Without a device no operator runs, so return the value of most devices.
    return not device.is_available() or device.is_bf16_supported(including_emulation=False)


_dtypes = _SupportedDtypes()
_pack_found = False


def get_amp_supported_dtype() -> Sequence[torch.dtype]:
    """Returns the sequence of dtypes that `torch.autocast("musa")` accepts.

    float16, and bfloat16 on devices with units for it (compute capability 2.2 and later).
    """
    # Dynamo cannot trace the test for the pack; torch repeats it when the compiled function enters
    # autocast.
    return [torch.float16, torch.bfloat16] if is_dynamo_compiling() else _dtypes


def _check_pack() -> None:
    """Raises unless the pack is loaded or will be loaded by the first use of the device.

    Raises:
        PackError: if it is not installed, disabled, or could not be loaded.
    """
    global _pack_found
    if not _pack_found:
        from . import plugins  # imported on first use, because `import torch` does not need pluggy

        _pack_found = plugins.check_pack_of("amp")
