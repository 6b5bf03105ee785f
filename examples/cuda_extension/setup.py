# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds a CUDA extension for musa. Only one import and its two names differ from a setup.py for CUDA."""

from setuptools import setup

from torch_musa.utils.cpp_extension import BuildExtension, MUSAExtension

setup(
    name="dot-extension",
    version="1.0",
    ext_modules=[
        MUSAExtension(
            "dot_extension",
            ["csrc/ops.cpp", "csrc/cpu/dot.cpp", "csrc/cuda/dot.cu"],
            define_macros=[("WITH_CUDA", None)],
            extra_compile_args={"cxx": ["-O1"], "nvcc": ["-O1"]},
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
