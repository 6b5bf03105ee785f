# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

from __future__ import annotations

from musa_runtime.hookspecs import hookimpl

from . import _library


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {"summary": "Fourier transforms served by muFFT"}


@hookimpl
def musa_rank() -> int:
    return 120


@hookimpl
def musa_libraries() -> list[str]:
    return _library.paths()
