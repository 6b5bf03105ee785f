# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A setup.py written for CUDA builds with one import changed, and options of nvcc become those of mcc."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from setuptools import Distribution

from musa_port import cpp_extension, options
from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

SETUP = """\
import os, subprocess
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, ROCM_HOME, BuildExtension, CppExtension, CUDAExtension

assert ROCM_HOME is None
told = subprocess.check_output([os.path.join(CUDA_HOME, "bin", "nvcc"), "-V"], text=True)
major, minor = told.split("release ")[1].split(",")[0].split(".")
setup(
    name="counted",
    packages=["counted"],
    ext_modules=[
        CUDAExtension(
            "counted._counted_cuda",
            ["csrc/module.cpp", "csrc/table.c", "csrc/cuda/count.cu"],
            include_dirs=["csrc"],
            define_macros=[("WITH_CUDA", None), ("TOLD", major + minor)],
            extra_compile_args={
                "cxx": ["-std=c++17", "-O1"],
                "nvcc": [
                    "-O1", "-std=c++17", "--expt-relaxed-constexpr", "--use_fast_math", "--threads", "4",
                    "-gencode", "arch=compute_80,code=sm_80", "-Xcompiler", "-Wall,-DOF_HOST=3",
                    "-U__CUDA_NO_HALF_OPERATORS__",
                ],
            },
        ),
        CppExtension("counted._plain", ["csrc/plain.cpp"], extra_compile_args=["-std=c++14", "-O1"]),
    ],
    cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True, use_ninja=False)},
)
"""

MODULE = """\
#include <Python.h>
#include "count.h"
#ifndef WITH_CUDA
#error "the macro of the build was not ported"
#endif
static PyObject* count(PyObject*, PyObject* n) {
  return PyLong_FromLong(count_on_device(PyLong_AsLong(n)) + table());
}
static PyMethodDef methods[] = {{"count", count, METH_O, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_counted_cuda", "", -1, methods};
PyMODINIT_FUNC PyInit__counted_cuda() { return PyModule_Create(&definition); }
"""

# Valid as C only: C++ refuses the conversion of a pointer to void to one to int, and `new` as a name.
TABLE = """\
#include <stdlib.h>
int table(void) { int* new = malloc(sizeof(int)); *new = 1000; int value = *new; free(new); return value; }
"""

# Returns the count of n uniform numbers that are in (0, 1], plus the constants of the build.
KERNEL = """\
#include <curand_kernel.h>
#include <cuda_runtime.h>
#include "../count.h"
#if defined(WITH_CUDA) && OF_HOST == 3
constexpr int kOfBuild = TOLD * 100000;
#endif
__global__ void count(int n, int* found) {
  extern __shared__ char room[];
  int& mine = reinterpret_cast<int*>(&room)[threadIdx.x];
  curandState_t state;
  curand_init(7, threadIdx.x, 0, &state);
  const float number = curand_uniform(&state);
  mine = static_cast<int>(threadIdx.x) < n && number > 0 && number <= 1;
  atomicAdd(found, mine);
}
int count_on_device(int n) {
  int* found;
  int result = -1;
  cudaMalloc(&found, sizeof(int));
  cudaMemset(found, 0, sizeof(int));
  count<<<1, 128, 128 * sizeof(int)>>>(n, found);
  cudaMemcpy(&result, found, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(found);
  return result + kOfBuild;
}
"""

PLAIN = """\
#include <Python.h>
#include <c10/util/ArrayRef.h>
#include <concepts>
template <std::integral T> long twice(T x) { return 2 * x; }
static PyObject* number(PyObject*, PyObject*) {
  return PyLong_FromLong(twice(c10::ArrayRef<int>({4, 5}).back()));
}
static PyMethodDef methods[] = {{"number", number, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_plain", "", -1, methods};
PyMODINIT_FUNC PyInit__plain() { return PyModule_Create(&definition); }
"""

HEADER = """\
#pragma once
#ifdef __cplusplus
int count_on_device(int n);
extern "C"
#endif
int table(void);
"""

FILES = {
    "setup.py": SETUP.replace("torch.utils.cpp_extension", "torch_musa.utils.cpp_extension"),
    "counted/__init__.py": "",
    "csrc/count.h": HEADER,
    "csrc/module.cpp": MODULE,
    "csrc/table.c": TABLE,
    "csrc/cuda/count.cu": KERNEL,
    "csrc/plain.cpp": PLAIN,
}


@pytest.mark.slow
def test_one_changed_import_builds_a_cuda_extension(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "MUSA_PORT_CUDA_RELEASE": "12.3"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all((tmp_path / name).read_text() == text for name, text in FILES.items())
    libraries = sorted(path.name for path in (tmp_path / "counted").glob("*.so"))
    assert libraries == ["_counted_cuda.so", "_plain.so"], "no_python_abi_suffix"
    for option in ("--threads 4", "-gencode arch=compute_80,code=sm_80", "--use_fast_math"):
        assert option in done.stdout, "a dropped option is named"
    run_code(
        f"""
        import sys, torch
        sys.path.insert(0, {str(tmp_path)!r})
        torch.musa.init()
        from counted import _counted_cuda, _plain
        assert _counted_cuda.count(100) == 123 * 100000 + 1000 + 100, _counted_cuda.count(100)
        assert _plain.number() == 10
        """
    )


@pytest.mark.parametrize(
    ("given", "kept", "dropped"),
    [
        (["-O3", "-DX=1", "-Iinclude", "-w"], ["-O3", "-DX=1", "-Iinclude", "-w"], []),
        (["-gencode=arch=compute_80,code=sm_80", "-O2"], ["-O2"], ["-gencode=arch=compute_80,code=sm_80"]),
        (["-gencode", "arch=compute_80,code=sm_80"], [], ["-gencode arch=compute_80,code=sm_80"]),
        (["--ptxas-options=-v", "-Xptxas", "-v"], [], ["--ptxas-options=-v", "-Xptxas -v"]),
        (["-Xcompiler", "-fopenmp,-Wall", "-Xcompiler=-g"], ["-fopenmp", "-Wall", "-g"], []),
        (["--std=c++17"], ["-std=c++20"], []),
        (["-std", "c++23"], ["-std=c++23"], []),
        (["-ccbin", "g++-9", "-t4", "-maxrregcount=64"], [], ["-ccbin g++-9", "-t4", "-maxrregcount=64"]),
        (["--expt-extended-lambda", "--extended-lambda", "-rdc=true"], [], None),
        (["-U__CUDA_NO_HALF_OPERATORS__"], ["-U__CUDA_NO_HALF_OPERATORS__"], []),
    ],
)
def test_options_of_nvcc(given: list[str], kept: list[str], dropped: list[str] | None) -> None:
    result = options.of_nvcc(given)
    assert (result.kept, result.dropped) == (kept, given if dropped is None else dropped)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("-std=c++14", "-std=c++20"),
        ("-std=gnu++1z", "-std=gnu++20"),
        ("-std=c++2b", "-std=c++2b"),
        ("-std=c++98", "-std=c++20"),
        ("-std=c11", "-std=c11"),
        ("-O2", "-O2"),
    ],
)
def test_older_standards_are_raised_to_that_of_torch(option: str, expected: str) -> None:
    assert options.raised(option) == expected


def test_the_names_of_torch_are_there() -> None:
    from torch_musa.utils import cpp_extension as of_users

    assert of_users.CUDAExtension is of_users.MUSAExtension
    asked = ["BuildExtension", "CppExtension", "CUDA_HOME", "CUDNN_HOME", "HIP_HOME", "IS_HIP_EXTENSION"]
    assert all(name in of_users.__all__ and hasattr(of_users, name) for name in asked)


def test_nvcc_answers_for_its_version_and_compiles_nothing() -> None:
    nvcc = Path(cpp_extension.CUDA_HOME) / "bin" / "nvcc"
    answers = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True)
    assert "release 11.4, V11.4.0" in answers.stdout
    refuses = subprocess.run([nvcc, "-c", "a.cu"], capture_output=True, text=True, check=False)
    assert refuses.returncode == 1 and "Fix: port the sources with musa-port" in refuses.stderr


def test_an_extension_with_kernels_must_be_declared_as_one(tmp_path: Path) -> None:
    import setuptools

    build = cpp_extension.BuildExtension(Distribution())
    extension = setuptools.Extension("ours", [str(tmp_path / "kernel.cu")])
    with pytest.raises(RuntimeError, match="declare it as a MUSAExtension"):
        build.build_extension(extension)
