# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's hooks, called on first use of the device. The loader loads the library."""

from musa_runtime import sdk
from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "relu, and operators of its own"}


@hookimpl
def musa_libraries():
    # The pack's library links to muDNN by name, so the SDK's copy is loaded first.
    mudnn = sdk.library(
        sdk.MUDNN,
        component="muDNN",
        causes="only the SDK's runtime is installed; or this is the emulator without its muDNN.",
        wheel="musa-emulator-mudnn",
    )
    return [mudnn, "lib/libmusa_demo_pack.so"]


@hookimpl
def musa_rank():
    return 50  # before muDNN (100)


@hookimpl
def musa_doctor_checks():
    def computes():
        import torch

        result = torch.ops.musa_demo.scale_shift(torch.ones(2, device="musa"), 3.0, 1.0)
        assert result.tolist() == [4.0, 4.0], result
        return "scale_shift gives 3 * 1 + 1 = 4"

    return [("computes", computes)]
