# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The hooks of the pack: what the loader of `torch_musa` asks for."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "operators served by MUSA kernels, over the ported CUDA headers of torch"}


@hookimpl
def musa_rank():
    return 300  # behind torch's CPU kernels in place: the emulator runs these kernels more slowly


@hookimpl
def musa_libraries():
    return ["lib/libmusa_ops_ported.so"]
