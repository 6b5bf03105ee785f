# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

from __future__ import annotations

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {"summary": "autocast rules, and the operators of GradScaler"}


@hookimpl
def musa_libraries() -> list[str]:
    return ["lib/libmusa_amp.so"]
