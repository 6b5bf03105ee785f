# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_libraries():
    return ["lib/libsdk_pack.so"]
