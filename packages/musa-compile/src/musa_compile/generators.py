# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Registers one kernel generator at a time with Inductor.

Importing the compiler registers the C++ generator without querying the device. Before Inductor reads the
registration, it computes its cache key or runs the graph pass; both choose the generator, and register it
if it has changed.
"""

from torch._inductor import config
from torch._inductor.codegen import common
from torch._inductor.codegen.triton import TritonScheduling
from torch._inductor.codegen.wrapper_fxir import WrapperFxCodegen
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.utils import parallel_num_threads

from . import (
    _compat,
    cache_key,
    choice,
    device_code,
    flex_attention,
    graph_passes,
    host_kernels,
    host_numbers,
    padded_products,
    timing,
    triton_driver,
    triton_kernels,
)
from .no_cpp_wrapper import NoCppWrapper, NoCppWrapperInThisTorch


def _host_cpp_wrapper():
    if not _compat.has_cpp_wrapper():
        return NoCppWrapperInThisTorch
    from .cpp_wrapper import MusaCppWrapper

    return MusaCppWrapper


# Must be classes, not functions that choose one: torch tests whether the scheduling is a subclass
# of Triton's.
_CLASSES = {
    choice.HOST: (
        host_kernels.MusaScheduling,
        host_kernels.MusaWrapper,
        _host_cpp_wrapper(),
        WrapperFxCodegen,
    ),
    choice.TRITON: (
        TritonScheduling,
        triton_kernels.MusaTritonWrapper,
        NoCppWrapper,
        WrapperFxCodegen,
    ),
}


def register():
    """Registers with Inductor, once."""
    common.register_device_op_overrides("musa", device_code.MusaDeviceCode())
    common.register_backend_for_device("musa", *_CLASSES[choice.HOST], _Passes())
    timing.register()


class _Passes(CustomGraphModulePass):
    """Prepares graphs with musa tensors for the generator. The uuid is part of cache keys."""

    def __call__(self, graph_module):
        generator = self._choose()
        if generator == choice.NONE:
            raise RuntimeError(choice.refusal())
        if generator == choice.HOST:
            flex_attention.compose(graph_module)
        host_numbers.read_on_device(graph_module.graph)
        if generator == choice.HOST:
            graph_passes.prepare(graph_module)
        else:
            padded_products.pad(graph_module.graph)

    def uuid(self):
        return cache_key.key(_description(self._choose()))

    def _choose(self):
        generator = choice.generator()
        classes = _CLASSES.get(generator)
        if classes is not None and common.get_scheduling_for_device("musa") is not classes[0]:
            common.register_backend_for_device("musa", *classes, self)
        return generator


def _description(generator):
    if generator == choice.HOST:
        # C++ kernels are generated for a number of threads, which torch's keys contain for CPU tensors only.
        return f"{generator} for {'any' if config.cpp.dynamic_threads else parallel_num_threads()} threads"
    if generator != choice.TRITON:
        return generator
    from torch.utils._triton import triton_hash_with_backend

    return f"{generator} {triton_driver.find().name} {triton_hash_with_backend()}"
