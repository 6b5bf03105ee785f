# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

from __future__ import annotations

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {"summary": "torch's CPU kernels in device memory that the host can address"}


@hookimpl
def musa_rank() -> int:
    # Behind kernels of the device. The runtime ranks it before them where the SDK declares that its devices
    # compute on the host.
    return 350


@hookimpl
def musa_libraries() -> list[str]:
    return ["lib/libmusa_ops_host.so"]
