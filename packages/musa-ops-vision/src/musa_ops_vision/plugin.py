# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The hooks of the pack, called at the first use of the device."""

from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "torchvision's operators: nms, pooling of regions, deformable convolution"}


@hookimpl
def musa_libraries():
    return ["lib/libmusa_ops_vision.so"]


@hookimpl
def musa_register(musa):
    from . import schemas

    # Before the runtime installs kernels, which it does for operators that exist.
    schemas.define_missing()
    schemas.register_missing_fakes()
