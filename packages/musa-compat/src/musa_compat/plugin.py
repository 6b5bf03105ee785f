# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The hooks of the pack: what the loader of `torch_musa` asks for."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "names of the vendor's torch_musa"}
