# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmudnn's results are in the caller's memory, wherever the function of torch that it calls leaves them.

The functions are those of torch's CPU with the emulator's libmudnn, and torch.cuda's with musa-cuda-mudnn.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

PROGRAMS = Path(__file__).parent / "outputs"
SOURCES = Path(__file__).resolve().parents[2] / "packages" / "musa-emulator-mudnn" / "csrc"
PROGRAM = """
import ctypes
import torch

def results(device, weighted):
    generator = torch.Generator().manual_seed(0)
    x, w, b, pull = (torch.randn(shape, generator=generator) for shape in ((6, 5), (5,), (5,), (6, 5)))
    leaves = [one.to(device).requires_grad_() for one in ((x, w, b) if weighted else (x,))]
    y = torch.nn.functional.layer_norm(leaves[0], (5,), *leaves[1:])
    return [y, *torch.autograd.grad(y, leaves, pull.to(device))]

expected = [results("cpu", weighted) for weighted in (True, False)]
ctypes.CDLL(LIBRARY).replace_kernels(ON_HOST)
for weighted, one in zip((True, False), expected):
    torch.testing.assert_close([part.cpu() for part in results("musa", weighted)], one)
calls = {op: torch.musa.ops.explain(op)["candidates"] for op in
         ("aten::native_layer_norm", "aten::native_layer_norm_backward")}
for rows in calls.values():
    print(next(row["calls"] for row in rows if row["provider"] == "mudnn"))
"""


def sdk() -> str:
    """The folder of the SDK."""
    if home := os.environ.get("MUSA_HOME"):
        return home
    import musa_emulator

    return str(musa_emulator.home())


def compiled(target: Path, source: str, *arguments: str | Path) -> Path:
    import torch

    home = Path(torch.__file__).parent
    command = [
        "g++",
        "-std=c++20",
        "-O0",
        PROGRAMS / source,
        *arguments,
        "-o",
        target,
        "-isystem",
        home / "include",
    ]
    command += ["-isystem", home / "include" / "torch" / "csrc" / "api" / "include"]
    command += ["-L", home / "lib", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{home / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return target


def test_layer_norm_with_kernels_that_assign_new_tensors(tmp_path: Path) -> None:
    library = compiled(tmp_path / "kernels.so", "kernels.cpp", "-shared", "-fPIC")
    code = PROGRAM.replace("LIBRARY", repr(str(library))).replace("ON_HOST", str("musa_cuda" not in sdk()))
    assert run_code(code, TORCH_MUSA_OPS="mudnn,host-copy").split() == ["2", "2"]


def test_results_are_copied_to_the_given_memory(tmp_path: Path) -> None:
    """Functions that write there, assign, set other memory, or change strides or type."""
    backend = tmp_path / "mudnn_backend"
    backend.mkdir()
    (backend / "device.h").write_text("#pragma once\n")
    folders = (tmp_path, SOURCES, SOURCES / "include", f"{sdk()}/include")
    sources = SOURCES / "support" / "outputs.cpp", *(f"-I{folder}" for folder in folders)
    program = compiled(tmp_path / "places", "places.cpp", *sources)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
