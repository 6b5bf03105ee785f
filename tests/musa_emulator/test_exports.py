# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The emulator's libraries export exactly the names that their headers declare.

A library that is built against the emulator binds to any symbol that it exports. If the emulator exported a
symbol of the C++ runtime, the library would fail to load with another SDK, which lacks it.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.musa_emulator import sdk

pytestmark = pytest.mark.once

LIBRARIES = sdk.HOME / "lib"
ENGINE = "MUSA_EMULATOR_ENGINE"  # the version of the symbols that only the emulator's own libraries may use
HEADERS = {
    "libmusart.so": [
        *("musa_runtime_api.h", "musa_emulator.h", "musa_profiler_api.h"),
        *("simt/abi.h", "simt/math.h"),
    ],
    "libmusa.so": ["musa.h"],
    "libmupti.so": ["mupti_activity.h", "mupti_callbacks.h", "mupti_result.h", "mupti_version.h"],
    "libmtml.so": ["mtml.h"],
    "libmccl.so": ["mccl.h"],
}


def exports(library: Path) -> dict[str, str]:
    """Returns the version of each exported symbol ("" for none) by its demangled name."""
    command = ["nm", "-D", "--defined-only", library]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split()[1:] for line in listed.splitlines()]
    symbols = [name.partition("@") for kind, name in lines if kind != "A"]  # A is the name of a version
    mangled = "\n".join(name for name, _, _ in symbols)
    plain = subprocess.run(["c++filt"], input=mangled, capture_output=True, text=True, check=True).stdout
    versions = [version.lstrip("@") for _, _, version in symbols]
    return dict(zip(plain.splitlines(), versions, strict=True))


def declared(headers: list[str]) -> set[str]:
    """Returns the functions and variables that the headers declare for other libraries."""
    names = set()
    for header in headers:
        folder = "lib/mcc/include" if "/" in header else "include"
        text = (sdk.HOME / folder / header).read_text()
        names.update(re.findall(r"MUSA_PUBLIC\s[\w\s*]*?\b(\w+)\(", text))
        names.update(re.findall(r"^(?:const )?\w+[ *]+(mccl\w+)\(", text, re.MULTILINE))
        names.update(re.findall(r"^MUSA_SIMT_LOCAL \w+ (\w+);", text, re.MULTILINE))
        names.update(re.findall(r'__asm__\("(\w+)"\);', text))
    return names


def declared_classes() -> tuple[set[str], set[str]]:
    """Returns the exported classes and functions of muDNN, and every identifier in its headers."""
    text = "\n".join(path.read_text() for path in (sdk.HOME / "include").glob("mudnn*.h"))
    marked = re.findall(r"(?:class|struct) MUDNN_EXPORT (\w+)|MUDNN_EXPORT [\w:]+ (\w+)\(", text)
    return {name for pair in marked for name in pair if name}, set(re.findall(r"\w+", text))


def surplus(library: str, exported: dict[str, str]) -> list[str]:
    """Returns the exported names that no header of the library declares."""
    if library == "libmudnn.so":
        marked, identifiers = declared_classes()
        paths = {name: re.findall(r"\w+", name.partition("(")[0]) for name in exported}
        return [
            name
            for name, path in paths.items()
            if path[:2] != ["musa", "dnn"] or path[2] not in marked or not set(path[3:]) <= identifiers
        ]
    allowed = declared(HEADERS[library])
    if library == "libmtml.so":
        allowed.add("musaMtmlDeviceGetProcesses")  # for mthreads-gmi of the same SDK: mtml/processes.h
    found = []
    for name, version in exported.items():
        base = name.removeprefix("musa_simt::")
        base = re.sub(r"^_ZGV[bcde]N\d+v_", "", base)  # the vectorized variant of a function on x86-64
        of_engine = version == ENGINE and re.match(r"((typeinfo|vtable)( name)? for )?musa_emulator::", name)
        if base not in allowed and not (library == "libmusa.so" and of_engine):
            found.append(name)
    return found


@pytest.mark.parametrize("library", [*HEADERS, "libmudnn.so"])
def test_a_library_exports_exactly_what_its_headers_declare(library: str) -> None:
    exported = exports(LIBRARIES / library)
    assert len(exported) > 10
    assert surplus(library, exported) == []


@pytest.mark.parametrize("library", [*HEADERS, "libmudnn.so"])
def test_the_api_has_no_version_so_that_programs_load_with_any_sdk(library: str) -> None:
    versioned = {name for name, version in exports(LIBRARIES / library).items() if version}
    assert all("musa_emulator::" in name for name in versioned), versioned
    assert bool(versioned) == (library == "libmusa.so")


def test_a_library_without_a_version_script_would_be_refused(tmp_path: Path) -> None:
    source = tmp_path / "bad.cpp"
    source.write_text(
        "#include <memory>\n#include <map>\n"
        '#define PUBLIC extern "C" __attribute__((visibility("default")))\n'
        "PUBLIC int mcclGetVersion(int* v) {\n"
        "  std::map<int, std::shared_ptr<int>> m; m[*v] = std::make_shared<int>(*v); return m.size(); }\n"
        "PUBLIC int mcclUndeclared() { return 0; }\n"
        'namespace musa_emulator { __attribute__((visibility("default"))) int engine() { return 0; } }\n'
    )
    library = tmp_path / "libmccl.so"
    command = ["g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", source, "-o", library]
    subprocess.run(command, check=True)
    found = surplus("libmccl.so", exports(library))
    assert "mcclGetVersion" not in found
    assert {"mcclUndeclared", "musa_emulator::engine()"} <= set(found)
    assert any("std::" in name for name in found), found
    assert "musa_emulator::engine()" in surplus("libmusa.so", exports(library)), "it has no version"
    assert surplus("libmudnn.so", exports(library)) == list(exports(library))
