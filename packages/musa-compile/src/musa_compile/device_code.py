# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Python lines and C++ names for generated wrappers."""

from torch._inductor.codegen.common import DeviceOpOverrides


class MusaDeviceCode(DeviceOpOverrides):
    """Code that Inductor emits into wrappers for musa."""

    def import_get_raw_stream_as(self, name):
        return f"from musa_compile.kernels import get_raw_stream as {name}"

    def set_device(self, device_idx):
        return f"torch.musa.set_device({device_idx})"

    def synchronize(self):
        return "torch.musa.synchronize()"

    def device_guard(self, device_idx):
        return f"torch.musa.device({device_idx})"

    def current_stream(self):
        return "torch.musa.current_stream()"

    def cpp_kernel_type(self):
        # AOTInductor declares an unused member of this type per kernel; kernels here are functions.
        return "void*"

    def aten_device_type(self):
        # Called by torch 2.15 and later: _compat.name_device_in_cpp has the others.
        return "at::kPrivateUse1"

    def stream_handle(self, stream_name):
        return f"{stream_name}.musa_stream"
