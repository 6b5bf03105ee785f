# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmudnn without a GPU: it builds, exports the functions that the pack calls, and explains errors."""

from __future__ import annotations

import importlib.resources
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import ROOT

pytestmark = [pytest.mark.once, pytest.mark.full]  # the library takes minutes to compile

PROGRAM = """
#include <mudnn.h>
#include <mudnn_math.h>
int main() {
  musa::dnn::Handle handle(0);
  musa::dnn::Tensor tensor;
  tensor.SetAddr(reinterpret_cast<void*>(4096));
  tensor.SetNdInfo({4});
  musa::dnn::Unary op;
  op.SetMode(musa::dnn::Unary::Mode::ABS);
  if (op.Run(handle, tensor, tensor) != musa::dnn::Status::NOT_INITIALIZED) {
    return 1;
  }
  musa::dnn::Tensor other;
  other.SetAddr(reinterpret_cast<void*>(4096));
  other.SetNdInfo({5});
  return op.Run(handle, other, tensor) == musa::dnn::Status::INVALID_PARAMETER ? 0 : 2;
}
"""


@pytest.fixture(scope="module")
def mudnn(sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """libmudnn.so, in the SDK's folder."""
    built = tmp_path_factory.mktemp("mudnn")
    tools = Path(sys.executable).parent
    env = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}",
        "MUSA_CUDA_HOME": str(sdk),
    }
    for command in (
        ["cmake", "-S", ROOT / "packages" / "musa-cuda-mudnn", "-B", built, "-G", "Ninja",
         "-DCMAKE_CXX_FLAGS_RELEASE=-O0", f"-DPython_EXECUTABLE={sys.executable}",
         f"-DCMAKE_INSTALL_PREFIX={sdk.parent}"],
        ["ninja", "-C", built, "install"],
    ):  # fmt: skip
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        assert "warning:" not in done.stdout + done.stderr
    return sdk / "lib" / "libmudnn.so"


def names(library: Path, kind: str) -> set[str]:
    listed = subprocess.run(["nm", "-D", kind, library], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}


def of_mudnn(symbols: set[str]) -> set[str]:
    return {name for name in symbols if name.startswith(("_ZN4musa3dnn", "_ZNK4musa3dnn"))}


def test_every_function_that_the_pack_calls_is_exported(mudnn: Path) -> None:
    pack = Path(str(importlib.resources.files("musa_ops_mudnn") / "lib" / "libmusa_ops_mudnn.so"))
    called = of_mudnn(names(pack, "--undefined-only"))
    assert len(called) > 50 and called <= names(mudnn, "--defined-only")


def test_it_exports_the_same_functions_as_the_emulators(mudnn: Path) -> None:
    from musa_emulator import home

    emulators = names(home() / "lib" / "libmudnn.so", "--defined-only")
    assert of_mudnn(emulators) == of_mudnn(names(mudnn, "--defined-only"))


def test_beside_a_torch_without_cuda_a_call_says_the_reason(mudnn: Path, tmp_path: Path) -> None:
    import torch

    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(PROGRAM)
    folder = Path(torch.__file__).parent / "lib"
    command = ["g++", "-std=c++17", source, "-I", mudnn.parents[1] / "include", mudnn, "-o", program]
    command += [f"-Wl,-rpath,{mudnn.parent}:{folder}", f"-Wl,-rpath-link,{folder}:{mudnn.parent}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "LD_LIBRARY_PATH": f"{mudnn.parent}:{folder}"}
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for part in ("NOT_INITIALIZED", "CUDA operators are not available", "Fix:"):
        assert part in done.stderr
    assert "out and in differ in shape" in done.stderr
