# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The mathematical libraries of the emulator: checks in every mode, exports, CMake targets."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.musa_emulator import sdk
from tests.musa_emulator.mcc import mcc, run
from tests.musa_emulator.test_exports import exports
from tests.musa_emulator_math import checks, run_checks

pytestmark = pytest.mark.once

SETTINGS = {
    "inline": {"MUSA_EMULATOR_MODE": "inline"},
    "async": {"MUSA_EMULATOR_MODE": "async"},
    "lazy": {"MUSA_EMULATOR_MODE": "lazy"},
    "strict": {"MUSA_EMULATOR_MODE": "lazy", "MUSA_EMULATOR_MEMORY": "strict"},
}
HEADERS = {
    "mublas": "mublas.h",
    "mublasLt": "mublasLt.h",
    "mufft": "mufft.h",
    "murand": "murand_host.h",
    "musparse": "musparse.h",
    "musolver": "musolver.h",
}


@cache
def results(setting: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.musa_emulator_math.run_checks"],
        env=sdk.clean_environment(**SETTINGS[setting]),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", run_checks.CHECKS)
def test_results_are_numpys(name: str, setting: str) -> None:
    assert results(setting)[name] == ""


THREADS_OF_A_SPARSE_PRODUCT = """
import os, torch
from benchmarks.math_libraries import spmv

def threads():
    return len(os.listdir("/proc/self/task"))

torch.set_num_threads(1)  # so that nothing before the product starts threads of OpenMP
case = spmv(torch.device("musa"), 20_000, 50)
case.run()
before = threads()
torch.set_num_threads(3)
case.run()
print(threads() - before)
case.baseline()
torch.musa.synchronize()
torch.testing.assert_close(case.outputs[0].cpu(), case.outputs[1], rtol=1e-4, atol=1e-4)
"""


def test_sparse_products_use_as_many_threads_as_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", THREADS_OF_A_SPARSE_PRODUCT],
        env=sdk.clean_environment(MUSA_EMULATOR_MODE="inline"),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == "2"


def test_a_wrong_result_would_be_noticed() -> None:
    right = np.linspace(-2, 2, 9, dtype=np.float32)
    checks.same(right, right)
    for wrong in (right + np.float32(1e-3), right.astype(np.float64), np.where(right == 0, np.nan, right)):
        with pytest.raises(AssertionError):
            checks.same(wrong, right)


def declared_functions(header: str, language: str = "c++") -> set[str]:
    """Functions that a header declares, after expansion of its macros, without those of included headers."""
    include = sdk.HOME / "include"
    command = ["c++", "-E", "-x", language, f"-I{include}", str(include / header)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text, inside = "", False
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "(.*?)"', line):
            inside = Path(marker[1]).name == header
        elif inside:
            text += line + "\n"
    return set(re.findall(r'visibility\("default"\)\)\)[\w\s*]*?\b(\w+)\s*\(', text))


@pytest.mark.parametrize("library", HEADERS)
def test_a_library_exports_what_its_header_declares_and_nothing_else(library: str) -> None:
    declared = declared_functions(HEADERS[library])
    exported = exports(sdk.HOME / "lib" / f"lib{library}.so")
    assert len(declared) > 10
    assert set(exported) == declared and not any(exported.values())


@pytest.mark.parametrize("library", HEADERS)
def test_a_header_is_valid_c_and_declares_the_same_functions(library: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(f"#include <{HEADERS[library]}>\nint main(void) {{ return 0; }}\n")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{sdk.HOME / 'include'}"]
    command = ["cc", *options, "main.c"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    in_cpp = declared_functions(HEADERS[library])
    of_half = {name for name in in_cpp if "Hgemm" in name}  # __half is a C++ class
    assert declared_functions(HEADERS[library], "c") == in_cpp - of_half


OUT_OF_RANGE = """
from tests.musa_emulator_math.checks import Device
from tests.musa_emulator_math.sparse_checks import *
handle = new_handle()
matrix = Matrix(np.eye(3, dtype=np.float32), "S", coo={coo}, base={base})
values = np.array({values}, np.int32)
array = matrix.{array}
checks_rt = __import__("tests.musa_emulator_math.checks", fromlist=["rt"]).rt
ok(checks_rt.musaMemcpy(array.pointer, values.ctypes.data_as(c_void_p), c_size_t(values.nbytes), 1))
x, y = Device(np.ones(3, np.float32)), Device(np.zeros(3, np.float32))
one = scalar(np.float32, 1)
operands = (one, matrix.descriptor, vector(x, "S"), one, vector(y, "S"))
status = sparse.musparseSpMV(handle, {operation}, *operands, 0, 0, None)
print(status, checks_rt.musaDeviceSynchronize())
"""


@pytest.mark.parametrize(
    "case",
    [
        {"array": "columns", "values": [0, 3, 2], "message": "an index"},
        {"array": "columns", "values": [0, -1, 2], "message": "an index"},
        {"array": "columns", "values": [0, 1, 2], "base": 1, "operation": 112, "message": "an index"},
        {"array": "rows", "values": [0, 1, 9], "coo": True, "message": "an index"},
        {"array": "rows", "values": [0, 2, 1, 3], "message": "a row pointer"},
        {"array": "rows", "values": [0, 1, 2, 4], "message": "a row pointer"},
    ],
    ids=str,
)
def test_an_index_of_a_sparse_matrix_that_is_out_of_range_loses_the_device(case: dict) -> None:
    defaults = {"coo": False, "base": 0, "operation": 111}
    code = OUT_OF_RANGE.format(**{**defaults, **case})
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=sdk.clean_environment(),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert f"{case['message']} of the sparse matrix is out of range" in done.stderr
    assert done.stdout.split()[1] != "0", done.stdout


PROGRAM = """
#include <cstdio>
#include <mublas.h>
#include <mublasLt.h>
#include <mufft.h>
#include <murand.h>
#include <musolver.h>
#include <musparse.h>
#include <vector>
int main() {
  mublasHandle_t handle;
  float *a, *product, one = 1, zero = 0;
  musaMalloc((void**)&a, 4 * sizeof(float));
  musaMalloc((void**)&product, 4 * sizeof(float));
  std::vector<float> host{1, 2, 3, 4};
  musaMemcpy(a, host.data(), 16, musaMemcpyHostToDevice);
  if (mublasCreate(&handle) != MUBLAS_STATUS_SUCCESS) return 1;
  // SDK 3 named the type of the computation as that of the matrices.
  const musaDataType type = MUSA_R_32F;
  mublasStatus_t status = mublasGemmEx(handle, MUBLAS_OP_N, MUBLAS_OP_N, 2, 2, 2, &one, a, type, 2, a, type,
                                       2, &zero, product, type, 2, type, MUBLAS_GEMM_DEFAULT);
  musaMemcpy(host.data(), product, 16, musaMemcpyDeviceToHost);
  std::printf("%s %g %g %g %g\\n", mublasGetStatusString(status), host[0], host[1], host[2], host[3]);
  mufftHandle plan;
  murandGenerator_t generator;
  mublasLtHandle_t lt;
  musparseHandle_t sparse;
  int size;
  if (mublasLtCreate(&lt) || musparseCreate(&sparse)) return 2;
  if (musolverSgetrf_bufferSize(2, 2, true, &size)) return 2;
  // SDK 3 has one function for the size and the product.
  int* starts;
  float* vectors;
  musaMalloc((void**)&starts, 5 * sizeof(int));
  musaMalloc((void**)&vectors, 4 * sizeof(float));
  const int indices[] = {0, 1, 2, 1, 0};
  const float values[] = {3, 4, 0, 0};
  musaMemcpy(starts, indices, sizeof(indices), musaMemcpyHostToDevice);
  musaMemcpy(vectors, values, sizeof(values), musaMemcpyHostToDevice);
  musparseSpMatDescr_t matrix;
  musparseDnVecDescr_t x, y;
  musparseCreateCsr(&matrix, 2, 2, 2, starts, starts + 3, vectors, MUSPARSE_INDEX_32I, MUSPARSE_INDEX_32I,
                    MUSPARSE_INDEX_BASE_ZERO, MUSA_R_32F);
  musparseCreateDnVec(&x, 2, vectors, MUSA_R_32F);
  musparseCreateDnVec(&y, 2, vectors + 2, MUSA_R_32F);
  size_t bytes = 0;
  void* buffer = nullptr;
  for (int step = 0; step < 2; ++step) {
    if (musparseSpMV(sparse, MUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, x, &zero, y, MUSA_R_32F,
                     MUSPARSE_SPMV_ALG_DEFAULT, &bytes, buffer)) return 3;
    if (step == 0) musaMalloc(&buffer, bytes);
  }
  musaMemcpy(host.data(), vectors + 2, 8, musaMemcpyDeviceToHost);
  std::printf("%g %g\\n", host[0], host[1]);
  return mufftPlan1d(&plan, 2, MUFFT_C2C, 1) || mublasDestroy(handle) ||
      murandCreateGenerator(&generator, MURAND_RNG_PSEUDO_DEFAULT);
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(uses_libraries LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "$ENV{MUSA_HOME}/cmake")
find_package(MUSAToolkit REQUIRED COMPONENTS mublas mublasLt mufft murand musparse musolver)
add_executable(program main.cpp)
foreach(library mublas mublasLt mufft murand musparse musolver)
  target_link_libraries(program PRIVATE MUSA::${library})
endforeach()
find_package(MUSAToolkit QUIET COMPONENTS musomething)
if(MUSAToolkit_FOUND)
  message(FATAL_ERROR "a library that is not there was found")
endif()
"""
EXPECTED = "MUBLAS_STATUS_SUCCESS 7 10 15 22\n12 12\n"


def test_a_program_of_a_cmake_project(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    environment = sdk.clean_environment(MUSA_HOME=str(sdk.HOME))
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={sdk.tool('ninja')}"]
    for command in (
        [sdk.tool("cmake"), "-S", ".", "-B", "build", *generator],
        [sdk.tool("cmake"), "--build", "build"],
    ):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    done = run(tmp_path / "build" / "program")
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr


def test_a_program_that_mcc_links(tmp_path: Path) -> None:
    (tmp_path / "main.mu").write_text(PROGRAM)
    done = mcc("main.mu", *(f"-l{library}" for library in HEADERS), "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "program").stdout == EXPECTED
