# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

from __future__ import annotations

import os

from musa_runtime.hookspecs import hookimpl

from . import _library


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {"summary": "operators served by muDNN, the vendor's library of primitives"}


@hookimpl
def musa_rank() -> int:
    return 100


@hookimpl
def musa_libraries() -> list[str]:
    return _library.paths()


@hookimpl
def musa_register() -> None:
    from . import backend, fused

    backend.attach()
    fused.register()


@hookimpl
def musa_env_report() -> dict[str, str]:
    settings = {f"${name}": value for name, value in sorted(os.environ.items()) if name.startswith("MUDNN_")}
    return {"muDNN": _library.version_text(), **settings}
