# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The compiler driver: its command line, its messages, and the source lines that they name."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.musa_emulator import sdk
from tests.musa_emulator.mcc import MCC, mcc, run

pytestmark = pytest.mark.once

KERNEL = """
#include <cstdio>
__global__ void fill(int* x, int value) {
  x[threadIdx.x] = value;
}
int main() {
  int* x;
  musaMalloc((void**)&x, 16);
  fill<<<1, 4>>>(x, 42);
  int got[4];
  musaMemcpy(got, x, 16, musaMemcpyDeviceToHost);
  std::printf("%d %d\\n", got[0], got[3]);
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "fill.mu"
    path.write_text(KERNEL)
    return path


def test_one_step_from_source_to_program(source: Path) -> None:
    done = mcc(source.name, "-o", "fill", cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(source.parent / "fill").stdout == "42 42\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors need no choice of instructions")
@pytest.mark.parametrize(("options", "chosen"), [((), "x86-64-v2"), (("-march=x86-64",), "x86-64")])
def test_kernels_are_compiled_for_processors_since_2009_unless_options_name_others(
    source: Path, options: tuple[str, ...], chosen: str
) -> None:
    done = mcc("-v", "-c", *options, source.name, cwd=source.parent)
    assert done.returncode == 0, done.stderr
    (compilation,) = [line for line in done.stderr.splitlines() if "rewritten.ii" in line]
    assert [word for word in compilation.split() if word.startswith("-march=")] == [f"-march={chosen}"]


@pytest.mark.parametrize(
    ("machine", "chosen"), [("aarch64", "-ffp-contract=off"), ("x86_64", "-march=x86-64-v2")]
)
def test_the_processor_is_that_of_the_compiler(
    source: Path, monkeypatch: pytest.MonkeyPatch, machine: str, chosen: str
) -> None:
    """A cross compiler does not support the options of the machine on which it runs."""
    compiler = source.parent / "g++"
    words = source.parent / "words"
    compiler.write_text(
        f'#!/bin/sh\n[ "$*" = -dumpmachine ] && exec echo {machine}-linux-gnu\n'
        f'case "$*" in *" -E "*) exec c++ "$@";; esac\necho "$*" > {shlex.quote(str(words))}\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert mcc("-c", source.name, cwd=source.parent).returncode == 0
    options = ("-march=", "-ffp-contract=")
    assert [word for word in words.read_text().split() if word.startswith(options)] == [chosen]


def test_compiling_and_linking_separately(source: Path) -> None:
    other = source.parent / "other.cpp"
    other.write_text("int unused() { return 0; }\n")
    assert mcc("-c", source.name, cwd=source.parent).returncode == 0
    assert mcc("-c", other.name, "-o", "second.o", cwd=source.parent).returncode == 0
    done = mcc("fill.o", "second.o", "-o", "both", cwd=source.parent)
    assert done.returncode == 0, done.stderr
    assert run(source.parent / "both").stdout == "42 42\n"


def test_objects_link_with_the_hosts_compiler(source: Path) -> None:
    assert mcc("-c", "-fPIC", source.name, "-o", "fill.o", cwd=source.parent).returncode == 0
    library = sdk.HOME / "lib"
    command = ["c++", "fill.o", f"-L{library}", "-lmusart", f"-Wl,-rpath,{library}", "-o", "linked"]
    done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert run(source.parent / "linked").stdout == "42 42\n"


def test_flags_of_the_gpus_compiler_are_accepted(source: Path) -> None:
    flags = [
        "-x",
        "musa",
        "--offload-arch=mp_22",
        "--cuda-gpu-arch=mp_31",
        "-mtgpu",
        "-Od3",
        "-fmusa-flush-denormals-to-zero",
    ]
    flags += [
        "-mllvm",
        "-mtgpu-if-convert=1",
        "-U__CUDA__",
        "-fsigned-char",
        "-MD",
        "-MF",
        "fill.d",
        "-O2",
        "-fPIC",
    ]
    done = mcc(*flags, "-c", source.name, "-o", "fill.o", cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fill.mu" in (source.parent / "fill.d").read_text()


@pytest.mark.parametrize("flag", ["-ptx", "-dlink"])
def test_an_option_for_gpu_code_is_refused_by_name(source: Path, flag: str) -> None:
    done = mcc(flag, source.name, cwd=source.parent)
    assert done.returncode == 1
    assert f"mcc: error: {flag} produces only GPU code" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-O2"], "no input files"),
        (["--offload-arch=sm_80", "x.mu"], "sm_80 is not a MUSA architecture"),
        (["x.mu", "-o"], "-o needs an argument"),
        (["-c", "a.mu", "b.mu", "-o", "c.o"], "-o names one file"),
    ],
)
def test_a_command_line_that_cannot_be_carried_out(arguments: list[str], told: str) -> None:
    done = mcc(*arguments)
    assert done.returncode == 1
    assert told in done.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("  fill<<<1, 4>>>(x, undefined);", "undefined"),
        ("  fill<<<1, 4>>>(x);", "launch and kernel differ in number of arguments"),
        ("  fill<<<1, 4(x, 42);", "a <<< without its >>>"),
        ("  fill<<<1, 4>>>;", "no arguments after the configuration"),
        ("  __shared__ int cell = 4;", "cannot be initialized"),
        ("  extern __shared__ int cell;", "one array without a size"),
    ],
)
def test_errors_name_the_line_of_the_source(source: Path, line: str, told: str) -> None:
    text = KERNEL.replace("  fill<<<1, 4>>>(x, 42);", line)
    number = text.splitlines().index(line) + 1
    source.write_text(text)
    done = mcc("-c", source.name, "-o", "fill.o", cwd=source.parent)
    assert done.returncode != 0
    assert told in done.stderr
    assert f"fill.mu:{number}" in done.stderr


def test_the_architecture_is_a_macro(tmp_path: Path) -> None:
    (tmp_path / "arch.mu").write_text(
        '#include <cstdio>\nint main() { std::printf("%d\\n", __MUSA_ARCH__); }\n'
    )
    for flags, arch in (
        ([], "310"),
        (["--offload-arch=mp_21"], "210"),
        (["--offload-arch=mp_22", "--offload-arch=mp_31"], "310"),
    ):
        assert mcc(*flags, "arch.mu", "-o", "arch", cwd=tmp_path).returncode == 0
        assert run(tmp_path / "arch").stdout.strip() == arch


@pytest.mark.parametrize("standard", ["c++11", "gnu++11", "c++14", "gnu++14", "c++17", "c++20"])
def test_kernels_compile_with_every_standard(source: Path, standard: str) -> None:
    done = mcc(f"-std={standard}", "-Wall", "-Wextra", source.name, "-o", "fill", cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(source.parent / "fill").stdout == "42 42\n"


def test_options_of_two_words(source: Path) -> None:
    folder = source.parent
    (folder / "late").mkdir()
    (folder / "late" / "late.h").write_text("#define LATE 40\n")
    (folder / "macros.h").write_text("#define MORE 2\nint not_declared;\n")
    text = '#include "late.h"\nint not_declared;\n' + KERNEL.replace("x, 42", "x, LATE + MORE")
    source.write_text(text)
    options = [
        "-idirafter",
        "late",
        "-imacros",
        "macros.h",
        "-Xclang",
        "-no-such-option",
        "-Xarch_host",
        "-O1",
    ]
    options += [
        "-Xarch_device",
        "-O9",
        "--param",
        "max-inline-insns-single=100",
        "-target",
        "mtgpu",
        "-Xassembler",
        "-g",
    ]
    done = mcc(*options, "-c", source.name, "-o", "fill.o", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert mcc("-z", "now", "-Xlinker", "--no-undefined", "fill.o", "-o", "fill", cwd=folder).returncode == 0
    assert run(folder / "fill").stdout == "42 42\n"


def test_a_syntax_check_writes_nothing(source: Path) -> None:
    done = mcc("-fsyntax-only", source.name, cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in source.parent.iterdir()] == [source.name]
    source.write_text(KERNEL.replace("42", "undefined"))
    assert mcc("-fsyntax-only", source.name, cwd=source.parent).returncode != 0


def test_options_of_clang(source: Path) -> None:
    options = [
        "-fcolor-diagnostics",
        "-fno-color-diagnostics",
        "-ferror-limit=3",
        "-Qunused-arguments",
        "-Weverything",
    ]
    options += ["-fgpu-rdc", "-nocudainc", "-nocudalib", "--cuda-path=/nowhere", "--target=x86_64-linux-gnu"]
    done = mcc(*options, "-c", source.name, "-o", "fill.o", cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")


CHANGES_MEANING = """
struct Element {};
template <class T> struct Holder {
  typedef T Kept;
  Element Get();
  typedef int Element;
};
"""


# Overloads of C functions, names that mcc's rewriter emits, and functions of C23 (newer C libraries).
NOT_DEVICE_ONLY = {"min", "max", "clock64", "rsqrt", "rsqrtf", "sinpi", "sinpif", "cospi", "cospif"}


def functions_of_the_device() -> tuple[list[str], list[str]]:
    """Returns the declarations in math.h that C lacks: those that a program may define, and the others."""
    text = (MCC.parents[1] / "lib" / "mcc" / "include" / "simt" / "math.h").read_text()
    of_programs = re.sub(r"^namespace .*?^\} // namespace", "", text, flags=re.MULTILINE | re.DOTALL)
    found = re.findall(
        r"^(inline|MUSA_SIMT_DEVICE_ONLY) ((?:unsigned |long )*\w+ (?!__)(\w+)\([^)]*\)) \{",
        of_programs,
        re.MULTILINE,
    )
    yielding = [declaration for start, declaration, _ in found if start != "inline"]
    others = [
        declaration for start, declaration, name in found if start == "inline" and name not in NOT_DEVICE_ONLY
    ]
    return yielding, others


def test_a_program_may_define_the_devices_functions_for_the_host(tmp_path: Path) -> None:
    yielding, others = functions_of_the_device()
    assert not others, f"a program that defines one of these for the host does not compile: {others}"
    assert len(yielding) > 30
    bodies = [
        f"static {declaration} {{ {'' if declaration.startswith('void') else 'return 7;'} }}"
        for declaration in yielding
    ]
    program = "\n".join([*bodies, "int main() { return umin(9, 8) + int(saturate(4)) - 14; }"])
    (tmp_path / "host.mu").write_text(f"__global__ void fill(int* x) {{ *x = 1; }}\n{program}\n")
    done = mcc("-w", "host.mu", "-o", "host", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "host").returncode == 0


def test_a_name_that_changes_its_meaning_is_accepted_as_by_clang(source: Path) -> None:
    source.write_text(CHANGES_MEANING + KERNEL)
    done = mcc(source.name, "-o", "fill", cwd=source.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(source.parent / "fill").stdout == "42 42\n"
    # Other code that -fpermissive would accept is an error, alone and together with this.
    for text in ("int* wrong = 5;\n", CHANGES_MEANING + "int* wrong = 5;\n"):
        source.write_text(text + KERNEL)
        done = mcc("-c", source.name, "-o", "fill.o", cwd=source.parent)
        assert done.returncode != 0 and "invalid conversion" in done.stderr


def test_a_pragma_in_a_macro_is_accepted(source: Path) -> None:
    macro = "#define UNROLL #pragma unroll\n#define NOT_UNROLL #pragma unroll 1\n"
    loops = "UNROLL for (int i = 0; i < 2; ++i) { NOT_UNROLL for (int j = 0; j < 4; ++j) x[j] = value; }"
    source.write_text(macro + KERNEL.replace("  x[threadIdx.x] = value;", loops))
    assert mcc(source.name, "-o", "fill", cwd=source.parent).returncode == 0
    assert run(source.parent / "fill").stdout == "42 42\n"


# The declaration in the file that launches a kernel, an addition to the other file, and the launch.
OTHER_FILES = {
    "plain": ("__global__ void fill_cells(int* x, const int value);", "", "fill_cells<<<"),
    "instantiated": (
        "template <bool B> __global__ void fill_cells(int* x, const int value);",
        "template __global__ void fill_cells<true>(int* x, const int value);",
        "fill_cells<true><<<",
    ),
}


# The file has the kernel's name, which therefore appears in the preprocessor's line markers.
@pytest.mark.parametrize("header", [True, False], ids=["by-header", "by-declaration"])
@pytest.mark.parametrize("form", OTHER_FILES)
def test_a_kernel_is_launched_from_another_file(form: str, header: bool, tmp_path: Path) -> None:
    declaration, instantiation, launch = OTHER_FILES[form]
    (tmp_path / "cells.h").write_text(f"{declaration}\n")
    include = '#include "cells.h"\n'
    kernel, main = KERNEL.replace("fill", "fill_cells").split("int main()")
    kernel = kernel.replace("int value", "const int value")
    if instantiation:
        kernel = kernel.replace("__global__", "template <bool B> __global__")
    (tmp_path / "fill_cells.mu").write_text(f"{include if header else ''}{kernel}{instantiation}\n")
    known = include if header else f"{declaration}\n"
    main = main.replace("fill_cells<<<", launch)
    (tmp_path / "main.mu").write_text(f"#include <cstdio>\n{known}int main(){main}")
    done = mcc("fill_cells.mu", "main.mu", "-o", "fill", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(tmp_path / "fill").stdout == "42 42\n"


def test_shared_memory_in_a_system_header(tmp_path: Path) -> None:
    # In a system header, the preprocessor writes line markers around a macro, in the middle of a declaration.
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "room.h").write_text("""
template <int N> struct Room {
  __device__ int& cell() { __shared__ int numbers[N], other; other = 1; return numbers[threadIdx.x]; }
  __device__ int* all() { extern __shared__ int room[]; return room; }
};
""")
    kernel = "x[threadIdx.x] = value;"
    ours = "Room<4>().cell() = value; x[threadIdx.x] = Room<4>().cell() + !Room<4>().all();"
    (tmp_path / "fill.mu").write_text("#include <room.h>" + KERNEL.replace(kernel, ours))
    for option in ("-isystem", "-I"):
        done = mcc(option, tmp_path / "system", "fill.mu", "-o", "fill", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert run(tmp_path / "fill").stdout == "42 42\n"
    # Lines after such a declaration keep their line numbers.
    with (tmp_path / "system" / "room.h").open("a") as header:
        header.write("int wrong() { return no_such_name; }\n")
    done = mcc("-isystem", tmp_path / "system", "fill.mu", "-o", "fill", cwd=tmp_path)
    assert done.returncode != 0 and "room.h:6:" in done.stderr, done.stderr


def test_the_location_of_shared_memory_follows_the_prefix_map(tmp_path: Path) -> None:
    """A fault in shared memory is reported with its line, so the object file contains the source's name."""
    source = tmp_path / "shared.mu"
    source.write_text(
        "#include <musa_runtime.h>\n"
        "static __shared__ float of_file[64];\n"
        "__global__ void kernel(float* to) {\n"
        "  __shared__ float own[64];\n"
        "  own[threadIdx.x] = of_file[threadIdx.x] = to[threadIdx.x];\n"
        "  __syncthreads();\n"
        "  to[threadIdx.x] = own[63 - threadIdx.x] + of_file[threadIdx.x];\n"
        "}\n"
    )
    for options, expected in (([], source), ([f"-ffile-prefix-map={tmp_path}=mapped"], "mapped/shared.mu")):
        done = mcc("-c", source, *options, "-o", tmp_path / "shared.o")
        assert done.returncode == 0, done.stderr
        data = (tmp_path / "shared.o").read_bytes()
        assert str(expected).encode() in data and (expected is source) == (str(tmp_path).encode() in data)


def test_names_and_guards_that_programs_rely_on(tmp_path: Path) -> None:
    (tmp_path / "names.mu").write_text("""
struct __half;
struct __half2;
struct __mt_bfloat16;
struct __mt_bfloat162;
#include <musa_bf16.h>
#include <musa_fp16.h>
#include <musa_fp16_mtgpu.h>
#include <type_traits>
#if !defined(__DRIVER_TYPES_H__) || !defined(__HOST_DEFINES_H__) || !defined(__VECTOR_TYPES_H__)
#error a guard is missing
#endif
static_assert(sizeof(__half) == 2 && alignof(__half) == 2, "");
static_assert(sizeof(__half2) == 4 && alignof(__half2) == 4, "");
static_assert(std::is_trivially_copyable<__half2>::value, "");
static_assert(std::is_trivially_default_constructible<__half>::value, "");
""")
    done = mcc("-std=c++14", "-Wall", "-c", "names.mu", "-o", "names.o", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("name", "suffix"), [("clang", "c"), ("clang++", "cpp"), ("clang++", "mu")])
def test_its_other_names(name: str, suffix: str, tmp_path: Path) -> None:
    language = "#ifdef __cplusplus\n#error compiled as C++\n#endif\n" if suffix == "c" else ""
    text = (
        KERNEL if suffix == "mu" else f'{language}#include <stdio.h>\nint main(void) {{ puts("42 42"); }}\n'
    )
    (tmp_path / f"program.{suffix}").write_text(text)
    command = [str(sdk.HOME / "bin" / name), f"program.{suffix}", "-o", "program"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert run(tmp_path / "program").stdout == "42 42\n"


PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(uses_musa LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH "$ENV{MUSA_HOME}/cmake")
find_package(MUSA 4.0 REQUIRED)
set(CMAKE_CXX_STANDARD 17)
list(APPEND MUSA_MCC_FLAGS --offload-arch=mp_31)
musa_include_directories(headers)
set_source_files_properties(by_property.cpp PROPERTIES MUSA_SOURCE_PROPERTY_FORMAT OBJ)
musa_add_library(kernels SHARED kernels.mu by_property.cpp plain.cpp OPTIONS -DADDED=2)
target_compile_definitions(kernels PRIVATE FROM_TARGET=40)
set(MUSA_LINK_LIBRARIES_KEYWORD PRIVATE)
musa_add_executable(program main.mu)
target_link_libraries(program PRIVATE kernels)
"""
PROJECT_FILES = {
    "headers/value.h": "#pragma once\nconstexpr int kValue = 1000;\n",
    "kernels.mu": """
#include "value.h"
__global__ void fill(int* x) { x[threadIdx.x] = kValue + FROM_TARGET + ADDED; }
void launch(int* x) { fill<<<1, 4>>>(x); }
""",
    "by_property.cpp": """
__global__ void add(int* x) { x[threadIdx.x] += 10000; }
void launch_add(int* x) { add<<<1, 4>>>(x); }
""",
    "plain.cpp": "#ifdef __MUSACC__\n#error compiled by mcc\n#endif\nint plain() { return 7; }\n",
    "main.mu": """
#include <cstdio>
void launch(int*);
void launch_add(int*);
int plain();
int main() {
  int* x;
  musaMalloc((void**)&x, 16);
  launch(x);
  launch_add(x);
  int got = 0;
  musaMemcpy(&got, x + 3, 4, musaMemcpyDeviceToHost);
  std::printf("%d %d\\n", got, plain());
}
""",
}


def test_a_cmake_project(tmp_path: Path) -> None:
    (tmp_path / "headers").mkdir()
    for name, text in {**PROJECT_FILES, "CMakeLists.txt": PROJECT}.items():
        (tmp_path / name).write_text(text)
    environment = sdk.clean_environment(MUSA_HOME=str(sdk.HOME))

    def build() -> str:
        for command in (
            [
                sdk.tool("cmake"),
                "-S",
                ".",
                "-B",
                "build",
                "-G",
                "Ninja",
                f"-DCMAKE_MAKE_PROGRAM={sdk.tool('ninja')}",
            ],
            [sdk.tool("cmake"), "--build", "build"],
        ):
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    build()
    assert run(tmp_path / "build" / "program").stdout == "11042 7\n"
    assert "no work to do" in build()
    (tmp_path / "headers" / "value.h").write_text("#pragma once\nconstexpr int kValue = 2000;\n")
    assert "Compiling kernels.mu for MUSA" in build()
    assert run(tmp_path / "build" / "program").stdout == "12042 7\n"


# ---- the Python that runs mcc


def bare(tmp_path: Path, *tools: str) -> dict[str, str]:
    """Returns an environment whose PATH has the tools, but no python3."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for tool in tools:
        (folder / tool).symlink_to(shutil.which(tool, path="/usr/bin:/bin"))
    return {"PATH": str(folder)}


def test_it_runs_if_path_has_no_python(source: Path, tmp_path: Path) -> None:
    environment = bare(tmp_path, "c++", "as", "ld")
    done = subprocess.run(
        [str(MCC), str(source), "-o", str(tmp_path / "fill")], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "fill").stdout == "42 42\n"


@pytest.mark.parametrize("value", ["'", 'c++ "', "\\"])
@pytest.mark.parametrize("name", ["CXX", "MUSA_HOST_CXX", "CC", "MUSA_HOST_CC", "MUSA_EMULATOR_CLANG"])
def test_an_unclosed_quotation_mark_is_named(source: Path, tmp_path: Path, name: str, value: str) -> None:
    c_source = tmp_path / "empty.c"
    c_source.write_text("")
    two_pass = ["--two-pass"] if name == "MUSA_EMULATOR_CLANG" else []
    command = [str(MCC), *two_pass, "-c", str(c_source if name.endswith("CC") else source)]
    environment = {**os.environ, name: value}
    done = subprocess.run([*command, "-o", "/dev/null"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and f"{name}=" in done.stderr and "Fix:" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_first_line_of_the_version_names_the_compiler() -> None:
    done = subprocess.run([str(MCC), "--version"], capture_output=True, text=True)
    assert re.match(r"the compiler mcc of musa-emulator, based on \S+ .*\d", done.stdout), done.stdout


def test_a_link_to_it_runs(tmp_path: Path) -> None:
    link = tmp_path / "mcc"
    link.symlink_to(MCC)
    done = subprocess.run([str(link), "--version"], capture_output=True, text=True)
    assert done.returncode == 0 and "mcc of musa-emulator" in done.stdout, done.stderr


def moved(tmp_path: Path) -> Path:
    """Copies the SDK out of its environment, without paths of the system's Python; returns its mcc."""
    home = tmp_path / "a moved sdk"
    for part in ("bin", "lib/mcc"):
        shutil.copytree(sdk.HOME / part, home / part)
    launcher = home / "bin" / "mcc"
    system = " /usr/bin/python3 /usr/local/bin/python3"
    text = launcher.read_text()
    assert text.count(system) == 1
    launcher.write_text(text.replace(system, ""))
    return launcher


def test_in_a_moved_sdk_it_uses_the_python_on_path(tmp_path: Path) -> None:
    environment = {**bare(tmp_path, "c++"), "PYTHONDONTWRITEBYTECODE": "1"}
    (tmp_path / "tools" / "python3").symlink_to(sys.executable)
    done = subprocess.run(
        [str(moved(tmp_path)), "--version"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and "mcc of musa-emulator" in done.stdout, done.stderr


def test_without_any_python_the_error_says_so(tmp_path: Path) -> None:
    done = subprocess.run([str(moved(tmp_path))], env=bare(tmp_path), capture_output=True, text=True)
    assert done.returncode == 127
    assert "no Python interpreter was found" in done.stderr and "\nFix: export PATH=" in done.stderr


def test_without_a_compiler_the_error_says_so(source: Path, tmp_path: Path) -> None:
    for arguments in (["--version"], ["-c", str(source)]):
        done = subprocess.run(
            [str(MCC), *arguments], env={"PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == 1 and "Traceback" not in done.stderr
        assert "the C++ compiler c++ was not found" in done.stderr and "\nFix: " in done.stderr
