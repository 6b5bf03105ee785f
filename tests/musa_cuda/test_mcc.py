# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""mcc's command line is translated to nvcc's."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import PACKAGE, ROOT

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def driver():
    spec = importlib.util.spec_from_file_location("musa_cuda_mcc", PACKAGE / "mcc" / "lib" / "driver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def translated(driver, *arguments: str) -> list[str]:
    return driver.translate(list(arguments), ["nvcc"])[0]


def test_a_kernel_file_is_compiled_for_the_gpu(driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSA_CUDA_ARCH", raising=False)
    command = translated(
        driver, "-x", "musa", "-std=c++20", "-O3", "--offload-arch=mp_31", "-fPIC", "-c", "a.mu", "-o", "a.o"
    )
    assert command[:6] == ["nvcc", "-x", "cu", "-arch=sm_90", "-std=c++20", "-O3"]
    assert "-Xcompiler=-fPIC" in command and command[-4:] == ["-c", "a.mu", "-o", "a.o"]


def test_the_libraries_are_linked_when_it_links(driver) -> None:
    assert "-lmusart" in translated(driver, "a.mu", "-o", "a")
    assert "-lmusart" not in translated(driver, "a.mu", "-c")


def test_several_gpus(driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSA_CUDA_ARCH", "sm_80, sm_90")
    command = translated(driver, "-c", "a.mu", "--offload-arch=mp_80")
    assert (
        "-gencode=arch=compute_80,code=sm_80" in command and "-gencode=arch=compute_90,code=sm_90" in command
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--offload-arch=mp_22", "-c", "a.mu"], "mp_22 is requested"),
        (["-x", "musa-header", "a.h", "-o", "a.gch"], "precompiles no headers"),
        (["-ftree-vectorize", "-c", "a.mu"], "option of GCC"),
        (["-c", "a.mu", "-o"], "needs an argument"),
        (["--no-such-option", "a.mu"], "not known"),
    ],
)
def test_unsupported_arguments_are_refused(
    driver, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUSA_CUDA_ARCH", raising=False)
    with pytest.raises(driver.UsageError, match=message):
        translated(driver, *arguments)


def test_a_wrong_architecture_in_the_environment_is_refused(driver) -> None:
    with pytest.raises(driver.UsageError, match=r'holds .mp_31.\. Fix: export MUSA_CUDA_ARCH="sm_90"'):
        driver.architectures([], {"MUSA_CUDA_ARCH": "mp_31"})


PROGRAM = """
#include <musa_fp16.h>
#include <musa_runtime.h>
__constant__ float table[4];
__global__ void fill(float* out, __half h) {
#ifdef __MUSA_ARCH__ // the host's pass does not define it
  static_assert(__MUSA_ARCH__ == 310);
#endif
  out[blockIdx.x * blockDim.x + threadIdx.x] = table[threadIdx.x & 3] + __half2float(h);
}
int main() {
  const float values[4] = {};
  float* out = nullptr;
  if (musaMalloc(&out, 1024) != musaSuccess ||
      musaMemcpyToSymbol(table, values, sizeof values) != musaSuccess) {
    return 3;
  }
  fill<<<2, 64>>>(out, __float2half(1.0f));
  return musaDeviceSynchronize() == musaSuccess ? 0 : 4;
}
"""


def test_a_program_is_built_and_finds_no_gpu(sdk: Path, tmp_path: Path) -> None:
    source, program = tmp_path / "program.mu", tmp_path / "program"
    source.write_text(PROGRAM)
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sdk / "bin" / "mcc", source, "-o", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    env["MUSA_VISIBLE_DEVICES"] = ""  # hides a GPU, if there is one, by the SDK's variable
    assert subprocess.run([program], env=env, check=False).returncode == 3


# Small files that use different engines; --full compiles all.
SAMPLE = ("musa-amp/csrc/scaling_kernels.mu", "musa-ops-ported/csrc/kernels/Trace.mu")


def test_kernels_of_the_packs_are_compiled(sdk: Path, tmp_path: Path, full: bool) -> None:
    from workspace import device_pass

    packages = ROOT / "packages"
    names = device_pass.kernel_files() if full else [f"packages/{name}" for name in SAMPLE]
    of_torch = device_pass.prepare()
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    failed = []
    for name in names:
        if not name.startswith(str(packages.relative_to(ROOT))):
            continue  # examples have other include folders
        command = [
            sdk / "bin" / "mcc",
            "-x",
            "musa",
            "-U__CUDA__",
            "-fPIC",
            *device_pass.options_of(name, of_torch),
        ]
        command += ["-c", ROOT / name, "-o", tmp_path / "kernel.o"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            failed.append(f"{name}:\n{done.stderr[-2000:]}")
    assert not failed, "\n".join(failed)
