# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Registration with Inductor: C++ kernels, for devices whose memory the host can address.

Nothing here asks for the device: programs that fork import Inductor before.
"""

from torch._inductor.codegen import common
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

from . import cpp_wrapper, device_code, graph_passes, host_kernels


def register():
    """Register with Inductor, once."""
    common.register_device_op_overrides("musa", device_code.MusaDeviceCode())
    # Torch tests whether the scheduling is a subclass of Triton's, so it must be a class, not a function.
    common.register_backend_for_device(
        "musa",
        host_kernels.MusaScheduling,
        host_kernels.MusaWrapper,
        cpp_wrapper.MusaCppWrapper,
        WrapperFxCodegen,
        graph_passes.HostKernelPasses(),
    )
