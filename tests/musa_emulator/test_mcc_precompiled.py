# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Precompiled headers of mcc: -x musa-header and -include-pch."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import skips
from tests.musa_emulator.mcc import mcc, run

pytestmark = pytest.mark.once

HEADER = """
#pragma once
#include <cstdio>
#include <vector>
#ifndef FACTOR
#define FACTOR 2
#endif
__host__ __device__ inline int scaled(int x) { return x * FACTOR; }
"""
SOURCE = """
#include "common.h"
#include <cassert>
__global__ void fill(int* x) {
  __shared__ int first;
  assert(FACTOR > 0);
  if (threadIdx.x == 0) first = scaled(21);
  __syncthreads();
  x[threadIdx.x] = first;
}
int main() {
  int* x;
  musaMalloc((void**)&x, 16);
  fill<<<1, 4>>>(x);
  int got[4];
  musaMemcpy(got, x, 16, musaMemcpyDeviceToHost);
  std::printf("%d %d\\n", got[0], got[3]);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "common.h").write_text(HEADER)
    (tmp_path / "fill.mu").write_text(SOURCE)
    done = mcc("-x", "musa-header", "-O1", "common.h", "-o", "common.gch", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path


def test_a_source_reads_the_header_from_its_precompiled_form(folder: Path) -> None:
    done = mcc("-O1", "-include-pch", "common.gch", "fill.mu", "-o", "fill", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(folder / "fill").stdout == "42 42\n"
    text = mcc("-O1", "-include-pch", "common.gch", "-E", "fill.mu", cwd=folder).stdout
    assert "pch_preprocess" in text and "class vector" not in text


def test_the_object_depends_on_it(folder: Path) -> None:
    options = ["-O1", "-include-pch", "common.gch", "-MD", "-MF", "fill.d"]
    assert mcc(*options, "-c", "fill.mu", cwd=folder).returncode == 0
    assert "common.gch" in (folder / "fill.d").read_text()


@pytest.mark.parametrize("option", ["-DFACTOR=3", "-std=c++20", "-O3"])
def test_options_that_differ_from_the_headers_are_refused(folder: Path, option: str) -> None:
    done = mcc("-O1", option, "-include-pch", "common.gch", "-c", "fill.mu", cwd=folder)
    assert done.returncode == 1 and not (folder / "fill.o").exists()
    assert f"only here: {option};" in done.stderr and "Fix: " in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void kernel(int* x) { *x = 1; }\n",
        "__device__ inline int next(int x) { __shared__ int y; y = x; return y + 1; }\n",
        '__device__ inline void stop() { asm("trap;"); }\n',
    ],
    ids=["kernel", "shared memory", "instruction"],
)
def test_a_header_that_mcc_rewrites_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "common.h").write_text("#pragma once\n" + text)
    done = mcc("-x", "musa-header", "common.h", "-o", "common.gch", cwd=tmp_path)
    assert done.returncode == 1 and not (tmp_path / "common.gch").exists()
    assert "common.h cannot be precompiled" in done.stderr and "Fix: " in done.stderr


def test_a_failed_assertion_in_a_precompiled_header_ends_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "positive.h").write_text(
        "#pragma once\n#include <cassert>\n#include <cstdio>\n"
        "__device__ inline int positive(int x) { assert(x > 0); return x; }\n"
    )
    (tmp_path / "main.mu").write_text(
        '#include "positive.h"\n'
        "__global__ void kernel(int x) { (void)positive(x); }\n"
        "int main() {\n"
        "  kernel<<<1, 1>>>(-1);\n"
        '  std::printf("%s\\n", musaGetErrorName(musaDeviceSynchronize()));\n'
        "}\n"
    )
    done = mcc("-x", "musa-header", "positive.h", "-o", "positive.gch", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = mcc("-include-pch", "positive.gch", "main.mu", "-o", "program", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(tmp_path / "program")
    assert done.stdout == "musaErrorAssert\n" and "positive.h:4: assertion failed: x > 0" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["-x", "musa-header", "common.h"],
        ["-x", "musa-header", "common.h", "-o", "common.pch"],
        ["fill.mu", "-x", "musa-header", "common.h", "-o", "common.gch"],
        ["-include-pch", "missing.gch", "-c", "fill.mu"],
    ],
)
def test_a_command_line_that_cannot_be_carried_out(folder: Path, arguments: list[str]) -> None:
    done = mcc(*arguments, cwd=folder)
    assert done.returncode == 1 and "mcc: error: " in done.stderr


def test_another_folder_hits_in_ccache_until_the_header_changes(tmp_path, monkeypatch) -> None:
    if shutil.which("ccache") is None:
        skips.skip_permanently("ccache")

    def compile_in(name: str, header: str) -> tuple[bytes, int]:
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setenv("CCACHE_BASEDIR", str(folder))
        (folder / "common.h").write_text(header)
        (folder / "fill.mu").write_text(SOURCE)
        command = ["-x", "musa-header", "-O1", f"-I{folder}", str(folder / "common.h"), "-o", "common.gch"]
        assert mcc(*command, cwd=folder).returncode == 0
        command = ["-O1", f"-I{folder}", "-include-pch", "common.gch", "-c", str(folder / "fill.mu")]
        assert mcc(*command, cwd=folder).returncode == 0
        counts = subprocess.run(
            ["ccache", "--print-stats"], capture_output=True, text=True, check=True
        ).stdout
        missed = next(line for line in counts.splitlines() if line.startswith("cache_miss"))
        return (folder / "fill.o").read_bytes(), int(missed.split()[1])

    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CCACHE_SLOPPINESS", "pch_defines,time_macros")
    monkeypatch.setenv("CCACHE_PCH_EXTSUM", "true")
    monkeypatch.setenv("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    first, missed = compile_in("first", HEADER)
    assert missed == 2
    assert compile_in("second", HEADER) == (first, 2)
    changed, missed = compile_in("changed", HEADER.replace("return x", "return 1 + x"))
    assert changed != first and missed == 4
