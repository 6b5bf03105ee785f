# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Extensions in C++ and MUSA, and in CUDA, are built and loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from musa_port import cpp_extension
from tests.harness.parts import sample
from tests.harness.subprocesses import run_code

pytestmark = [pytest.mark.once, pytest.mark.slow]

EXTENSION = Path(__file__).parents[2] / "examples" / "cuda_extension"

OPERATOR = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/musa/MUSAContext.h>
#include <torch/library.h>

template <typename F>
__global__ void apply(const float* in, float* out, int64_t n, F f) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = f(in[i]);
}

at::Tensor cubed(const at::Tensor& x) {
  const at::Tensor in = x.contiguous();
  at::Tensor out = at::empty_like(in);
  const int64_t n = in.numel();
  if (n != 0) {
    apply<<<(n + 127) / 128, 128, 0, at::musa::getCurrentMUSAStream()>>>(
        in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), n, [] __device__(float v) { return v * v
        * v; });
  }
  return out;
}

TORCH_LIBRARY(extension_test, m) { m.def("cubed(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(extension_test, PrivateUse1, m) { m.impl("cubed", &cubed); }
"""


# A module without torch's headers, which take ten seconds to compile.
PLAIN_MODULE = """
#ifndef ADDED
#define ADDED 0
#endif
#define PASTE(a, b) a##b
#define INIT(name) PASTE(PyInit_, name)
static PyObject* number(PyObject*, PyObject*) { return PyLong_FromLong(NUMBER + ADDED); }
static PyMethodDef methods[] = {{"number", number, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ours", "", -1, methods};
PyMODINIT_FUNC INIT(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
"""


@pytest.mark.full  # two files with all of torch's headers take a minute to compile
def test_a_cuda_extension_builds_unchanged(tmp_path: Path) -> None:
    shutil.copytree(EXTENSION, tmp_path / "extension")
    before = {path: path.read_bytes() for path in (tmp_path / "extension").rglob("*.*") if path.is_file()}
    command = [sys.executable, "setup.py", "build_ext", "--build-lib", str(tmp_path / "lib")]
    done = subprocess.run(
        command, cwd=tmp_path / "extension", capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(path.read_bytes() == content for path, content in before.items())
    run_code(
        f"""
        import sys, torch
        sys.path.insert(0, {str(tmp_path / "lib")!r})
        torch.musa.init()
        import dot_extension
        assert dot_extension.with_device, "the macro of the build was not ported"
        dot = torch.ops.dot_extension.dot
        x, y = torch.randn(10, 100), torch.randn(10, 100)
        for dtype in (torch.float32, torch.float64):
            got, expected = dot(x.to("musa", dtype), y.to("musa", dtype)), dot(x.to(dtype), y.to(dtype))
            assert got.device.type == "musa"
            torch.testing.assert_close(got.cpu(), expected, rtol=1e-4, atol=1e-4)
        try:
            dot(x.to("musa"), y)
        except RuntimeError as error:
            assert "must be CUDA tensors" in str(error)
        else:
            raise AssertionError("a host tensor was taken")
        """
    )


def test_operators_of_a_mu_file(musa, tmp_path: Path) -> None:
    (tmp_path / "cubed.mu").write_text(OPERATOR)
    build = tmp_path / "build"
    build.mkdir()
    made = cpp_extension.load(
        "cubed",
        [tmp_path / "cubed.mu"],
        build_directory=str(build),
        is_python_module=False,
        extra_musa_cflags=["-O0"],
    )
    assert made is None
    x = torch.randn(5, 3).t()
    torch.testing.assert_close(torch.ops.extension_test.cubed(x.to("musa")).cpu(), x**3)
    # Nothing has changed: nothing is built again.
    before = (build / "cubed.so").stat().st_mtime_ns
    recipe = ["cubed", [tmp_path / "cubed.mu"]]
    cpp_extension._Recipe(*recipe, build, build / "cubed.so", [], [], ["-O0"], [], []).build(verbose=False)
    assert (build / "cubed.so").stat().st_mtime_ns == before


def test_a_changed_source_or_header_gives_a_new_module(musa, tmp_path: Path) -> None:
    (tmp_path / "number.h").write_text("#define NUMBER 1\n")
    (tmp_path / "ours.cpp").write_text('#include "number.h"\n#include <Python.h>\n' + PLAIN_MODULE)

    def load(**options):
        return cpp_extension.load("ours", tmp_path / "ours.cpp", build_directory=str(tmp_path), **options)

    first = load()
    assert first.number() == 1
    (tmp_path / "number.h").write_text("#define NUMBER 22\n")
    second = load()
    assert (first.number(), second.number(), sys.modules["ours"].number()) == (1, 22, 22)
    third = load(extra_cflags=["-DADDED=300"])
    assert (second.number(), third.number()) == (22, 322)
    assert load(extra_cflags=["-DADDED=300"]).number() == 322, "nothing has changed"
    assert len(list(tmp_path.glob("ours_v*.so"))) == 2


def test_a_changed_inline_source_gives_a_new_module(musa, tmp_path: Path) -> None:
    def load(number):
        text = f"#define NUMBER {number}\n#include <Python.h>\n{PLAIN_MODULE}"
        return cpp_extension.load_inline(
            "inlined", text, build_directory=str(tmp_path), no_implicit_headers=True
        )

    assert [load(number).number() for number in (1, 2)] == [1, 2]


def test_force_mcc_compiles_the_c_plus_plus_sources_with_the_options_of_both(musa, tmp_path: Path) -> None:
    text = f"""
    #ifdef __MUSACC__
    #define NUMBER MARK
    #else
    #define NUMBER 1
    #endif
    #include <Python.h>
    {PLAIN_MODULE}"""

    def load(name, *options):
        return cpp_extension.load_inline(
            name,
            text,
            build_directory=str(tmp_path),
            no_implicit_headers=True,
            extra_cflags=[*options, "-DADDED=300"],
            extra_musa_cflags=["-DMARK=5", "-std=c++17"],  # raised to C++20, which torch's headers need
        )

    assert load("plain").number() == 301
    assert load("forced", "force_mcc").number() == 305


@pytest.mark.parametrize("implicit", sample((False, True), 2), ids=("own headers", "implicit headers"))
def test_functions_of_an_inline_source_are_bound(musa, tmp_path: Path, implicit: bool) -> None:
    # test_a_cuda_extension_builds_unchanged uses the implicit header, torch/extension.h, too.
    own = ("ATen/core/Tensor.h", "torch/csrc/Exceptions.h", "torch/csrc/utils/pybind.h")
    headers = [] if implicit else [f"#include <{name}>\n" for name in own]
    text = "".join(headers) + "at::Tensor twice(const at::Tensor& x) { return x.mul(2); }"
    module = cpp_extension.load_inline(
        "bound",
        text,
        functions="twice",
        build_directory=str(tmp_path),
        no_implicit_headers=not implicit,
        extra_cflags=["-O0"],
    )
    assert module.twice(torch.ones(2, device="musa")).tolist() == [2, 2]
    assert ("torch/extension.h" in (tmp_path / "main.cpp").read_text()) == implicit


# A program without torch's headers.
STANDALONE = """
#include <cstdio>
#include <musa_runtime.h>
int main() {
  int count = 0;
  const musaError_t error = musaGetDeviceCount(&count);
  std::printf("%d %d", count, error == musaSuccess);
}
"""


def test_a_standalone_program_is_built_and_its_path_returned(tmp_path: Path) -> None:
    (tmp_path / "program.cpp").write_text(STANDALONE)
    options = {"build_directory": str(tmp_path), "is_standalone": True}
    path = cpp_extension.load("program", [str(tmp_path / "program.cpp")], **options)
    assert path == str(tmp_path / "program")
    # Its libraries are found without Python, and without LD_LIBRARY_PATH.
    environment = {"MUSA_EMULATOR_DEVICES": "3", "PATH": "/usr/bin"}
    done = subprocess.run([path], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "3 1"


@pytest.mark.parametrize("kept", [True, False])
def test_intermediate_files_are_removed_on_request(tmp_path: Path, kept: bool) -> None:
    (tmp_path / "program.cpp").write_text(STANDALONE)
    options = {"build_directory": str(tmp_path), "is_standalone": True, "keep_intermediates": kept}
    cpp_extension.load("program", [str(tmp_path / "program.cpp")], **options)
    assert bool([*tmp_path.glob("*.o"), *tmp_path.glob("build.ninja")]) is kept
    assert (tmp_path / "program").is_file() and (tmp_path / "program.cpp").is_file()


def test_a_folder_that_every_build_has_is_not_ported_when_it_is_named_again(tmp_path: Path) -> None:
    """Programs pass `include_paths()` as include_dirs; that of musa-compat has site-packages."""
    (tmp_path / "one.cu").write_text("#include <cuda_runtime.h>\ncudaStream_t stream;\n")
    options = {"build_directory": str(tmp_path), "is_python_module": False}
    cpp_extension.load(
        "one", [str(tmp_path / "one.cu")], extra_include_paths=cpp_extension.include_paths(), **options
    )
    assert sorted(path.name for path in (tmp_path / "ported").iterdir()) == ["sources", "torch"]


def test_an_error_of_compilation_names_its_place(tmp_path: Path) -> None:
    (tmp_path / "wrong.mu").write_text("__global__ void k() {\n  undefined_name();\n}\n")
    with pytest.raises(RuntimeError, match=r"wrong\.mu:2:.*undefined_name"):
        cpp_extension.load("wrong", [tmp_path / "wrong.mu"], build_directory=str(tmp_path))
    with pytest.raises(RuntimeError, match=r"there is no .*missing\.mu"):
        cpp_extension.load("missing", [tmp_path / "missing.mu"], build_directory=str(tmp_path))


def test_without_the_wheel_the_import_names_the_wheel_to_install() -> None:
    run_code(
        """
        import re, sys
        sys.modules["musa_port"] = None
        try:
            import torch_musa.utils.cpp_extension
        except ImportError as error:
            assert re.search(r"Fix: .* -m pip install .*musa-port", str(error)), error
        else:
            raise AssertionError("there is an extension builder without its wheel")
        """
    )


def test_a_home_that_cannot_be_written_names_the_variable_for_another(monkeypatch) -> None:
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", "/proc/extensions")
    with pytest.raises(RuntimeError, match=r"(?s)/proc/extensions.*\nFix: export TORCH_EXTENSIONS_DIR="):
        cpp_extension.load_inline("unwritable", "int one() { return 1; }", functions="one")
