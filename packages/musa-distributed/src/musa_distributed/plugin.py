# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from musa_runtime.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Callable


@hookimpl
def musa_pack_info() -> dict[str, str]:
    return {"summary": 'torch.distributed: the backend "mccl"'}


@hookimpl
def musa_doctor_checks() -> list[tuple[str, Callable[[], str]]]:
    return [("MCCL", _check_mccl)]


@hookimpl
def musa_env_report() -> dict[str, str]:
    from . import mccl

    settings = {f"${name}": value for name, value in sorted(os.environ.items()) if name.startswith("MCCL_")}
    return {"MCCL": ".".join(map(str, mccl.version())), **settings}


def _check_mccl() -> str:
    from . import _extension, mccl

    return f"{'.'.join(map(str, mccl.version()))}, {_extension.mccl_path()}"
