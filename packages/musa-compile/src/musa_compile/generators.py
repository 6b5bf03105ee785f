# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Which code generator Inductor gets for musa: C++ where the host can address the device's memory, none
otherwise.
"""

import functools

from torch._inductor.codegen import common
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen

from musa_runtime import inductor_refusal

from . import cpp_wrapper, device_code, graph_passes, host_kernels


@functools.cache
def chosen():
    """The name of the generator.

    Returns:
        str: `"C++"`, or `"none"` where the host cannot address the device's memory.
    """
    from torch import musa

    if not musa.is_available() or musa.get_device_properties(0).is_integrated:
        return "C++"
    return "none"


def register():
    """Register with Inductor, once."""
    if chosen() == "none":
        inductor_refusal.refuse(_reason)
        return
    common.register_device_op_overrides("musa", device_code.MusaDeviceCode())
    # Classes, and no function that chooses later: torch asks of what it gets here whether it is a subclass
    # of Triton's.
    common.register_backend_for_device(
        "musa",
        host_kernels.MusaScheduling,
        host_kernels.MusaWrapper,
        cpp_wrapper.MusaCppWrapper,
        WrapperFxCodegen,
        graph_passes.HostKernelPasses(),
    )


def _reason():
    return (
        'torch.compile\'s backend "inductor" cannot generate code for this musa device: its kernels would '
        "be C++ on the host, which cannot address the device's memory.\n"
        'Fix: torch.compile(..., backend="aot_eager"), which runs the operators that eager mode runs'
    )
