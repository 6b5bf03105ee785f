# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds of foreign projects find the vendor's C++ layout: their includes and link lines compile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from musa_compat import musa_extension
from musa_runtime import config
from torch_musa import core

pytestmark = [pytest.mark.once, pytest.mark.slow]

LAYOUT = musa_extension.LAYOUT
SITE = LAYOUT.parent
TORCH = Path(torch.__file__).parent
SDK = Path(config.musa_home())
GENERATED = LAYOUT / "share" / "generated_cuda_compatible" / "include"
# The folders that every build names.
COMMON = [TORCH / "include", TORCH / "include/torch/csrc/api/include", SDK / "include"]
COMPILER = ["g++", "-std=c++20", "-Wno-attributes"]


@dataclass
class Build:
    """Includes and calls as in a public project, compiled with the include folders of its build system."""

    folders: list[Path]
    code: str
    kernels: bool = False


# The projects' own headers, and libraries that are not installed, are left out.
BUILDS = {
    # CMake adds site-packages, which it derives from Python, and a folder `include`.
    "FlagGems": Build(
        [SITE, LAYOUT / "include"],
        """
        #include <c10/core/Stream.h>
        #include <musa_runtime.h>
        #include "torch_musa/csrc/core/MUSAStream.h"
        musaStream_t raw(c10::DeviceIndex index) { return c10::musa::getCurrentMUSAStream(index).stream(); }
        c10::DeviceIndex current() { return c10::musa::current_device(); }
        """,
    ),
    # torch.utils.cpp_extension.load with folders below torch_musa.__file__.
    "torchada, extensions of its own": Build(
        [SITE, LAYOUT / "csrc"],
        """
        #include "torch_musa/csrc/core/MUSAStream.h"
        #include "aten/musa/MUSAGraph.h"
        void replay(at::musa::MUSAGraph& graph) { graph.replay(); }
        """,
    ),
    "torchada, memory pools": Build(
        [SITE, GENERATED],
        """
        #include "torch_musa/csrc/core/Device.h"
        #include "torch_musa/csrc/aten/musa/MUSAContext.h"
        #include "torch_musa/csrc/core/MUSAPluggableAllocator.h"
        void begin(c10::DeviceIndex device, c10::musa::MempoolId_t pool) {
          const auto every = [](musaStream_t) { return true; };
          c10::musa::MUSACachingAllocator::beginAllocateToPool(device, pool, every);
          c10::musa::MUSACachingAllocator::endAllocateToPool(device, pool);
          c10::musa::MUSACachingAllocator::releasePool(device, pool);
        }
        """,
    ),
    # xmake: site-packages, include, and the generated headers.
    "InfiniCore": Build(
        [SITE, LAYOUT / "include", GENERATED, GENERATED.parent],
        """
        #include <c10/core/StreamGuard.h>
        #include <c10/musa/MUSAMacros.h>
        #include <c10/musa/MUSAStream.h>
        #include <musa_runtime_api.h>
        c10::musa::MUSAStream wrapped(void* stream, c10::DeviceIndex device) {
          return c10::musa::getStreamFromExternal(static_cast<musaStream_t>(stream), device);
        }
        """,
    ),
    "FlagCX": Build(
        [SITE, GENERATED],
        """
        #include <c10/core/impl/InlineStreamGuard.h>
        #include <musa_runtime.h>
        #include <torch_musa/csrc/core/GuardImpl.h>
        #include <torch_musa/csrc/core/MUSAEvent.h>
        #include <torch_musa/csrc/core/MUSAGuard.h>
        #include <torch_musa/csrc/core/MUSAStream.h>
        struct Guard {
          Guard(musaStream_t stream, int device) : guard(at::musa::getStreamFromExternal(stream, device)) {}
          void reset(musaStream_t stream, int device) {
            guard.reset_stream(at::musa::getStreamFromExternal(stream, device));
          }
          c10::musa::MUSAStreamGuard guard;
        };
        void record(at::musa::MUSAEvent& event) { event.record(c10::musa::getCurrentMUSAStream()); }
        c10::musa::impl::MUSAGuardImpl guard_impl;
        """,
    ),
    "MT-DeepEP": Build(
        [SITE, GENERATED],
        """
        #include "torch_musa/csrc/aten/musa/MUSAContext.h"
        #include <ATen/musa/MUSADataType.h>
        #include <torch/types.h>
        c10::Event recorded(const at::musa::MUSAStream& stream) {
          c10::Event event(torch::kMUSA);
          event.record(stream);
          return event;
        }
        at::musa::MUSAStream communication() { return at::musa::getStreamFromPool(true); }
        torch::TensorOptions options() { return torch::TensorOptions().device(at::kMUSA); }
        musaDataType type = at::musa::ScalarTypeToMusaDataType(at::kFloat);
        """,
    ),
    "MT-DeepEP, kernels": Build(
        [],
        """
        #include "torch_musa/csrc/aten/musa/MUSAAtomic.muh"
        #include <ATen/musa/MUSA_PORT_TensorMethods.muh>
        __global__ void add(float* to) { gpuAtomicAdd(to, 1.0f); }
        """,
        kernels=True,
    ),
    "pytorch_sparse": Build(
        [],
        """
        #include "torch_musa/csrc/aten/utils/Utils.h"
        #include <ATen/core/Tensor.h>
        #include <ATen/musa/MUSAContext.h>
        void check(const at::Tensor& x) {
          TORCH_CHECK(at::musa::is_musa(x), "must be a tensor on musa");
          c10::musa::MaybeSetDevice(x.get_device());
        }
        __global__ void shuffle(int* x) { *x = __shfl_sync(0xffffffff, *x, 0); }
        """,
        kernels=True,
    ),
    "vllm_musa": Build(
        [],
        """
        #include "torch_musa/csrc/aten/musa/MUSAContext.h"
        #include "torch_musa/csrc/core/MUSAException.h"
        #include "torch_musa/csrc/core/MUSAGuard.h"
        #include <THC/THCAtomics.muh>
        __global__ void zero(float* x) { x[threadIdx.x] = 0; }
        void run(float* x, c10::Device device) {
          const at::musa::OptionalMUSAGuard guard(device);
          zero<<<1, 32, 0, at::musa::getCurrentMUSAStream()>>>(x);
          C10_MUSA_KERNEL_LAUNCH_CHECK();
        }
        """,
        kernels=True,
    ),
    "sgl-kernel": Build(
        [],
        """
        #include "torch_musa/share/generated_cuda_compatible/include/ATen/musa/Atomic.muh"
        #include "torch_musa/csrc/aten/musa/MUSADtype.muh"
        #include "torch_musa/csrc/aten/musa/CUDAGeneratorImpl.h"
        #include "torch_musa/csrc/aten/musa/UnpackRaw.muh"
        #include "torch_musa/csrc/aten/musa/Exceptions.h"
        __global__ void add(float* to) { gpuAtomicAdd(to, 1.0f); }
        """,
        kernels=True,
    ),
    "mmcv": Build(
        [],
        """
        #include <ATen/ATen.h>
        #include "torch_musa/csrc/aten/musa/MUSAContext.h"
        #include "torch_musa/csrc/core/MUSAGuard.h"
        #include "torch_musa/share/generated_cuda_compatible/aten/src/THC/THCAtomics.muh"
        #include "torch_musa/share/generated_cuda_compatible/include/ATen/musa/MUSAApplyUtils.muh"
        #include <ATen/musa/MUSA_PORT_ApplyUtils.muh>
        __global__ void add(float* to) { gpuAtomicAdd(to, 1.0f); }
        """,
        kernels=True,
    ),
}
# These need a few headers of torch, and show each set of include folders.
QUICK = {"FlagGems", "torchada, extensions of its own", "InfiniCore", "sgl-kernel"}


def run(*command: object, folder: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def compile_host(build: Build, folder: Path) -> None:
    source = folder / "source.cpp"
    source.write_text(build.code)
    includes = [f"-I{path}" for path in [*build.folders, *COMMON]]
    run(*COMPILER, "-fsyntax-only", *includes, source)


def compile_kernels(build: Build, folder: Path) -> None:
    """Builds with MUSAExtension, as these projects do, in a setup.py without further include folders."""
    (folder / "source.mu").write_text(build.code)
    (folder / "setup.py").write_text(
        "from setuptools import setup\n"
        "from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension\n"
        "extension = MUSAExtension('foreign', ['source.mu'], libraries=['musa_python'])\n"
        "setup(name='foreign', ext_modules=[extension], cmdclass={'build_ext': BuildExtension})\n"
    )
    command = (sys.executable, "setup.py", "build_ext", "--build-lib", "lib")
    run(*command, folder=folder, TORCH_MUSA_ARCH_LIST="31")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.full) for name in BUILDS]
)
def test_includes_of_a_foreign_project_compile(name: str, tmp_path: Path) -> None:
    build = BUILDS[name]
    (compile_kernels if build.kernels else compile_host)(build, tmp_path)


def test_a_header_that_the_layout_lacks_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="No such file"):
        compile_host(Build([SITE], '#include "torch_musa/csrc/core/Imaginary.h"'), tmp_path)


PROGRAM = """
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAFunctions.h>
#include <cstdio>
int main() {
  void* memory = c10::musa::MUSACachingAllocator::raw_alloc(512);
  std::printf("devices %d memory %d\\n", c10::musa::device_count(), memory != nullptr);
  c10::musa::MUSACachingAllocator::raw_delete(memory);
}
"""
COUNT = "devices 2 memory 1\n"


def test_a_program_links_the_vendor_libraries_and_runs(tmp_path: Path) -> None:
    """The link line of InfiniCore, FlagGems and xLLM, with a run path to torch_musa/lib."""
    (tmp_path / "main.cpp").write_text(PROGRAM)
    folders = [LAYOUT / "lib", TORCH / "lib", SDK / "lib"]
    run(
        *COMPILER,
        *(f"-I{path}" for path in [SITE, LAYOUT / "include", *COMMON]),
        tmp_path / "main.cpp",
        *(f"-L{path}" for path in folders),
        *[
            "-lmusa_python",
            "-lmusa_kernels",
            "-Wl,--no-as-needed",
            "-ltorch_cpu",
            "-lc10",
            "-lmusart",
            "-lmusa",
        ],
        f"-Wl,-rpath,{':'.join(map(str, folders))}",
        *["-o", tmp_path / "main"],
    )
    assert run(tmp_path / "main", MUSA_EMULATOR_DEVICES="2") == COUNT
    needed = run("readelf", "-d", tmp_path / "main")
    # Only the vendor's name is linked; its filter finds the runtime.
    assert "[libmusa_python.so]" in needed and "[libmusa_runtime.so]" not in needed
    preload = str(LAYOUT / "lib" / "libmusa_python.so")
    assert run(tmp_path / "main", MUSA_EMULATOR_DEVICES="2", LD_PRELOAD=preload) == COUNT


def test_the_filter_library_has_the_symbols_of_the_runtime_and_one_copy_is_loaded() -> None:
    def exported(path: Path) -> set[str]:
        lines = run("nm", "-D", "--defined-only", "--format=posix", path).splitlines()
        return {line.split()[0] for line in lines if line.split()[1] in "TWBDRV"}

    runtime = Path(config.library_dir()) / "libmusa_runtime.so"
    missing = exported(runtime) - exported(LAYOUT / "lib" / "libmusa_python.so")
    assert missing <= {"__bss_start", "_edata", "_end", "_fini", "_init"}
    code = (
        "import ctypes, torch, torch_musa\n"
        f"library = ctypes.CDLL({str(LAYOUT / 'lib' / 'libmusa_python.so')!r})\n"
        "torch.empty(1, device='musa:1')\n"
        "torch.musa.set_device(1)\n"
        "print(library._ZN3c104musa14current_deviceEv())\n"
        "maps = open('/proc/self/maps').read().splitlines()\n"
        "print(len({line.split()[-1] for line in maps if 'libmusa_runtime' in line}))\n"
    )
    assert run(sys.executable, "-c", code, MUSA_EMULATOR_DEVICES="2") == "1\n1\n"


CMAKE = """
cmake_minimum_required(VERSION 3.10 FATAL_ERROR)
project(app CXX C)
find_package(TorchMusa REQUIRED)
add_executable(app main.cpp)
set_target_properties(app PROPERTIES CXX_STANDARD 17 LINK_FLAGS "-Wl,--no-as-needed")
target_link_libraries(app ${TorchMusa_LIBRARIES})
message("include ${TorchMusa_INCLUDE_DIRS}")
"""


def build_with_cmake(folder: Path, source: str) -> Path:
    (folder / "main.cpp").write_text(source)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    output = run(
        *["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja"],
        f"-DCMAKE_PREFIX_PATH={core.cmake_prefix_path}",
    )
    assert str(SITE) in output
    run("cmake", "--build", folder / "build")
    return folder / "build" / "app"


def test_a_program_of_the_vendor_finds_the_cmake_package(tmp_path: Path) -> None:
    header = '#include "torch_musa/csrc/core/Device.h"\n'
    assert run(build_with_cmake(tmp_path, header + PROGRAM), MUSA_EMULATOR_DEVICES="2") == COUNT


def test_the_paths_that_programs_derive_from_the_prefix() -> None:
    prefix = Path(core.cmake_prefix_path)
    assert (prefix / "TorchMusa" / "TorchMusaConfig.cmake").is_file()
    assert (prefix / ".." / ".." / "lib" / "libmusa_python.so").resolve().is_file()


# As the C++ sample of the vendor's manual: the model is saved on musa, and the program names the device
# itself.
DEPLOYMENT = """
#include <torch/script.h>
#include <torch_musa/csrc/core/Device.h>
#include <iostream>

int main(int argc, const char* argv[]) {
  c10::register_privateuse1_backend("musa");
  torch::jit::script::Module module = torch::jit::load(argv[1]);
  std::vector<torch::jit::IValue> inputs{torch::ones({2, 8}).to("musa")};
  at::Tensor output = module.forward(inputs).toTensor();
  std::cout << output.device() << " " << output.sum().item<float>() << std::endl;
}
"""


@pytest.mark.full  # torch/script.h takes half a minute to compile
def test_a_torchscript_module_runs_in_a_program_of_the_vendor(musa, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval().to("musa")
    example = torch.ones(2, 8, device="musa")
    with torch.no_grad():
        torch.jit.trace(model, example).save(str(tmp_path / "model.pt"))
        expected = model(example).sum().item()
    device, total = run(build_with_cmake(tmp_path, DEPLOYMENT), tmp_path / "model.pt").split()
    assert device == "musa:0" and float(total) == pytest.approx(expected, rel=1e-4)


def test_no_python_file_is_in_the_layout() -> None:
    # The folder belongs to torch-musa; a Python file of musa-compat in it would change the package.
    ours = [path for path in LAYOUT.rglob("*") if re.fullmatch(r".*\.(py|pyi|pth)", path.name)]
    parts = ("csrc", "include", "lib", "share")
    assert [path for path in ours if path.relative_to(LAYOUT).parts[0] in parts] == []
