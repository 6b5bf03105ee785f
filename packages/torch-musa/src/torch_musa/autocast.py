# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The dtypes of `torch.autocast("musa")`, which torch reads from the device module.

The rules of autocast are in the pack that offers `torch.musa.amp`. torch reads the dtypes even where autocast
is switched off, as in checkpoints, and tests its own for membership only where it is switched on; a missing
pack is therefore reported by that test.
"""

import collections.abc

import torch
from torch.compiler import is_dynamo_compiling

from musa_runtime import device


class _SupportedDtypes(collections.abc.Sequence):
    """The dtypes of autocast. Looked up when they are read: to make an autocast object touches no device."""

    def _dtypes(self):
        return [torch.float16, torch.bfloat16] if _has_bfloat16() else [torch.float16]

    def __getitem__(self, index):
        return self._dtypes()[index]

    def __len__(self):
        return len(self._dtypes())

    def __eq__(self, other):
        if not isinstance(other, collections.abc.Sequence):
            return NotImplemented
        return self._dtypes() == list(other)

    __hash__ = None

    def __repr__(self):
        return repr(self._dtypes())

    def __contains__(self, dtype):
        _check_pack()
        if dtype == torch.bfloat16 and not _has_bfloat16():
            raise RuntimeError(
                f"{device.get_device_name()} has no units for bfloat16, which autocast was asked for.\n"
                'Fix: torch.autocast("musa", dtype=torch.float16), with a GradScaler.'
            )
        return dtype in (torch.float16, torch.bfloat16)


def _has_bfloat16():
    # Without a device no operator runs; the answer is what most devices would give.
    return not device.is_available() or device.is_bf16_supported(including_emulation=False)


_dtypes = _SupportedDtypes()
_pack_found = False


def get_amp_supported_dtype():
    """The dtypes that `torch.autocast("musa")` accepts: a sequence of torch.dtype.

    float16, and bfloat16 on devices with units for it (compute capability 2.2 and later).
    """
    # Dynamo cannot trace the test for the pack; torch makes it again when the compiled function enters
    # autocast.
    return [torch.float16, torch.bfloat16] if is_dynamo_compiling() else _dtypes


def _check_pack():
    """Raise unless the pack is loaded or will be with the first use of the device.

    Raises:
        PackError: it is not installed, disabled, or could not be loaded.
    """
    global _pack_found
    if not _pack_found:
        from . import plugins  # on first use: it imports pluggy, which `import torch` does not need

        _pack_found = plugins.check_pack_of("amp")
