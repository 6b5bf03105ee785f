# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called by the loader of `torch_musa`."""

import os
import warnings

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "names of the vendor's torch_musa"}


@hookimpl
def musa_register(musa):
    if os.environ.get("TORCH_USE_MUSA_DOUBLE_CAST", "").lower() in ("1", "on", "true"):
        warnings.warn(
            "TORCH_USE_MUSA_DOUBLE_CAST has no effect: float64 tensors are computed in float64, by the host "
            "if the device has no float64. Fix: unset the variable; for speed, call .float().",
            stacklevel=2,
        )
