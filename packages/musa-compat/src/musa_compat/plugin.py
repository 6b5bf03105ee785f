# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called by the loader of `torch_musa`."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "names of the vendor's torch_musa"}
