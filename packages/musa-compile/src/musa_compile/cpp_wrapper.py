# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Generates the C++ wrapper of a graph, for `config.cpp_wrapper` and AOTInductor.

Operators are called through the C functions `aoti_torch_musa_<operator>` of libmusa_aoti.so. Kernels of
the graph are called directly, inside a scope object that waits for the device's stream.
"""

import os

import torch
from torch._inductor.codegen.cpp_wrapper_cpu import CppWrapperCpu
from torch._inductor.virtualized import V

from . import _compat, cache_key, installed
from .host_kernels import KernelDevice

_compat.name_device_in_cpp()

_INCLUDE_PATH = "CPLUS_INCLUDE_PATH"


class MusaCppWrapper(KernelDevice, CppWrapperCpu):
    """Generates C++ for graphs with musa tensors whose memory the host can address."""

    def __init__(self):
        self.device = "musa"
        super().__init__()
        self.needs_vec_isa = True  # the kernels are C++
        self._device_of_kernel = {}
        if V.graph.aot_mode:
            _add_include_path()

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        return MusaCppWrapper()

    # torch's headers for these devices do not include each other, and musa's must come first in a
    # model.
    @staticmethod
    def get_device_include_path_jit(device):
        if device != "musa":
            return CppWrapperCpu.get_device_include_path_jit(device)
        return f'{_version()}\n#include "{installed.file(installed.HEADER)}"'

    @staticmethod
    def get_device_include_path_aot(device):
        if device in ("musa", "cpu"):
            return f"{_version()}\n{CppWrapperCpu.get_device_include_path_aot('musa')}"
        return CppWrapperCpu.get_device_include_path_aot(device)

    def write_header(self):
        if not V.graph.is_const_graph and not V.graph.aot_mode:
            self.header.writeline("from musa_compile.installed import load_library")
            self.header.writeline("load_library()")
        super().write_header()

    def define_kernel(self, kernel_name, kernel_body, metadata=None, gpu=True, cpp_definition=None):
        if self._kernel_device is not None:
            self._device_of_kernel[kernel_name] = self._kernel_device
        super().define_kernel(kernel_name, kernel_body, metadata, gpu, cpp_definition)

    def _generate_kernel_call_helper(self, kernel_name, call_args, *, device=None, **arguments):
        index = self._device_of_kernel.get(kernel_name)
        if index is None:
            super()._generate_kernel_call_helper(kernel_name, call_args, device=device, **arguments)
            return
        place = self.codegen_device_idx(torch.device("musa", index), str(index))
        self.writeline("{")
        self.writeline(f'const musa_compile::HostKernel host_kernel({place}, "{kernel_name}");')
        super()._generate_kernel_call_helper(kernel_name, call_args, device=torch.device("cpu"), **arguments)
        self.writeline("}")

    def codegen_cuda_stream_enter(self, stream_idx):
        raise NotImplementedError(
            "Inductor's C++ wrapper for musa does not support streams within a compiled function.\n"
            "Fix: compile without config.cpp_wrapper, or enter the stream outside of the function"
        )

    def _generate_end_jit(self, result):
        # The line written here names the device that determines compiler flags and precompiled
        # headers: the CPU's, which compile kernels with -O3.
        self.device = "cpu"
        try:
            super()._generate_end_jit(result)
        finally:
            self.device = "musa"


def _version():
    """Returns a comment with the headers' digest, because torch caches libraries by source code."""
    return f"// {cache_key.key('C++').hex()}"


def _add_include_path():
    """Lets compilers started by this process find `torch/csrc/inductor/aoti_include/musa.h`.

    AOTInductor precompiles the header of this name and has no setting for include paths. The folder
    contains no other header of torch, and is searched after the paths given on the command line.
    """
    folder = installed.include_dir()
    known = os.environ.get(_INCLUDE_PATH)
    if known is None:
        os.environ[_INCLUDE_PATH] = folder
    elif folder not in known.split(os.pathsep):
        # An empty entry means the current directory; if the variable is empty, no separator may be
        # added.
        os.environ[_INCLUDE_PATH] = f"{known}{os.pathsep}{folder}" if known else folder
