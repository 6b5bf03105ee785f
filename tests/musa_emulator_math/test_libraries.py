# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""muBLAS, muFFT and muRAND of the emulator: checks.py in every mode, exports, CMake targets."""

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
from tests.musa_emulator_math import checks

pytestmark = pytest.mark.once

SETTINGS = {
    "inline": {"MUSA_EMULATOR_MODE": "inline"},
    "async": {"MUSA_EMULATOR_MODE": "async"},
    "lazy": {"MUSA_EMULATOR_MODE": "lazy"},
    "strict": {"MUSA_EMULATOR_MODE": "lazy", "MUSA_EMULATOR_MEMORY": "strict"},
}
HEADERS = {"mublas": ["mublas.h"], "mufft": ["mufft.h"], "murand": ["murand_host.h"]}


@cache
def results(setting: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.musa_emulator_math.checks"],
        env=sdk.clean_environment(**SETTINGS[setting]),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=sdk.ROOT,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr[-4000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", checks.CHECKS)
def test_results_are_numpys(name: str, setting: str) -> None:
    assert results(setting)[name] == ""


def test_a_wrong_result_would_be_noticed() -> None:
    right = np.linspace(-2, 2, 9, dtype=np.float32)
    checks.same(right, right)
    for wrong in (right + np.float32(1e-3), right.astype(np.float64), np.where(right == 0, np.nan, right)):
        with pytest.raises(AssertionError):
            checks.same(wrong, right)


@pytest.mark.parametrize("library", HEADERS)
def test_a_library_exports_what_its_header_declares_and_nothing_else(library: str) -> None:
    text = "".join((sdk.HOME / "include" / header).read_text() for header in HEADERS[library])
    declared = set(re.findall(r"MUSA_PUBLIC[\w\s*]*?\b(\w+)\(", text))
    exported = exports(sdk.HOME / "lib" / f"lib{library}.so")
    assert len(declared) > 10
    assert set(exported) == declared and not any(exported.values())


PROGRAM = """
#include <cstdio>
#include <mublas.h>
#include <mufft.h>
#include <murand.h>
#include <vector>
int main() {
  mublasHandle_t handle;
  float *a, one = 1, zero = 0;
  musaMalloc((void**)&a, 4 * sizeof(float));
  std::vector<float> host{1, 2, 3, 4};
  musaMemcpy(a, host.data(), 16, musaMemcpyHostToDevice);
  if (mublasCreate(&handle) != MUBLAS_STATUS_SUCCESS) return 1;
  // SDK 3 named the type of the computation as that of the matrices.
  const musaDataType type = MUSA_R_32F;
  mublasStatus_t status = mublasGemmEx(handle, MUBLAS_OP_N, MUBLAS_OP_N, 2, 2, 2, &one, a, type, 2, a, type,
                                       2, &zero, a, type, 2, type, MUBLAS_GEMM_DEFAULT);
  musaMemcpy(host.data(), a, 16, musaMemcpyDeviceToHost);
  std::printf("%s %g %g %g %g\\n", mublasGetStatusString(status), host[0], host[1], host[2], host[3]);
  mufftHandle plan;
  murandGenerator_t generator;
  return mufftPlan1d(&plan, 2, MUFFT_C2C, 1) || mublasDestroy(handle) ||
      murandCreateGenerator(&generator, MURAND_RNG_PSEUDO_DEFAULT);
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(uses_libraries LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "$ENV{MUSA_HOME}/cmake")
find_package(MUSAToolkit REQUIRED COMPONENTS mublas mufft murand)
add_executable(program main.cpp)
target_link_libraries(program PRIVATE MUSA::mublas MUSA::mufft MUSA::murand)
find_package(MUSAToolkit QUIET COMPONENTS musparse)
if(MUSAToolkit_FOUND)
  message(FATAL_ERROR "a library that is not there was found")
endif()
"""
EXPECTED = "MUBLAS_STATUS_SUCCESS 7 10 15 22\n"


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
    done = mcc("main.mu", "-lmublas", "-lmufft", "-lmurand", "-o", "program", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "program").stdout == EXPECTED
