# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds with a CUDA build of torch, as on the package index, without a CUDA toolkit.

The CUDA build is imitated: the installed torch, with the libraries that only a CUDA build has, and with a
TorchConfig.cmake that ends as that of a CUDA build without a toolkit.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from musa_runtime import config
from tests.musa_emulator.sdk import ROOT, tool

pytestmark = [pytest.mark.once, pytest.mark.slow]

NO_TOOLKIT = "Your installed Caffe2 version uses CUDA but I cannot find the CUDA libraries"
PROGRAM = """
#include <c10/core/Device.h>
#include <musa_runtime/init.h>
#include <cstdio>
int main() {
  musa_runtime::init();
  std::puts(c10::Device("musa:0").str().c_str());
}
"""
PACK = """
#include <torch/library.h>
TORCH_LIBRARY(cuda_build_test, library) { library.def("nothing() -> ()"); }
"""
OURS = """
cmake_minimum_required(VERSION 3.22)
project(ours LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(musa_runtime 0.1 CONFIG REQUIRED)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE musa::musa_runtime)
musa_add_op_pack(pack SOURCES pack.cpp)
"""
TORCHS = """
cmake_minimum_required(VERSION 3.22)
project(torchs LANGUAGES CXX)
find_package(Torch REQUIRED)
"""


@pytest.fixture(scope="module")
def cuda_torch(tmp_path_factory) -> Path:
    """The folder of a torch package as a CUDA build installs it."""
    installed = Path(importlib.util.find_spec("torch").origin).parent
    made = tmp_path_factory.mktemp("site-packages") / "torch"
    (made / "lib").mkdir(parents=True)
    for path in [*installed.iterdir(), *(installed / "lib").iterdir()]:
        if path not in (installed / "lib", installed / "share"):
            (made / path.relative_to(installed)).symlink_to(path)
    for name in ("libtorch_cuda.so", "libc10_cuda.so", "libtorch_cuda_linalg.so", "libcaffe2_nvrtc.so"):
        (made / "lib" / name).unlink(missing_ok=True)
        (made / "lib" / name).write_bytes(b"for another machine")
    shutil.copytree(installed / "share" / "cmake", made / "share" / "cmake")
    settings = made / "share" / "cmake" / "Caffe2" / "Caffe2Config.cmake"
    settings.write_text(f'{settings.read_text()}\nmessage(FATAL_ERROR "{NO_TOOLKIT}.")\n')
    return made


def configure(source: Path, build: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [tool("cmake"), "-S", source, "-B", build, "-G", "Ninja"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_find_package_torch_fails_there(cuda_torch: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(TORCHS)
    done = configure(tmp_path, tmp_path / "b", f"-DCMAKE_PREFIX_PATH={cuda_torch / 'share' / 'cmake'}")
    assert done.returncode != 0 and NO_TOOLKIT in " ".join(done.stderr.split()), done.stderr


def test_a_project_with_the_runtime_builds_and_runs_there(cuda_torch: Path, tmp_path: Path) -> None:
    for name, text in (("CMakeLists.txt", OURS), ("program.cpp", PROGRAM), ("pack.cpp", PACK)):
        (tmp_path / name).write_text(text)
    build = tmp_path / "b"
    homes = [f"-DMUSA_TORCH_HOME={cuda_torch}", f"-Dmusa_runtime_DIR={config.cmake_dir()}"]
    done = configure(tmp_path, build, *homes)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"torch: \d+\.\d+, {cuda_torch}\b", done.stdout), done.stdout
    done = subprocess.run([tool("cmake"), "--build", build], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    ran = subprocess.run([build / "program"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "musa:0\n"), ran.stderr
    library = str(build / "libpack.so")
    code = f"import torch; torch.ops.load_library({library!r}); torch.ops.cuda_build_test.nothing"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("package", ["musa-ops-mudnn", "musa-distributed", "musa-emulator-mccl"])
def test_the_packages_of_the_tree_configure_there(cuda_torch: Path, tmp_path: Path, package: str) -> None:
    places = [f"-DMUSA_TORCH_HOME={cuda_torch}", f"-DCMAKE_PREFIX_PATH={sysconfig.get_path('purelib')}"]
    done = configure(ROOT / "packages" / package, tmp_path, *places)
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(cuda_torch / "lib" / "libtorch_cpu.so") in (tmp_path / "build.ninja").read_text()
