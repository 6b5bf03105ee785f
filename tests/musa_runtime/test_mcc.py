# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The architectures and options of kernels depend on the compiler that compiles them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from musa_runtime import config, mcc
from tests.harness.foreign_mcc import ForeignCompiler

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
EMULATORS = str(Path(config.musa_home()) / "bin" / "mcc")
GCC_ONLY = ["-fvect-cost-model=dynamic", "--param=ggc-min-heapsize=1000000"]


@pytest.fixture
def foreign(tmp_path):
    return ForeignCompiler(tmp_path, EMULATORS)


@pytest.mark.parametrize(
    ("text", "archs"),
    [
        ("22;31", ["22", "31"]),
        ("2.2 3.1", ["22", "31"]),
        ("mp_31,mp_22,31", ["31", "22"]),
        (" ; ", []),
        ("", []),
    ],
)
def test_lists_of_architectures(text, archs):
    assert mcc.parse_archs(text) == archs


@pytest.mark.parametrize("text", ["sm_80", "8.0+PTX", "22;all", "mp_3", "313"])
def test_an_architecture_that_musa_does_not_have_is_refused(text):
    with pytest.raises(ValueError, match="not an architecture of MUSA") as caught:
        mcc.parse_archs(text)
    assert 'Fix: export TORCH_MUSA_ARCH_LIST="22;31"' in str(caught.value)


def test_the_variable_wins_then_the_devices_then_the_compilers_architectures(foreign):
    compiler = str(foreign.path)
    assert mcc.archs(compiler, ["21"], {"TORCH_MUSA_ARCH_LIST": "31"}) == ["31"]
    assert mcc.archs(compiler, ["31", "22", "31"], {}) == ["22", "31"]
    assert mcc.archs(compiler, [], {}) == ["22", "31"], "mp_21 is unknown to this compiler"
    assert mcc.archs(EMULATORS, [], {}) == ["21", "22", "31"]
    assert mcc.offload_flags(compiler, [], {}) == ["--offload-arch=mp_22", "--offload-arch=mp_31"]


def test_options_are_those_that_the_compiler_accepts(foreign):
    known = ["-ftree-vectorize", "-O2"]
    assert mcc.accepted(str(foreign.path), [*known, *GCC_ONLY]) == known
    assert not mcc.accepts(str(foreign.path), GCC_ONLY)


def test_support_for_precompiled_headers_is_tried(foreign):
    assert mcc.precompiles(EMULATORS, ["-O1", "--offload-arch=mp_31"])
    assert mcc.precompiles(EMULATORS, ["-O1", "-include", "made_by_the_build.h", "-DA"])
    assert not mcc.precompiles(EMULATORS, ["-O1", "-fno-such-option"])
    assert not mcc.precompiles(str(foreign.path), ["-O1"])


def test_a_compiler_without_a_known_architecture_is_refused(tmp_path):
    with pytest.raises(mcc.CompilerError, match="for none of mp_21, mp_22, mp_31") as caught:
        mcc.supported_archs(str(ForeignCompiler(tmp_path, EMULATORS, archs="99").path))
    assert "Fix: " in str(caught.value)


def test_a_missing_compiler_is_named(tmp_path):
    with pytest.raises(mcc.CompilerError, match="cannot be run") as caught:
        mcc.accepts(str(tmp_path / "mcc"), [])
    assert "Fix: " in str(caught.value)


def test_the_script_for_cmake(foreign):
    def run(*arguments, **variables):
        command = [sys.executable, mcc.__file__, str(foreign.path), *arguments]
        env = {**{k: v for k, v in os.environ.items() if k != mcc.ARCH_LIST}, **variables}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert run("archs").stdout == "22;31\n"
    assert run("accepted", "-O2", *GCC_ONLY).stdout == "-O2\n"
    assert run("precompiles", "-O2").stdout == "no\n"
    refused = run("archs", TORCH_MUSA_ARCH_LIST="sm_80")
    assert refused.returncode == 1 and "sm_80" in refused.stderr and "Traceback" not in refused.stderr
    assert run("tea").returncode == 1


def test_the_requirements_of_the_packs_on_a_compiler_can_be_checked(capsys):
    assert mcc.check(EMULATORS, {}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(mcc.TRIALS) and all(line.endswith(": compiles") for line in lines)


def test_a_compiler_that_fails_a_trial_is_reported_with_its_message(tmp_path, capsys):
    """A fake of clang 14, which crashes on the second trial."""
    compiler = tmp_path / "mcc"
    compiler.write_text(
        "#!/bin/sh\n"
        "for word; do case $word in\n"
        '*.mu) grep -q shared_ptr "$word" || exit 0; echo "error: crash" >&2; exit 139;;\n'
        "esac; done\n"
        f'exec {EMULATORS} "$@"\n'
    )
    compiler.chmod(0o755)
    assert mcc.main([str(compiler), "check"]) == 1
    told = capsys.readouterr().out
    assert "fails with status 139: error: crash\nFix: update the SDK; until then" in told
    assert told.count(": compiles") == len(mcc.TRIALS) - 1


def build_tool(name):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return shutil.which(name, path=path)


def run(*command, **variables):
    env = {
        **os.environ,
        **variables,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [str(part) for part in command], env=env, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.needs("musa-port")
def test_a_pack_of_others_builds_with_a_foreign_compiler(foreign, tmp_path):
    """g++ compiles the host's sources; none of its options is passed to mcc."""
    source, build = tmp_path / "source", tmp_path / "build"
    source.mkdir()
    (source / "kernel.mu").write_text(
        "#include <c10/util/Half.h>\n"
        "__global__ void widen(const c10::Half* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }\n"
        "void launch(const c10::Half* x, float* y) { widen<<<1, 32>>>(x, y); }\n"
    )
    (source / "pack.cpp").write_text("int pack() { return 0; }\n")
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.26)\nproject(pack LANGUAGES CXX)\n"
        "find_package(musa_runtime CONFIG REQUIRED)\n"
        "musa_add_op_pack(pack SOURCES pack.cpp kernel.mu)\n"
    )
    options = [
        "-G",
        "Ninja",
        f"-Dmusa_runtime_DIR={config.cmake_dir()}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    variables = {"PYTORCH_MCC": str(foreign.path), "CXX": "g++", "TORCH_MUSA_ARCH_LIST": "2.2;3.1"}
    run(build_tool("cmake"), "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", *options, **variables)
    run(build_tool("cmake"), "--build", build, **variables)
    (compiled,) = [call for call in foreign.calls if str(source / "kernel.mu") in call]
    assert [word for word in compiled if word.startswith("--offload")] == [
        "--offload-arch=mp_22",
        "--offload-arch=mp_31",
    ]
    folders = [word.removeprefix("-I") for word in compiled if word.startswith("-I")]
    overlay = build / "ported" / "overlay"
    torch_include = next(folder for folder in folders if folder.endswith("torch/include"))
    assert folders.index(str(overlay)) < folders.index(torch_include)
    assert (overlay / "torch" / "headeronly" / "util" / "Half.h").is_file()


@pytest.mark.slow
@pytest.mark.full
def test_the_ported_pack_gives_a_foreign_compiler_no_option_of_gcc(foreign, tmp_path):
    package = ROOT / "packages" / "musa-ops-ported"
    options = ["-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release"]
    options.append(f"-Dmusa_runtime_DIR={config.cmake_dir()}")
    build = tmp_path / "build"
    variables = {"PYTORCH_MCC": str(foreign.path), "CXX": "g++"}
    run(build_tool("cmake"), "-S", package, "-B", build, *options, **variables)
    commands = run(build_tool("ninja"), "-C", build, "-t", "commands")
    kernels = [line for line in commands.splitlines() if str(foreign.path) in line and ".mu -o " in line]
    assert len(kernels) >= 60
    for line in kernels:
        assert not re.search(r"-fvect-cost-model|--param|x86gprintrin|-include-pch", line)
        assert re.findall(r"-O\d", line)[-1] == "-O2"
        assert "--offload-arch=mp_22 --offload-arch=mp_31" in line
        assert re.search(r"mcc -x musa .*-I\S+/ported/overlay ", line)
    # The compiler accepts the options: it compiles one of the smallest kernels.
    run(build_tool("ninja"), "-C", build, "musa/musa_ops_ported/csrc/kernels/Trace.mu.o", **variables)
