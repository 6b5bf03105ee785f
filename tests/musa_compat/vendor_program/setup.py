# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds an extension with the calls of the vendor's torch_musa."""

import os

from setuptools import setup

from torch_musa.testing import get_musa_arch
from torch_musa.utils.musa_extension import MUSA_HOME, BuildExtension, MUSAExtension
from torch_musa.utils.simple_porting import SimplePorting

assert MUSA_HOME is not None

SimplePorting(
    cuda_dir_path="csrc",
    mapping_rule={
        "x.is_cuda()": "x.is_privateuseone()",
        "#include <ATen/cuda/CUDAContext.h>": '#include "torch_musa/csrc/aten/musa/MUSAContext.h"',
        "#include <c10/cuda/CUDAGuard.h>": '#include "torch_musa/csrc/core/MUSAGuard.h"',
        "at::cuda": "at::musa",
    },
).run()

setup(
    name="scaled_relu",
    ext_modules=[
        MUSAExtension(
            "scaled_relu",
            ["csrc_musa/binding.cpp", "csrc_musa/scaled_relu_cuda.mu"],
            extra_compile_args={
                "cxx": ["force_mcc"],
                "mcc": ["-O2", "-std=c++17", f"-DARCH={get_musa_arch()}"],
            },
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=os.environ.get("USE_NINJA", "1") == "1")},
)
