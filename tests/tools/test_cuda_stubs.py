# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A library that is linked to CUDA's loads with the stand-ins, and calls of CUDA end the process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import WorkspaceError, cuda_stubs

pytestmark = pytest.mark.once

# As in torch: a library with versions, one without, a function whose address is taken, and operator delete.
RUNTIME = "int cudaGetDeviceCount(int* n) { *n = 8; return 0; } int cudaMalloc(void** p) { return 0; }"
BLAS = "int cublasCreate(void** p) { return 0; }"
USER = """
int cudaGetDeviceCount(int*); int cudaMalloc(void**); int cublasCreate(void**); void _ZdlPv(void*);
int (*table[])(void**) = {cudaMalloc, cublasCreate};
int count(int* n) { return cudaGetDeviceCount(n); }
int allocate(void) { void* p; return table[0](&p); }
int create(void) { void* p; return table[1](&p); }
void release(void* p) { _ZdlPv(p); }
"""


def compile_library(path: Path, source: str, *options: str) -> None:
    command = ["gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-x", "none", "-o", str(path)]
    command.append(f"-Wl,-soname,{path.name}")
    done = subprocess.run([*command, *options], input=source, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def folder(tmp_path) -> Path:
    """A library linked to two of CUDA's that do not exist."""
    script = tmp_path / "runtime.map"
    script.write_text("libcudart.so.99 { global: *; };")
    compile_library(tmp_path / "libcudart.so.99", RUNTIME, f"-Wl,--version-script={script}")
    compile_library(tmp_path / "libcublas.so.99", BLAS)
    libraries = [str(tmp_path / name) for name in ("libcudart.so.99", "libcublas.so.99")]
    search = "-Wl,-rpath,$ORIGIN"
    compile_library(tmp_path / "libuser.so", USER, "-Wl,--no-as-needed", *libraries, "-lstdc++", search)
    for library in libraries:
        Path(library).unlink()
    return tmp_path


def call(folder: Path, expression: str) -> subprocess.CompletedProcess[str]:
    code = f"import ctypes; n = ctypes.c_int(7); user = ctypes.CDLL({str(folder / 'libuser.so')!r}); "
    return subprocess.run([sys.executable, "-c", code + expression], capture_output=True, text=True)


def test_the_libraries_are_created_and_found(folder):
    with pytest.raises(OSError, match=r"lib(cudart|cublas)\.so\.99"):
        ctypes.CDLL(str(folder / "libuser.so"))
    assert cuda_stubs.install(folder) == ["libcublas.so.99", "libcudart.so.99"]
    assert cuda_stubs.missing_libraries(folder) == set()
    assert cuda_stubs.install(folder) == []
    assert call(folder, "").returncode == 0


def test_there_is_no_device(folder):
    cuda_stubs.install(folder)
    done = call(folder, "print(user.count(ctypes.byref(n)), n.value)")
    assert done.stdout == "100 0\n", done.stderr


@pytest.mark.parametrize(("function", "name"), [("allocate", "cudaMalloc"), ("create", "cublasCreate")])
def test_any_other_call_ends_the_process_with_its_name(folder, function, name):
    cuda_stubs.install(folder)
    done = call(folder, f"user.{function}(); print('computed')")
    assert done.returncode != 0 and f"{name} was called in a stand-in" in done.stderr
    assert "computed" not in done.stdout


def test_symbols_of_the_system_are_not_replaced(folder):
    cuda_stubs.install(folder)
    done = call(folder, "user.release(None); print('released')")
    assert done.stdout == "released\n", done.stderr


def test_a_missing_library_that_is_not_cudas_is_refused(tmp_path):
    compile_library(tmp_path / "libother.so.1", BLAS)
    compile_library(tmp_path / "libuser.so", "int x;", "-Wl,--no-as-needed", str(tmp_path / "libother.so.1"))
    (tmp_path / "libother.so.1").unlink()
    with pytest.raises(WorkspaceError, match=r"libother\.so\.1, which is not on this machine"):
        cuda_stubs.install(tmp_path)
