# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
from setuptools import setup

from torch_musa.utils.cpp_extension import BuildExtension, MUSAExtension

setup(
    name="dot-extension",
    version="1.0",
    ext_modules=[
        MUSAExtension(
            "dot_extension", ["ops.cpp", "dot.cu"], extra_compile_args={"cxx": ["-O1"], "nvcc": ["-O1"]}
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
