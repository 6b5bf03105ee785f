# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks for the plugin loader of `torch_musa`."""

import os

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": 'torch.distributed: the backend "mccl"'}


@hookimpl
def musa_doctor_checks():
    return [("MCCL", _check_mccl)]


@hookimpl
def musa_env_report():
    from . import mccl

    settings = {f"${name}": value for name, value in sorted(os.environ.items()) if name.startswith("MCCL_")}
    return {"MCCL": ".".join(map(str, mccl.version())), **settings}


def _check_mccl():
    from . import _library, mccl

    return f"{'.'.join(map(str, mccl.version()))}, {_library.mccl_path()}"
