# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack calls only members of muDNN that the real SDK is known to have.

tests/musa_runtime/test_sdk_symbols.py checks the classes, this file each member. A member that only the
emulator's muDNN had would link here and fail to load with the vendor's SDK.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.harness import sdk_names, skips

pytestmark = pytest.mark.once

LIST = Path(__file__).with_name("sdk_symbols.txt")


def listed() -> set[str]:
    return set(sdk_names.read_list(LIST))


def imported(library: Path) -> set[str]:
    """Returns the demangled names that a library imports."""
    nm = shutil.which("nm")
    if nm is None:
        skips.skip_permanently("glibc-tools", "nm")
    done = subprocess.run(
        [nm, "-DC", "--undefined-only", str(library)], check=True, capture_output=True, text=True
    )
    # Weak symbols too, because a symbol that may be missing is not known to exist.
    return {match.group(1) for match in re.finditer(r"^\s*[Uvw] (.+)$", done.stdout, re.MULTILINE)}


def of_mudnn(symbols: set[str]) -> set[str]:
    """Returns muDNN's symbols; the pack's functions name muDNN's types only after the parenthesis."""
    return {symbol for symbol in symbols if re.search(r"\bmusa::dnn::", symbol.partition("(")[0])}


def unlisted(symbols: set[str], names: set[str]) -> set[str]:
    """Returns muDNN's symbols except listed members, and constructors and destructors of listed classes."""
    classes = {name.rpartition("::")[0] for name in names if name != "musa::dnn::GetVersion"}
    refused = set()
    for symbol in of_mudnn(symbols):
        name = symbol.partition("(")[0]
        owner, _, member = name.rpartition("::")
        made_or_ended = owner in classes and member.lstrip("~") == owner.rpartition("::")[2]
        if name not in names and not made_or_ended:
            refused.add(symbol)
    return refused


@pytest.fixture(scope="module")
def library() -> Path:
    from musa_ops_mudnn import _library

    path = Path(_library.paths()[-1])
    assert path.exists(), f"{path} is missing. Fix: python3 tools/dev.py setup"
    return path


def test_the_pack_imports_listed_members_only(library):
    assert unlisted(imported(library), listed()) == set()


def test_the_pack_does_import_muDNN(library):
    names = {symbol.partition("(")[0] for symbol in of_mudnn(imported(library))}
    assert {"musa::dnn::Unary::Run", "musa::dnn::Handle::SetStream", "musa::dnn::GetVersion"} <= names


@pytest.mark.parametrize(
    "symbol",
    [
        "musa::dnn::Unary::RunFaster(musa::dnn::Handle&, musa::dnn::Tensor&) const",
        "musa::dnn::Wizard::Wizard()",
        "musa::dnn::Wizard::Run(musa::dnn::Handle&)",
        "musa::dnn::Version()",
        "typeinfo for musa::dnn::Unary",
        "vtable for musa::dnn::ImplBase",
        "musa::dnn::Unary::Binary()",
    ],
)
def test_a_symbol_that_is_not_listed_is_refused(symbol):
    assert unlisted({symbol}, listed()) == {symbol}


@pytest.mark.parametrize(
    "symbol",
    [
        "musa::dnn::Unary::Run(musa::dnn::Handle&, musa::dnn::Tensor&, musa::dnn::Tensor const&) const",
        "musa::dnn::Tensor::Tensor(musa::dnn::Tensor const&)",
        "musa::dnn::Tensor::~Tensor()",
        "musa::dnn::Convolution::FusedActivationDesc::SetMode(musa::dnn::Convolution::FusedActivationDesc::Mode)",
        "musa::dnn::GetVersion()",
        "ours::f(musa::dnn::Wizard&)",
        "at::cpu::mm(at::Tensor const&, at::Tensor const&)",
    ],
)
def test_listed_members_and_symbols_of_other_libraries_may_be_imported(symbol):
    assert unlisted({symbol}, listed()) == set()


def test_a_library_that_calls_a_member_of_the_emulator_alone_is_refused(tmp_path):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        skips.skip_permanently("glibc-tools", "a C++ compiler")
    (tmp_path / "bad.cpp").write_text(
        "namespace musa::dnn { struct Unary { int Run(); int Guess(); }; }\n"
        "int f() { musa::dnn::Unary op; return op.Run() + op.Guess(); }\n"
    )
    library = tmp_path / "bad.so"
    command = [compiler, "-shared", "-fPIC", "-Wl,--unresolved-symbols=ignore-all", "-o", str(library)]
    subprocess.run([*command, str(tmp_path / "bad.cpp")], check=True)
    assert unlisted(imported(library), listed()) == {"musa::dnn::Unary::Guess()"}


def test_the_list_is_sorted_by_class_without_duplicates():
    blocks = LIST.read_text(encoding="utf-8").split("\n\n")[1:]
    lines = [[line.split()[0] for line in block.splitlines()] for block in blocks]
    assert all(
        block == sorted(block) and len({line.rpartition("::")[0] for line in block}) == 1 for block in lines
    )
    flat = [line for block in lines for line in block]
    assert len(flat) == len(set(flat)) > 150


def test_every_class_is_in_the_list_of_all_suites():
    used = {"::".join(name.split("::")[:3]) for name in listed()}
    assert used <= classes(), "tests/data/sdk_symbols.txt lists the classes"


def classes() -> set[str]:
    return set(sdk_names.read_list(LIST.parents[1] / "data" / "sdk_symbols.txt"))


def sources() -> dict[str, str]:
    packages = LIST.parents[2] / "packages"
    paths = [
        path for path in (packages / "musa-ops-mudnn" / "csrc").rglob("*") if path.suffix in (".cpp", ".h")
    ]
    paths.append(packages / "musa-runtime" / "csrc" / "pack_sdk" / "musa_runtime" / "mudnn.h")
    return {str(path): path.read_text(encoding="utf-8") for path in paths}


def test_the_sources_name_listed_classes_and_enumerators_only():
    used = sdk_names.mudnn_names(sources())
    assert {"musa::dnn::Unary::Mode::ACOS", "musa::dnn::Binary::Mode::NE", "musa::dnn::Status"} <= used
    assert sorted(used - listed() - classes()) == []


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("using Mode = ::musa::dnn::ImplBase::ComputeMode;", "musa::dnn::ImplBase::ComputeMode"),
        ("op.SetMode(dnn::Unary::Mode::WISH);", "musa::dnn::Unary::Mode::WISH"),
        ("using Mode = dnn::Unary::Mode;\nf(Mode::WISH);", "musa::dnn::Unary::Mode::WISH"),
        ("using U = dnn::Unary;\nusing Mode = U::Mode;\nf(Mode::WISH);", "musa::dnn::Unary::Mode::WISH"),
        (
            "using Modes = dnn::Unary::Mode;\n#define USE(NAME, MODE) f<Modes::MODE>(#NAME)\nUSE(a, WISH);",
            "musa::dnn::Unary::Mode::WISH",
        ),
        ("::musa::dnn::Wizard wizard; // dnn::Sorcerer", "musa::dnn::Wizard"),
    ],
)
def test_a_name_without_evidence_in_a_source_is_refused(source, refused):
    used = sdk_names.mudnn_names({"x.cpp": source})
    assert used - listed() - classes() == {refused}
