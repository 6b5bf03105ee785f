# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Functions that generated modules call."""

import ctypes
import functools

import torch
from torch._inductor.async_compile import get_compile_threads
from torch._inductor.codecache import CppPythonBindingsCodeCache, LambdaFuture

from musa_runtime._load import extension

extension()  # loads libmusa_runtime.so, which _C needs; does not initialize a device

from . import _C  # noqa: E402
from .device_interface import MusaInterface  # noqa: E402

# get_raw_stream(index): returns the SDK's handle of the device's current stream as an int.
get_raw_stream = MusaInterface.get_raw_stream
# empty_strided_musa(size, stride, dtype, index): `torch.empty_strided` on the musa device of that
# index.
empty_strided_musa = _C.empty_strided
# mm_musa(left, right, out), addmm_musa(added, left, right, out), bmm_musa(left, right, out): the operators of
# these names with an output, below autograd.
mm_musa, addmm_musa, bmm_musa = _C.mm, _C.addmm, _C.bmm
# aligned_musa(tensor): the tensor, or a copy of the same strides, at a multiple of 16 bytes.
aligned_musa = _C.aligned

# A variant of the kernel that takes arrays of operands, for calls recorded into a graph.
_RECORDABLE = """
extern "C" __attribute__((visibility("default")))
void kernel_of_arrays(void* const* pointers, const int64_t* numbers) {{
  kernel({arguments});
}}
"""


def host_kernel(name, index, async_compile, argument_types, source):
    """Compiles a kernel, as `AsyncCompile.cpp_pybinding` does for CPU tensors.

    Args:
        name (str): the kernel's name in profiles.
        index (int): index of the operands' musa device.
        async_compile (torch._inductor.async_compile.AsyncCompile): compiles in the background.
        argument_types (list of str): parameter types of the C++ function `kernel`.
        source (str): C++ source code.

    Returns:
        The kernel, or a future of it if it is compiled in the background.
    """
    source += _recordable(argument_types)
    load = functools.partial(CppPythonBindingsCodeCache.load_pybinding_async, argument_types, source)
    if get_compile_threads() <= 1:  # torch resolves futures only with more than one thread
        return _kernel(name, index, argument_types, load()())
    function = load(submit_fn=async_compile.submit)
    return LambdaFuture(lambda: _kernel(name, index, argument_types, function()))


def _recordable(argument_types):
    pointers = numbers = 0
    arguments = []
    for argument in argument_types:
        if "*" in argument:
            arguments.append(f"static_cast<{argument}>(pointers[{pointers}])")
            pointers += 1
        else:
            arguments.append(f"static_cast<{argument}>(numbers[{numbers}])")
            numbers += 1
    return _RECORDABLE.format(arguments=", ".join(arguments))


def _kernel(name, index, argument_types, function):
    # Python never unloads an extension module, so the address remains valid.
    library = ctypes.CDLL(function.__self__.__file__)
    address = ctypes.cast(library.kernel_of_arrays, ctypes.c_void_p).value
    is_tensor = ["*" in argument for argument in argument_types]

    def record(*arguments):
        tensors = [argument for argument, tensor in zip(arguments, is_tensor) if tensor]
        numbers = [int(argument) for argument, tensor in zip(arguments, is_tensor) if not tensor]
        # The runtime's fallback records the operator into the graph.
        torch.ops.musa_compile.run_kernel(address, tensors, numbers)

    return _C.Kernel(function, record, name, index)
