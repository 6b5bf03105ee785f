# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`mcc --two-pass` refuses the code that a two-pass compiler refuses; mcc alone, if one pass detects it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.musa_emulator import sdk
from tests.musa_emulator.mcc import MCC, mcc

sys.path.insert(0, str(sdk.HOME / "lib" / "mcc"))
import refusals
import two_pass

pytestmark = pytest.mark.once

FILES = Path(__file__).with_name("two_pass")


@dataclass(frozen=True)
class Refusal:
    """A known-bad file, the passes that refuse it, clang's error, and mcc's error if one pass detects it."""

    file: str
    passes: tuple[str, ...]
    clang: str
    one_pass: str | None = None


BOTH = ("device", "host")
TABLE = [
    Refusal("alignas_after_shared", BOTH, "an attribute list cannot appear here", "alignas after __shared__"),
    Refusal("container_in_kernel", ("device",), "'std::vector<int>'"),
    Refusal("device_function_on_host", ("host",), "'answer'", "calls the __device__ function answer"),
    Refusal("device_lambda_on_host", ("host",), "'operator()'", "plus_one, a __device__ lambda"),
    Refusal("exception_in_kernel", BOTH, "cannot use 'throw'", "throw in the kernel kernel"),
    Refusal("host_function_in_device_function", ("device",), "'doubled'", "calls the host function doubled"),
    Refusal("host_function_in_kernel", ("device",), "'log_value'", "calls the host function log_value"),
    Refusal("host_method_in_kernel", ("device",), "'operator float'"),
    Refusal("host_variable_in_kernel", ("device",), "__host__ variable 'table'"),
    Refusal("kernel_with_result", BOTH, "must have void return type", "must return void"),
    Refusal("missing_device_function", BOTH, "'__reduce_add_sync'", "__reduce_add_sync"),
    Refusal("missing_sdk_enumerator", BOTH, "'musaErrorCollectiveTimeout'", "musaErrorCollectiveTimeout"),
    Refusal("missing_sdk_function", BOTH, "'musaMemDiscardBatchAsync'", "musaMemDiscardBatchAsync"),
    Refusal("shared_with_initializer", BOTH, "initialization is not supported", "cannot be initialized"),
    Refusal("undeclared_on_device", ("device",), "'undeclared'", "undeclared"),
    Refusal("undeclared_on_host", ("host",), "'undeclared'"),
]


@pytest.fixture(scope="module")
def clang() -> None:
    try:
        two_pass.find_clang()
    except two_pass.ClangMissingError as error:
        pytest.skip(f"no clang for the passes: {error}")


def test_the_table_names_every_bad_file() -> None:
    assert {refusal.file for refusal in TABLE} == {path.stem for path in FILES.glob("*.mu")} - {"accepted"}


@pytest.mark.parametrize("refusal", TABLE, ids=lambda refusal: refusal.file)
def test_two_passes_refuse(clang: None, refusal: Refusal) -> None:
    done = mcc("--two-pass", "-fsyntax-only", FILES / f"{refusal.file}.mu")
    assert done.returncode == 1
    assert refusal.clang in done.stderr
    for name in refusal.passes:
        assert f"refused by the {name} pass" in done.stderr


@pytest.mark.parametrize(
    "refusal", [case for case in TABLE if case.one_pass], ids=lambda refusal: refusal.file
)
def test_one_pass_refuses_what_it_can_detect(tmp_path: Path, refusal: Refusal) -> None:
    done = mcc("-c", FILES / f"{refusal.file}.mu", "-o", tmp_path / "x.o")
    assert done.returncode == 1
    assert refusal.one_pass in done.stderr
    assert f"{refusal.file}.mu:" in done.stderr, "the error names no line"
    assert not (tmp_path / "x.o").exists()


@pytest.mark.parametrize("refusal", [case for case in TABLE if not case.one_pass], ids=lambda case: case.file)
def test_one_pass_accepts_what_it_cannot_detect(tmp_path: Path, refusal: Refusal) -> None:
    """If mcc alone refuses one of these files too, its row in the table needs the error."""
    assert mcc("-c", FILES / f"{refusal.file}.mu", "-o", tmp_path / "x.o").returncode == 0


@pytest.mark.parametrize("option", [(), ("--two-pass",)])
def test_a_good_file_passes_and_compiles(clang: None, tmp_path: Path, option: tuple[str, ...]) -> None:
    done = mcc(*option, "-std=c++20", "-c", FILES / "accepted.mu", "-o", tmp_path / "x.o")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "x.o").is_file()


def test_the_architecture_macro_is_defined_only_in_the_device_pass(clang: None, tmp_path: Path) -> None:
    source = tmp_path / "arch.mu"
    source.write_text(
        "#ifdef __MUSA_ARCH__\nstatic_assert(__MUSA_ARCH__ == 220);\n#endif\n__global__ void kernel() {}\n"
    )
    assert mcc("--two-pass", "-fsyntax-only", "--offload-arch=mp_22", source).returncode == 0
    done = mcc("--two-pass", "-fsyntax-only", "--offload-arch=mp_31", source)
    assert done.returncode == 1
    assert "refused by the device pass" in done.stderr and "refused by the host pass" not in done.stderr


def test_only_language_options_are_passed_to_clang() -> None:
    given = [
        "-O3",
        "-DNAME=1",
        "-I",
        "a",
        "-isystemb",
        "-idirafter",
        "c",
        "-fvect-cost-model=dynamic",
        "-Wall",
    ]
    given += ["-std=c++20", "--param=ggc-min-heapsize=1", "-include", "first.h", "-MD", "-MF", "x.d", "-fPIC"]
    kept = ["-DNAME=1", "-I", "a", "-isystemb", "-idirafter", "c", "-std=c++20", "-include", "first.h"]
    assert two_pass.language_options(given) == kept


def test_without_clang_the_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(two_pass.ClangMissingError, match="there is none on PATH") as caught:
        two_pass.find_clang({"PATH": str(tmp_path)})
    assert "Fix: apt-get install --yes clang-16" in str(caught.value)


@pytest.mark.parametrize(("version", "told"), [("14.0.6", "is clang 14"), (None, "not a working clang")])
def test_a_clang_that_is_too_old_or_no_clang_is_named(tmp_path: Path, version: str | None, told: str) -> None:
    other = tmp_path / "clang++"
    other.write_text(f"#!/bin/sh\necho {'clang version ' + version if version else 'gcc 12'}\n")
    other.chmod(other.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "MUSA_EMULATOR_CLANG": str(other)}
    command = [str(MCC), "--two-pass", "-fsyntax-only", str(FILES / "accepted.mu")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert told in done.stderr and "Fix:" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "int f(int);\n__device__ int f(long);\n__global__ void k(int* x) { x[0] = f(1L); }",
        "constexpr int f(int x) { return x; }\n__global__ void k(int* x) { x[0] = f(1); }",
        "HD int f(int x) { return x; }\n__global__ void k(int* x) { x[0] = f(1); }",
        "template <class T> T f(T);\n__global__ void k(int* x) { x[0] = f(1); }",
        "int f(int);\n__global__ void k(int* x) {\n#ifndef __MUSA_ARCH__\n  f(1);\n#endif\n}",
        "int f(int);\n__global__ void k(int* x) { x[0] = other::f(1); x[1] = y.f(2); }",
        "int f(int);\n__global__ void k(int* x) { auto f = [](int y) { return y; }; x[0] = f(1); }",
        'int f(int);\n__global__ void k(int* x) { /* f(1) */ print("f(1); throw"); }',
        "__device__ int f();\nvoid host() { run([] __device__() { return f(); }); }",
        "__host__ __device__ int f();\nint host() { return f(); }",
        "class A { int f(int); };\n__global__ void k(int* x) { x[0] = f(1); }",
        "__global__ KERNEL_TYPE k(int* x) {}",
        "template <int n>\n__global__ void __launch_bounds__(256) k(int* x) {}",
    ],
)
def test_code_that_may_be_right_is_left_to_the_compiler(text: str) -> None:
    assert refusals.check(text, "x.mu") == []
