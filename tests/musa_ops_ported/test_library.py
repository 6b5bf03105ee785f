# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's library loads with all symbols bound: no symbol is missing or bound at its first call."""

import subprocess
import sys

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

PROGRAM = """
import torch
with torch.musa.ops.prefer("aten::tril", "ported"):
    print(torch.ones(2, 2, device="musa").tril().cpu().tolist())
"""


def test_all_symbols_are_bound_when_it_loads():
    assert run_code(PROGRAM, LD_BIND_NOW="1").strip() == "[[1.0, 0.0], [1.0, 1.0]]"


def test_a_library_that_lacks_a_symbol_would_be_noticed(tmp_path):
    (tmp_path / "lacking.cpp").write_text("void nowhere(); void call() { nowhere(); }")
    library = tmp_path / "liblacking.so"
    subprocess.run(
        ["c++", "-shared", "-fPIC", "-Wl,-z,lazy", "lacking.cpp", "-o", library], cwd=tmp_path, check=True
    )
    load = [sys.executable, "-c", f"import os, ctypes; ctypes.CDLL({str(library)!r}, os.RTLD_LAZY)"]
    assert subprocess.run(load).returncode == 0
    refused = subprocess.run(load, env={"LD_BIND_NOW": "1"}, capture_output=True, text=True)
    assert refused.returncode != 0 and "nowhere" in refused.stderr
