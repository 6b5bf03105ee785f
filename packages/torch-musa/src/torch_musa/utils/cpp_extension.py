# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds extensions in C++, MUSA and CUDA, with the interface of `torch.utils.cpp_extension`.

The functions are those of the wheel `musa-port`, which the extra `port` installs::

    from setuptools import setup
    from torch_musa.utils.cpp_extension import BuildExtension, MUSAExtension

Raises:
    ImportError: if the wheel is not installed; the message contains the command that installs it.
"""

import importlib.util

from musa_runtime import installation

if importlib.util.find_spec("musa_port") is None:
    raise ImportError(
        "torch_musa.utils.cpp_extension needs the wheel musa-port, which builds extensions and is not "
        f"installed.\nFix: {installation.command('musa-port')}"
    )

from musa_port.cpp_extension import (
    CUDA_HOME,
    CUDNN_HOME,
    HIP_HOME,
    IS_HIP_EXTENSION,
    ROCM_HOME,
    SYCL_HOME,
    BuildExtension,
    CppExtension,
    CUDAExtension,
    MUSAExtension,
    include_paths,
    library_paths,
    load,
    load_inline,
)

__all__ = [
    "CUDA_HOME",
    "CUDNN_HOME",
    "HIP_HOME",
    "IS_HIP_EXTENSION",
    "ROCM_HOME",
    "SYCL_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "MUSAExtension",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
]
