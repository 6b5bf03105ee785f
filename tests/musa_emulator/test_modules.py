# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of the driver API: loads and launches the output of `mcc -fatbin`, and refuses other files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.harness import builds
from tests.musa_emulator.mcc import mcc, run

pytestmark = pytest.mark.once

MODULE = """
struct Pair { double scale; int offset; };
__device__ int total = 5;
extern "C" __global__ void scale(const float* x, float* y, char add, Pair pair) {
  y[threadIdx.x] = x[threadIdx.x] * pair.scale + pair.offset + add + total;
}
template <class T> __global__ void fill(T* x, T value) { x[threadIdx.x] = value; }
template __global__ void fill<int>(int*, int);
extern "C" void no_kernel() {}
"""
PROGRAM = r"""
#include <musa.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
static void ok(MUresult result, const char* call) {
  const char* name;
  if (result != MUSA_SUCCESS) {
    muGetErrorName(result, &name);
    std::printf("%s: %s\n", call, name);
    std::exit(1);
  }
}
static void fails(bool as_expected, const char* call) {
  if (!as_expected) {
    std::printf("not refused: %s\n", call);
    std::exit(1);
  }
}
#define OK(call) ok(call, #call)
#define FAILS(call, expected) fails((call) == (expected), #call)
struct Pair { double scale; int offset; };
int main(int, char** arguments) {
  MUcontext context, current;
  MUmodule module;
  MUfunction scale, fill;
  MUstream stream;
  MUdevice device;
  OK(muInit(0));
  OK(muCtxCreate(&context, 0, 1));
  OK(muCtxGetDevice(&device));
  if (device != 1) return 2;
  OK(muCtxPopCurrent(&current));
  if (current != context) return 3;
  OK(muCtxGetDevice(&device));
  if (device != 0) return 4;
  if (std::strcmp(arguments[2], "file") == 0) {
    OK(muModuleLoad(&module, arguments[1]));
  } else {
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    OK(muModuleLoadData(&module, image.data()));
  }
  OK(muModuleGetFunction(&scale, module, "scale"));
  OK(muModuleGetFunction(&fill, module, "_Z4fillIiEvPT_S0_"));
  FAILS(muModuleGetFunction(&fill, module, "absent"), MUSA_ERROR_NOT_FOUND);
  FAILS(muModuleGetFunction(&scale, module, "no_kernel"), MUSA_ERROR_NOT_FOUND);
  OK(muModuleGetFunction(&fill, module, "_Z4fillIiEvPT_S0_"));
  OK(muStreamCreate(&stream, MU_STREAM_NON_BLOCKING));
  MUdeviceptr x, y, total;
  size_t bytes = 0;
  OK(muMemAlloc(&x, 16));
  OK(muMemAlloc(&y, 16));
  const float host[4] = {1, 2, 3, 4};
  float got[4];
  OK(muMemcpyHtoD(x, host, 16));
  char add = 1;
  Pair pair{10, 100};
  void* parameters[] = {&x, &y, &add, &pair};
  OK(muLaunchKernel(scale, 1, 1, 1, 4, 1, 1, 0, stream, parameters, nullptr));
  OK(muStreamSynchronize(stream));
  OK(muMemcpyDtoH(got, y, 16));
  std::printf("%g %g\n", got[0], got[3]);
  OK(muModuleGetGlobal(&total, &bytes, module, "total"));
  FAILS(muModuleGetGlobal(&total, &bytes, module, "scale"), MUSA_ERROR_NOT_FOUND);
  OK(muModuleGetGlobal(&total, &bytes, module, "total"));
  const int seven = 7;
  OK(muMemcpyHtoD(total, &seven, bytes));
  struct { MUdeviceptr x, y; char add; Pair pair; } packed{x, y, 2, {1, 0}};
  size_t size = sizeof packed;
  void* extra[] = {
      MU_LAUNCH_PARAM_BUFFER_POINTER, &packed, MU_LAUNCH_PARAM_BUFFER_SIZE, &size, MU_LAUNCH_PARAM_END};
  MUlaunchConfig configuration{1, 1, 1, 4, 1, 1, 0, stream, nullptr, 0};
  OK(muLaunchKernelEx(&configuration, scale, nullptr, extra));
  OK(muStreamSynchronize(stream));
  OK(muMemcpyDtoH(got, y, 16));
  std::printf("%g %g\n", got[0], got[3]);
  FAILS(muLaunchKernel(scale, 1, 1, 1, 4096, 1, 1, 0, stream, parameters, nullptr), MUSA_ERROR_INVALID_VALUE);
  FAILS(muLaunchKernel(scale, 1, 1, 1, 4, 1, 1, 0, stream, parameters, extra), MUSA_ERROR_INVALID_VALUE);
  size = 8;
  FAILS(muLaunchKernel(scale, 1, 1, 1, 4, 1, 1, 0, stream, nullptr, extra), MUSA_ERROR_INVALID_VALUE);
  const MUfunction none = (MUfunction)&size;
  FAILS(muLaunchKernel(none, 1, 1, 1, 4, 1, 1, 0, stream, parameters, nullptr), MUSA_ERROR_INVALID_HANDLE);
  int value = 42;
  void* of_fill[] = {&y, &value};
  MUlaunchAttribute cooperative{};
  cooperative.id = MU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative.value.cooperative = 1;
  configuration.attrs = &cooperative, configuration.numAttrs = 1;
  OK(muLaunchKernelEx(&configuration, fill, of_fill, nullptr));
  OK(muStreamSynchronize(stream));
  int ints[4];
  OK(muMemcpyDtoH(ints, y, 16));
  int blocks = 0, threads = 0;
  OK(muOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 256, 0));
  OK(muFuncGetAttribute(&threads, MU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, fill));
  const MUfunction_attribute shared = MU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  OK(muFuncSetAttribute(fill, shared, 100000));
  FAILS(muFuncSetAttribute(fill, shared, 100000000), MUSA_ERROR_INVALID_VALUE);
  std::printf("%d %d %d\n", ints[3], blocks, threads);
  // A box out of pitched memory.
  MUdeviceptr pitched;
  size_t pitch;
  OK(muMemAllocPitch(&pitched, &pitch, 12, 3, 4));
  int rows[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, corner[4] = {};
  MUSA_MEMCPY2D in{};
  in.srcMemoryType = MU_MEMORYTYPE_HOST, in.srcHost = rows, in.srcPitch = 12;
  in.dstMemoryType = MU_MEMORYTYPE_DEVICE, in.dstDevice = pitched, in.dstPitch = pitch;
  in.WidthInBytes = 12, in.Height = 3;
  OK(muMemcpy2D(&in));
  MUSA_MEMCPY3D out{};
  out.srcMemoryType = MU_MEMORYTYPE_DEVICE, out.srcDevice = pitched, out.srcPitch = pitch, out.srcHeight = 3;
  out.srcXInBytes = 4, out.srcY = 1;
  out.dstMemoryType = MU_MEMORYTYPE_HOST, out.dstHost = corner, out.dstPitch = 8, out.dstHeight = 2;
  out.WidthInBytes = 8, out.Height = 2, out.Depth = 1;
  OK(muMemcpy3D(&out));
  std::printf("%d %d %d %d\n", corner[0], corner[1], corner[2], corner[3]);
  out.dstMemoryType = MU_MEMORYTYPE_ARRAY;
  FAILS(muMemcpy3D(&out), MUSA_ERROR_NOT_SUPPORTED);
  out.dstMemoryType = MU_MEMORYTYPE_HOST, out.dstPitch = 4;
  FAILS(muMemcpy3D(&out), MUSA_ERROR_INVALID_VALUE);
  OK(muModuleUnload(module));
  FAILS(muModuleUnload(module), MUSA_ERROR_INVALID_HANDLE);
  FAILS(muModuleGetFunction(&fill, module, "scale"), MUSA_ERROR_INVALID_HANDLE);
  FAILS(muModuleLoad(&module, "absent.fatbin"), MUSA_ERROR_FILE_NOT_FOUND);
  FAILS(muModuleLoad(&module, arguments[3]), MUSA_ERROR_INVALID_IMAGE);
  FAILS(muModuleLoadData(&module, "no image at all, but text"), MUSA_ERROR_INVALID_IMAGE);
  OK(muCtxDestroy(context));
}
"""
EXPECTED = "116 146\n10 13\n42 12 1024\n5 6 8 9\n"


@cache
def built() -> tuple[Path, Path, Path]:
    """The program, the module, and a file that is not a module."""

    def build(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "module.mu").write_text(MODULE)
        (folder / "program.cpp").write_text(PROGRAM)
        (folder / "text.fatbin").write_text("no module")
        done = mcc("-fatbin", "-O1", "module.mu", "-o", "module.fatbin", cwd=folder)
        assert (done.returncode, done.stderr) == (0, "")
        done = mcc("program.cpp", "-o", "program", cwd=folder)
        assert done.returncode == 0, done.stderr

    key = builds.digest([], builds.sdk_digest(), MODULE, PROGRAM)
    folder = builds.shared("emulator_modules", key, build)
    return folder / "program", folder / "module.fatbin", folder / "text.fatbin"


@pytest.mark.parametrize("source", ["file", "memory"])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"MUSA_EMULATOR_MODE": "async"},
        {"MUSA_EMULATOR_MODE": "lazy", "MUSA_EMULATOR_MEMORY": "strict"},
    ],
    ids=["inline", "async", "lazy-strict"],
)
def test_a_module_is_loaded_and_launched(source: str, settings: dict[str, str]) -> None:
    program, module, text = built()
    done = run(program, str(module), source, str(text), **settings)
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stdout + done.stderr
    assert "cannot load the module" in done.stderr and "Fix: " in done.stderr


@pytest.mark.parametrize("flag", ["-fatbin", "--cuda-device-only", "--musa-device-only"])
def test_each_spelling_of_the_option_writes_a_module(flag: str, tmp_path: Path) -> None:
    (tmp_path / "module.mu").write_text(MODULE)
    done = mcc("-x", "musa", flag, "-c", "module.mu", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "module.fatbin").read_bytes()[:4] == b"\x7fELF"
