# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Packs with wrong C++ code: each is listed as failed with its cause, and none of its kernels is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from musa_runtime import ABI, TORCH_MINOR, config
from tests.harness import mixtures
from tests.harness.subprocesses import run_code, run_module
from tests.musa_emulator.sdk import tool
from tests.plugins.packs import write_pack

pytestmark = [pytest.mark.once, pytest.mark.slow]

PRELUDE = """
#include <ATen/core/Tensor.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>
#include <cstdlib>
#include <stdexcept>
at::Tensor same(const at::Tensor& self) { return self; }
at::Tensor binary(const at::Tensor& self, const at::Tensor&) { return self; }
at::Tensor by_value(at::Tensor self) { return self; }
[[maybe_unused]] bool takes_binary(const at::Tensor&, const at::Tensor&) { return true; }
"""
# The code of a pack that must be refused before it runs: it ends the process.
UNREACHABLE = "std::_Exit(77);"
CAUSE = "whose C++ signature is not the operator's"

# name: source, and parts of its record
REFUSED = {
    "signature": (
        'MUSA_OP_PACK(signature, pack) { pack.impl("aten::abs", TORCH_FN(same)); '
        'pack.of_provider("runtime").impl("aten::frac", TORCH_FN(same)); '
        'pack.impl("aten::relu", TORCH_FN(binary)); }',
        ["'signature'", "aten::relu", CAUSE, "need: aten::relu(Tensor self) -> Tensor"],
    ),
    "by_value": (
        'MUSA_OP_PACK(by_value, pack) { pack.impl("aten::relu", TORCH_FN(by_value)); }',
        ["aten::relu", CAUSE, "The types differ", "have: at::Tensor (at::Tensor)"],
    ),
    "twice": (
        'MUSA_OP_PACK(twice, pack) { pack.impl("aten::abs", TORCH_FN(same)); '
        'pack.impl("aten::relu", TORCH_FN(same)); pack.impl("aten::relu", TORCH_FN(same)); }',
        ["the pack 'twice' declares aten::relu twice", "Fix: remove one of its two"],
    ),
    "other_abi": (
        "#undef MUSA_RUNTIME_ABI\n#define MUSA_RUNTIME_ABI OTHER_ABI\n"
        f"MUSA_OP_PACK(other_abi, pack) {{ (void)pack; {UNREACHABLE} }}",
        [f"have: ABI {ABI + 1}\n", f"need: ABI {ABI}\n", "Fix: build the pack again"],
    ),
    "other_torch": (
        "#undef TORCH_VERSION_MINOR\n#define TORCH_VERSION_MINOR OTHER_MINOR\n"
        f"MUSA_OP_PACK(other_torch, pack) {{ (void)pack; {UNREACHABLE} }}",
        ["have: torch 2.99\n", f"need: torch {TORCH_MINOR}\n", "Fix: build the pack again"],
    ),
    "throws": (
        'MUSA_OP_PACK(throws, pack) { pack.impl("aten::abs", TORCH_FN(same)); '
        'throw std::logic_error("not today"); }',
        ["the pack 'throws' raised an exception: not today"],
    ),
    "throws_int": ("MUSA_OP_PACK(throws_int, pack) { (void)pack; throw 3; }", ["no std::exception"]),
    # The operator is defined after the declaration ran, so it is checked later.
    "late": (
        'MUSA_OP_PACK(late, pack) { pack.impl("musa_late::twice", TORCH_FN(binary)); }\n'
        'TORCH_LIBRARY(musa_late, library) { library.def("twice(Tensor self) -> Tensor"); }',
        ["musa_late::twice", CAUSE],
    ),
}
GOOD = """
at::Tensor next(const at::Tensor& self) { return self.add(1); }
MUSA_OP_PACK(good, pack) {
  pack.impl("musa_good::next", TORCH_FN(next));
  pack.impl("musa_nowhere::nothing", TORCH_FN(binary));  // of a library that is not loaded
}
TORCH_LIBRARY(musa_good, library) { library.def("next(Tensor self) -> Tensor"); }
"""
PREDICATE = """
MUSA_OP_PACK(predicate, pack) { pack.impl("aten::relu", TORCH_FN(same), TORCH_FN(takes_binary)); }
"""
# Loads the packs named by its arguments, and prints the reason if one is refused.
PROGRAM = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <musa_runtime/init.h>
#include <iostream>
int main(int count, char** paths) {
  musa_runtime::init();
  for (int i = 1; i < count; ++i) {
    try {
      musa_runtime::load_pack(paths[i]);
      std::cout << "loaded\\n";
    } catch (const c10::Error& error) {
      std::cout << error.what_without_backtrace() << "\\n";
    }
  }
  const at::Tensor ones = at::ones({2, 2}, at::Device("musa"));
  std::cout << "sum " << at::mm(ones, ones).sum().item<float>() << "\\n";
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(packs LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_BUILD_TYPE Debug)
set(CMAKE_CXX_FLAGS_DEBUG -O0)
find_package(musa_runtime 0.1 CONFIG REQUIRED)
foreach(name IN ITEMS ${PACKS})
  musa_add_op_pack(${name} SOURCES ${name}.cpp)
  target_compile_definitions(${name} PRIVATE OTHER_ABI=${OTHER_ABI} OTHER_MINOR=99)
  # torch's headers are compiled once; a macro with the target's name would be another compilation.
  set_target_properties(${name} PROPERTIES DEFINE_SYMBOL "")
  if(NOT DEFINED first)
    set(first ${name})
    target_precompile_headers(${name} PRIVATE <ATen/core/Tensor.h> <musa_runtime/op_pack.h> <torch/library.h>)
  else()
    target_precompile_headers(${name} REUSE_FROM ${first})
  endif()
endforeach()
set_target_properties(predicate PROPERTIES EXCLUDE_FROM_ALL ON)
add_executable(program program.cpp)
target_link_libraries(program PRIVATE musa::musa_runtime)
"""
HOOKS = """
from musa_runtime.hookspecs import hookimpl
@hookimpl
def musa_libraries(): return [{library!r}]
"""


def build(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [tool("cmake"), "--build", directory, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory) -> Path:
    """A folder with a library for every pack, and the program."""
    sources = tmp_path_factory.mktemp("sources")
    texts = {name: source for name, (source, _) in REFUSED.items()} | {"good": GOOD, "predicate": PREDICATE}
    for name, text in texts.items():
        (sources / f"{name}.cpp").write_text(f"{PRELUDE}{text}\n")
    (sources / "program.cpp").write_text(PROGRAM)
    (sources / "CMakeLists.txt").write_text(PROJECT)
    made = sources / "build"
    command = [tool("cmake"), "-S", sources, "-B", made, "-G", "Ninja", f"-DPACKS={';'.join(texts)}"]
    command += [f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}"]
    command += [f"-Dmusa_runtime_DIR={config.cmake_dir()}", f"-DOTHER_ABI={ABI + 1}"]
    for done in (subprocess.run(command, capture_output=True, text=True), build(made)):
        assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def environment(libraries: Path, tmp_path_factory) -> dict[str, str]:
    site = tmp_path_factory.mktemp("packs")
    for name in (*REFUSED, "good"):
        write_pack(site, name, HOOKS.format(library=str(libraries / f"lib{name}.so")))
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="module")
def rows(environment: dict[str, str]) -> dict[str, dict]:
    done = run_module("torch_musa", "packs", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_pack_is_listed_as_failed_with_its_cause(
    rows: dict[str, dict], name: str, request: pytest.FixtureRequest
) -> None:
    row = rows[name]
    assert row["status"] == "failed"
    assert row["providers"] in ([], ["late"])
    for part in REFUSED[name][1]:
        assert part in row["error"]
    assert "Fix: " in row["error"] and f"TORCH_MUSA_DISABLE_PACKS={name}" in row["error"]
    mixtures.check(request, row["error"])


def test_no_record_is_lost_and_the_other_packs_load(rows: dict[str, dict]) -> None:
    assert {*REFUSED, "good"} <= set(rows)
    assert rows["good"]["status"] == "loaded", rows["good"]["error"]
    assert {name for name, row in rows.items() if row["status"] == "failed"} == set(REFUSED)


def test_the_device_works_and_no_kernel_of_a_refused_pack_is_a_candidate(environment: dict[str, str]) -> None:
    out = run_code(
        """
        import torch
        x = torch.ones(2, 2, device="musa")
        print((x @ x).sum().item(), torch.relu(-x).sum().item(), (-x).abs().sum().item())
        print(torch.ops.musa_good.next(x).sum().item())
        for op in ("aten::abs", "aten::relu", "aten::frac"):
            print(*{c["provider"] for c in torch.musa.ops.explain(op)["candidates"]})
        """,
        **environment,
    )
    first, second, *providers = out.splitlines()
    assert (first, second) == ("8.0 0.0 4.0", "8.0")
    assert not {"signature", "by_value", "twice", "throws"} & set(" ".join(providers).split())
    assert "runtime" not in providers[2].split()


def test_doctor_names_each_failure(environment: dict[str, str]) -> None:
    done = run_module("torch_musa", "doctor", **environment)
    for name in REFUSED:
        assert f"'{name}'" in done.stdout, done.stdout + done.stderr


def test_a_program_without_python_gets_the_same_reason(libraries: Path, tmp_path: Path) -> None:
    (tmp_path / "libother.so.sdk").write_text("musa4\n")
    paths = ["/nowhere/libpack.so", tmp_path / "libother.so"]
    paths += [libraries / f"lib{name}.so" for name in ("signature", "good")]
    done = subprocess.run([libraries / "program", *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "/nowhere/libpack.so cannot be loaded" in done.stdout and "No such file" in done.stdout
    assert done.stdout.count("Its kernels were compiled for the SDK 'musa4'.") == 1
    assert "its kernels are not used" in done.stdout and CAUSE in done.stdout
    assert done.stdout.endswith("loaded\nsum 8\n"), done.stdout


def test_a_predicate_with_other_parameters_does_not_compile(libraries: Path) -> None:
    done = build(libraries, "--target", "predicate")
    assert done.returncode != 0
    assert "must return bool and have the kernel's parameters" in done.stdout
