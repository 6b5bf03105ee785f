# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called by the loader of `torch_musa`."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "operators as MUSA kernels, built on the ported CUDA headers of torch"}


@hookimpl
def musa_rank():
    return 300


@hookimpl
def musa_libraries():
    return ["lib/libmusa_ops_ported.so"]
