# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called on first use of the device. The loader loads the library."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "relu over torch's stable ABI, and an operator of its own"}


@hookimpl
def musa_libraries():
    return ["lib/libmusa_stable_demo_pack.so"]


@hookimpl
def musa_rank():
    return 40  # before muDNN (100), and before examples/op_pack (50) where both are installed
