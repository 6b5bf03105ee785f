# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Differences between torch minors, 2.11 to 2.15, in the modules of torch's compiler. No other module of the
pack uses a name that a minor lacks.

Names are queried when they are used: importing this module imports nothing of the compiler.
"""


def has_device_contexts() -> bool:
    """Whether Dynamo traces context managers of other devices than CUDA and XPU (2.13 and later)."""
    from torch._dynamo.variables import ctx_manager

    return hasattr(ctx_manager, "register_device_context_manager")


def register_graphsafe_rng() -> None:
    """Makes recomputed regions of a graph draw the numbers that the forward drew (2.13 and later)."""
    from torch._functorch._aot_autograd import utils

    if hasattr(utils, "register_graphsafe_rng_device_type"):
        utils.register_graphsafe_rng_device_type("musa")


def has_cpp_wrapper() -> bool:
    """Whether Inductor's C++ wrapper has the methods that another device overrides (2.13 and later)."""
    from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu

    return hasattr(CppWrapperCpu, "get_device_include_path_aot")


def name_device_in_cpp() -> None:
    """Gives Inductor the C++ name of the device's type.

    Up to 2.14 torch looks it up in a dictionary and has no function to register a name; later it calls
    `DeviceOpOverrides.aten_device_type`.
    """
    from torch._inductor.codegen import cpp_utils

    names = getattr(cpp_utils, "DEVICE_TO_ATEN", None)
    if names is not None:
        names.setdefault("musa", "at::kPrivateUse1")


def enter_stream_line() -> type:
    """The line of a generated module that enters a stream. Graphs have streams in 2.12 and later."""
    from torch._inductor.codegen import wrapper

    return getattr(wrapper, "EnterCudaStreamContextLine", object)


def register_benchmarker(function) -> None:
    """Makes Inductor measure kernels with the function (2.12 and later); before, it uses CUDA's events."""
    from torch._inductor.runtime import benchmarking

    if hasattr(benchmarking, "register_benchmarker"):
        benchmarking.register_benchmarker("musa", function, override=True)


def two_step_variance_limit() -> int:
    """The number of elements up to which Inductor computes variances on the CPU in two steps.

    0 if torch has no other limit for the CPU than for other devices (2.12 and older).
    """
    from torch._inductor import config

    return getattr(config.cpp, "use_two_step_variance_threshold", 0)
