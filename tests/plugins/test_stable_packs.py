# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Packs over torch's stable ABI: the example's wheel uses no C++ ABI of torch and serves calls as other packs
do; a wrong declaration is listed as failed with its cause, and none of its kernels is used.

`test_stable_pack_with_other_torch.py` runs the same wheel with other minors of torch.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from musa_runtime import TORCH_MINOR, config
from tests.harness import mixtures
from tests.harness.subprocesses import run_code, run_module
from tests.musa_emulator.sdk import tool
from tests.plugins.packs import Environment, build_wheel, write_pack

SOURCES = Path(__file__).resolve().parents[2] / "examples" / "stable_op_pack"
STABLE_ABI = 1

pytestmark = [pytest.mark.once, pytest.mark.slow]


def cxx_symbols_of_torch(library: Path) -> list[str]:
    """The symbols that a library imports from the C++ ABI of torch or of the runtime, demangled."""
    command = ["nm", "-D", "--undefined-only", "--demangle", str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        line.split(maxsplit=1)[1] for line in lines if re.search(r"\b(c10|at|torch|musa_runtime)::", line)
    ]


# ---- the example


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel(SOURCES, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(wheel)
    return environment


def test_the_library_uses_no_cxx_abi_of_torch(wheel: Path, tmp_path: Path) -> None:
    assert "-py3-none-" in wheel.name
    (name,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert cxx_symbols_of_torch(Path(zipfile.ZipFile(wheel).extract(name, tmp_path))) == []


def test_the_rule_finds_a_library_that_uses_the_cxx_abi() -> None:
    library = Path(torch.__file__).parent / "lib" / "libtorch_python.so"
    assert any(symbol.startswith("c10::Error::") for symbol in cxx_symbols_of_torch(library))


def test_the_pack_is_listed_as_loaded(environment: Environment) -> None:
    rows = json.loads(environment.run("-m", "torch_musa", "packs", "--json", interpreter=True))
    (row,) = [row for row in rows if row["name"] == "stable_demo"]
    assert (row["status"], row["error"]) == ("loaded", None)
    assert (row["providers"], row["ops"]) == (["stable_demo"], 2)


COUNTS = """
import torch
def calls(op="aten::relu"):
    return {c["provider"]: c["calls"] for c in torch.musa.ops.explain(op)["candidates"]}
"""


def test_its_kernel_serves_calls_that_its_predicate_accepts_and_is_counted(environment: Environment) -> None:
    code = f"""{COUNTS}
x = torch.tensor([[-1.5, 2.0, float("nan")], [0.0, -0.0, 3.5]], requires_grad=True)
y = x.detach().to("musa").requires_grad_()
torch.relu(x).nan_to_num().sum().backward()
torch.relu(y).nan_to_num().sum().backward()
assert torch.equal(torch.relu(x).nan_to_num(), torch.relu(y).cpu().nan_to_num())
assert torch.equal(x.grad, y.grad.cpu())
assert calls()["stable_demo"] == 2, calls()
before = calls()
for declined in (y.detach().t(), y.detach().double(), y.detach().nan_to_num().int()):
    assert torch.equal(torch.relu(declined).cpu().nan_to_num(), torch.relu(declined.cpu()).nan_to_num())
after = calls()
assert after["stable_demo"] == 2 and sum(after.values()) == sum(before.values()) + 3, (before, after)
assert torch.relu(torch.empty(0, device="musa")).numel() == 0
print(torch.musa.ops.explain("aten::relu")["provider"])
"""
    assert environment.run("-c", code) == "stable_demo\n"
    memory = {"MUSA_EMULATOR_MEMORY": "strict", "MUSA_EMULATOR_MODE": "lazy"}
    assert environment.run("-c", code, **memory) == "stable_demo\n"


def test_its_own_operator_computes_and_its_errors_name_operator_and_provider(
    environment: Environment,
) -> None:
    code = f"""{COUNTS}
torch.musa.init()
scale_shift = torch.ops.musa_stable_demo.scale_shift
x = torch.randn(5, 7)
for device in ("musa:0", "musa:1"):
    torch.testing.assert_close(scale_shift(x.to(device).t(), 2.0, 0.5).cpu(), x.t() * 2 + 0.5)
stream = torch.musa.Stream()
with torch.musa.stream(stream):
    assert scale_shift(torch.ones(2, device="musa"), 3.0, 1.0).tolist() == [4.0, 4.0]
try:
    scale_shift(torch.ones(2, device="musa", dtype=torch.int32), 2.0, 1.0)
except RuntimeError as error:
    print("expected a float32 tensor" in str(error), "served by stable_demo" in str(error))
print(calls("musa_stable_demo::scale_shift")["stable_demo"])
"""
    assert environment.run("-c", code, MUSA_EMULATOR_DEVICES="2") == "True True\n4\n"


def test_calls_are_captured_and_a_lack_of_memory_keeps_its_type(environment: Environment) -> None:
    code = f"""{COUNTS}
x = torch.tensor([-1.0, 2.0], device="musa")
torch.relu(x)
graph = torch.musa.MUSAGraph()
with torch.musa.graph(graph):
    y = torch.relu(x)
x.copy_(torch.tensor([5.0, -6.0]))
graph.replay()
print(y.tolist(), calls()["stable_demo"])
large = torch.ones(1 << 23, device="musa")
torch.musa.set_per_process_memory_fraction(48e6 / torch.musa.get_device_properties(0).total_memory)
try:
    torch.relu(large)
except torch.OutOfMemoryError as error:
    print("served by stable_demo" in str(error))
"""
    assert environment.run("-c", code) == "[5.0, 0.0] 2\nTrue\n"


def test_another_provider_may_be_chosen_and_chosen_back(environment: Environment) -> None:
    code = f"""{COUNTS}
y = torch.ones(3, device="musa")
for provider in ("host", "stable_demo", "mudnn", "stable_demo"):
    torch.musa.ops.prefer("aten::relu", provider)
    before = calls()
    torch.relu(y)
    print(*[name for name, count in calls().items() if count != before[name]])
"""
    assert environment.run("-c", code) == "host\nstable_demo\nmudnn\nstable_demo\n"


def test_no_list_of_operators_shows_the_registrations_behind_stable_kernels(environment: Environment) -> None:
    code = f"""{COUNTS}
torch.relu(torch.ones(1, device="musa"))
print(any("musa_stable::" in name for name in torch._C._dispatch_get_all_op_names()))
print(any(row["op"].startswith("musa_stable::") for row in torch.musa.ops.table()))
"""
    assert environment.run("-c", code) == "True\nFalse\n"


# ---- wrong declarations, in C if the header for C++ does not allow them

C_PRELUDE = """
#include <musa_runtime/stable_abi.h>
#include <stdlib.h>
static void leave(uint64_t* stack, uint64_t inputs, uint64_t outputs) {
  (void)stack; (void)inputs; (void)outputs;
}
static const uint64_t torch_2_11 = 0x020b000000000000;
#define PACK(NAME, ABI, NEEDED, ...)                                                            \\
  static void declare(MusaStableDeclaration* declaration) { __VA_ARGS__ }                       \\
  __attribute__((constructor)) static void at_load(void) {                                      \\
    const MusaStablePack pack = {ABI, NAME, torch_2_11, NEEDED, &declare};                      \\
    musa_stable_pack(&pack);                                                                    \\
  }
#define KERNEL(OP, SIGNATURE)                                                                   \\
  {                                                                                             \\
    const MusaStableKernel kernel = {OP, SIGNATURE, &leave, NULL};                              \\
    musa_stable_impl(declaration, &kernel);                                                     \\
  }
"""
CXX_PRELUDE = """
#include <musa_runtime/stable_pack.h>
#include <torch/csrc/stable/ops.h>
using torch::stable::Tensor;
Tensor same(const Tensor& self) { return self; }
[[maybe_unused]] Tensor with_number(const Tensor& self, int64_t) { return self; }
[[maybe_unused]] Tensor with_float(const Tensor& self, double) { return self; }
[[maybe_unused]] bool takes_number(const Tensor&, int64_t) { return true; }
"""
# The code of a pack that must be refused before it runs: it ends the process.
UNREACHABLE = "(void)declaration; _Exit(77);"
CAUSE = "whose signature is not the operator's"

# name: suffix of the file, source, and parts of its record
REFUSED = {
    "stable_other_abi": (
        "c",
        f'PACK("stable_other_abi", {STABLE_ABI + 1}, torch_2_11, {UNREACHABLE})',
        [
            f"have: stable ABI {STABLE_ABI + 1}\n",
            f"need: stable ABI {STABLE_ABI}\n",
            "Fix: build the pack again",
        ],
    ),
    "stable_newer_torch": (
        "c",
        f'PACK("stable_newer_torch", MUSA_STABLE_ABI, 0x0263000000000000, {UNREACHABLE})',
        ["'stable_newer_torch'", f"have: torch {TORCH_MINOR}\n", "need: torch 2.99\n", "Fix: "],
    ),
    "stable_scalar": (
        "c",
        'PACK("stable_scalar", MUSA_STABLE_ABI, torch_2_11, KERNEL("aten::abs", "(Tensor a) -> Tensor") '
        'KERNEL("aten::add.Tensor", "(Tensor a, Tensor b, Scalar c) -> Tensor"))',
        ["aten::add.Tensor", "the type Scalar, which torch's stable ABI does not convert", "MUSA_OP_PACK"],
    ),
    "stable_no_schema": (
        "c",
        'PACK("stable_no_schema", MUSA_STABLE_ABI, torch_2_11, KERNEL("aten::relu", "tensor to tensor"))',
        ["aten::relu", "a signature that is no schema", "have: tensor to tensor"],
    ),
    "stable_incomplete": (
        "c",
        'PACK("stable_incomplete", MUSA_STABLE_ABI, torch_2_11, KERNEL("aten::relu", NULL))',
        ["aten::relu", "without an operator, a signature or a function"],
    ),
    "stable_twice": (
        "c",
        'PACK("stable_twice", MUSA_STABLE_ABI, torch_2_11, KERNEL("aten::relu", "(Tensor a) -> Tensor") '
        'KERNEL("aten::relu", "(Tensor a) -> Tensor"))',
        ["the pack 'stable_twice' declares aten::relu twice"],
    ),
    "stable_count": (
        "cpp",
        'MUSA_STABLE_OP_PACK(stable_count, pack) { pack.impl<&same>("aten::abs"); '
        'pack.impl<&with_number>("aten::relu"); }',
        [
            "aten::relu",
            CAUSE,
            "have: (Tensor a0, int a1) -> Tensor",
            "need: aten::relu(Tensor self) -> Tensor",
        ],
    ),
    "stable_types": (
        "c",
        'PACK("stable_types", MUSA_STABLE_ABI, torch_2_11, '
        'KERNEL("aten::unsqueeze", "(Tensor a, float b) -> Tensor"))',
        ["aten::unsqueeze", CAUSE, "have: (Tensor a, float b) -> Tensor"],
    ),
    # The stable ABI has no kernels for operators with a Scalar, as the record states.
    "stable_barrier": (
        "c",
        'PACK("stable_barrier", MUSA_STABLE_ABI, torch_2_11, '
        'KERNEL("aten::clamp_min", "(Tensor a, float b) -> Tensor"))',
        ["aten::clamp_min", CAUSE, "does not convert Scalar", "MUSA_OP_PACK"],
    ),
    "stable_throws": (
        "cpp",
        'MUSA_STABLE_OP_PACK(stable_throws, pack) { pack.impl<&same>("aten::abs"); '
        'throw std::logic_error("not today"); }',
        ["the pack 'stable_throws' raised an exception: not today"],
    ),
    # The operator is defined after the declaration ran, so it is checked later.
    "stable_late": (
        "cpp",
        'MUSA_STABLE_OP_PACK(stable_late, pack) { pack.impl<&with_float>("musa_stable_late::twice"); }\n'
        'STABLE_TORCH_LIBRARY(musa_stable_late, library) { library.def("twice(Tensor self) -> Tensor"); }',
        ["musa_stable_late::twice", CAUSE],
    ),
}
# Values of every kind except two enumerations, and a kernel for an operator that this torch does not have.
GOOD = """
using torch::headeronly::HeaderOnlyArrayRef;
using Ints = HeaderOnlyArrayRef<int64_t>;
std::tuple<Tensor, Tensor> forms(
    const Tensor& a, std::optional<Tensor> b, int64_t c, double d, bool e, const std::string& f, Ints g,
    std::vector<Tensor> h, std::optional<int64_t> i, torch::stable::Device j,
    std::optional<torch::headeronly::ScalarType> k) {
  const bool right = c == 3 && d == 0.5 && e && f == "text" && g.size() == 2 && g[1] == 8 && h.size() == 2 &&
      !i.has_value() && b.has_value() && j.index() == 0 && k == torch::headeronly::ScalarType::Half;
  return {a, right ? *b : a};
}
bool served(
    const Tensor&, std::optional<Tensor>, int64_t c, double, bool, const std::string&, Ints,
    std::vector<Tensor>, std::optional<int64_t>, torch::stable::Device,
    std::optional<torch::headeronly::ScalarType>) {
  return c == 3;
}
void nothing(Tensor self, int64_t) { torch::stable::zero_(self); }
MUSA_STABLE_OP_PACK(stable_good, pack) {
  pack.impl<&forms, &served>("musa_stable_good::forms");
  pack.impl<&nothing>("musa_stable_good::nothing.overload");
  pack.impl<&same>("musa_nowhere::nothing");
}
STABLE_TORCH_LIBRARY(musa_stable_good, library) {
  library.def(
      "forms(Tensor a, Tensor? b, SymInt c, float d, bool e, str f, int[2] g, Tensor[] h, int? i, Device j, "
      "*, ScalarType? k=None) -> (Tensor, Tensor)");
  library.def("nothing.overload(Tensor(a!) self, int value) -> ()");
}
"""
DO_NOT_COMPILE = {
    "predicate": (
        'MUSA_STABLE_OP_PACK(predicate, pack) { pack.impl<&same, &takes_number>("aten::relu"); }',
        "must return bool and have the kernel's parameters",
    ),
    # Schemas have no type float; their numbers are double.
    "narrow": (
        "Tensor narrow(const Tensor& self, float) { return self; }\n"
        'MUSA_STABLE_OP_PACK(narrow, pack) { pack.impl<&narrow>("aten::relu"); }',
        "SchemaType<float>",
    ),
    "unstable": ("#include <ATen/core/Tensor.h>", "TORCH_TARGET_VERSION"),
}
PROJECT = """
cmake_minimum_required(VERSION 3.22)
project(packs LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_BUILD_TYPE Debug)
find_package(musa_runtime 0.1 CONFIG REQUIRED)
foreach(source IN ITEMS ${PACKS})
  cmake_path(GET source STEM name)
  musa_add_op_pack(${name} STABLE SOURCES ${source})
endforeach()
foreach(name IN ITEMS ${DO_NOT_COMPILE})
  musa_add_op_pack(${name} STABLE SOURCES ${name}.cpp)
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
endforeach()
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
    """A folder with a library for every declaration."""
    sources = tmp_path_factory.mktemp("sources")
    files = {f"{name}.{suffix}": source for name, (suffix, source, _) in REFUSED.items()}
    files["stable_good.cpp"] = GOOD
    for name, source in files.items():
        (sources / name).write_text(f"{C_PRELUDE if name.endswith('.c') else CXX_PRELUDE}{source}\n")
    for name, (source, _) in DO_NOT_COMPILE.items():
        (sources / f"{name}.cpp").write_text(f"{CXX_PRELUDE}{source}\n")
    (sources / "CMakeLists.txt").write_text(PROJECT)
    made = sources / "build"
    command = [tool("cmake"), "-S", sources, "-B", made, "-G", "Ninja", f"-DPACKS={';'.join(files)}"]
    command += [f"-DDO_NOT_COMPILE={';'.join(DO_NOT_COMPILE)}", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}"]
    command += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dmusa_runtime_DIR={config.cmake_dir()}"]
    for done in (subprocess.run(command, capture_output=True, text=True), build(made)):
        assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.fixture(scope="module")
def path_of_packs(libraries: Path, tmp_path_factory) -> dict[str, str]:
    site = tmp_path_factory.mktemp("packs")
    for name in (*REFUSED, "stable_good"):
        write_pack(site, name, HOOKS.format(library=str(libraries / f"lib{name}.so")))
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))}


@pytest.fixture(scope="module")
def rows(path_of_packs: dict[str, str]) -> dict[str, dict]:
    done = run_module("torch_musa", "packs", "--json", **path_of_packs)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_declaration_is_listed_as_failed_with_its_cause(
    rows: dict[str, dict], name: str, request: pytest.FixtureRequest
) -> None:
    row = rows[name]
    assert row["status"] == "failed"
    for part in REFUSED[name][2]:
        assert part in row["error"]
    assert "Fix: " in row["error"] and f"TORCH_MUSA_DISABLE_PACKS={name}" in row["error"]
    mixtures.check(request, row["error"])


def test_the_other_packs_load(rows: dict[str, dict]) -> None:
    assert rows["stable_good"]["status"] == "loaded", rows["stable_good"]["error"]
    assert {name for name, row in rows.items() if row["status"] == "failed"} == set(REFUSED)


def test_no_kernel_of_a_refused_declaration_is_a_candidate(path_of_packs: dict[str, str]) -> None:
    code = """
        import torch
        x = -torch.ones(2, 2, device="musa")
        print(torch.relu(x).sum().item(), x.abs().sum().item())
        for op in ("aten::abs", "aten::relu", "aten::unsqueeze", "aten::clamp_min", "aten::add.Tensor"):
            print(*{c["provider"] for c in torch.musa.ops.explain(op)["candidates"]})
    """
    first, *providers = run_code(code, **path_of_packs).splitlines()
    assert first == "0.0 4.0"
    assert not set(REFUSED) & set(" ".join(providers).split())


def test_every_form_of_value_reaches_a_kernel(path_of_packs: dict[str, str]) -> None:
    code = """
        import torch
        a, b = torch.ones(2, device="musa"), torch.zeros(2, device="musa")
        forms = lambda c: torch.ops.musa_stable_good.forms(
            a, b, c, 0.5, True, "text", [7, 8], [a, b], None, torch.device("musa:0"), k=torch.float16)
        print(*[tensor.sum().item() for tensor in forms(3)])
        try:
            forms(4)
        except NotImplementedError as error:  # the predicate declines, and no other kernel exists
            print("musa_stable_good::forms" in str(error))
        print(torch.ops.musa_stable_good.nothing.overload(a, 1), a.sum().item())
    """
    assert run_code(code, **path_of_packs) == "2.0 0.0\nTrue\nNone 0.0\n"


@pytest.mark.parametrize("name", DO_NOT_COMPILE)
def test_a_pack_that_cannot_work_does_not_compile(libraries: Path, name: str) -> None:
    done = build(libraries, "--target", name)
    assert done.returncode != 0
    assert DO_NOT_COMPILE[name][1] in done.stdout
