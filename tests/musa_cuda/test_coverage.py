# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every function of the SDK's headers is forwarded, written by hand, or listed with a reason for neither."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.musa_cuda.conftest import PACKAGE, ROOT

pytestmark = pytest.mark.once

HEADERS = [ROOT / "packages" / name / "csrc" / "include" for name in ("musa-emulator", "musa-emulator-mccl")]


@pytest.fixture
def described(cuda: Path):
    from codegen.__main__ import described

    return described(HEADERS, cuda, None)


def test_no_function_of_the_headers_is_left_out(described) -> None:
    from codegen import libraries

    report = libraries.coverage(described)
    assert len(report["musart"]["forwarded"]) > 100 and len(report["musa"]["forwarded"]) > 70
    assert "musaGetDeviceProperties" in report["musart"]["by hand"]
    header = HEADERS[0] / "musa_emulator.h"
    testing = libraries.testing_coverage(header, PACKAGE / "csrc" / "musart" / "testing.cpp")
    assert "musaEmulatorFailCall" in testing["by hand"]


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ("musaError_t musaFoldSpace(int turns);", "musaFoldSpace"),
        ("musaError_t musaGetDevice(int* device);", "written by hand, and declared nowhere"),
    ],
    ids=["of a new function", "of a function that is gone"],
)
def test_a_header_that_differs_is_refused(described, tmp_path: Path, declared: str, named: str) -> None:
    from codegen import libraries

    runtime = next(library for library in described if library.name == "musart")
    other = tmp_path / "musa_runtime_api.h"
    if named == "musaFoldSpace":
        other.write_text((HEADERS[0] / other.name).read_text() + declared)
    else:
        other.write_text(declared)
    runtime.headers = [other]
    with pytest.raises(ValueError, match=named):
        libraries.coverage(described)


def test_a_function_of_the_test_interface_is_exported_or_has_a_reason(tmp_path: Path) -> None:
    from codegen import libraries

    header = tmp_path / "musa_emulator.h"
    text = (HEADERS[0] / header.name).read_text()
    header.write_text(text + "int musaEmulatorDance(void);")
    with pytest.raises(ValueError, match="musaEmulatorDance"):
        libraries.testing_coverage(header, PACKAGE / "csrc" / "musart" / "testing.cpp")


def test_declarations_are_parsed_as_in_c(tmp_path: Path) -> None:
    from codegen import declarations

    header = tmp_path / "some.h"
    header.write_text(
        "#define musaMacro(x) musaCalled(x)\n"
        "// MUSA_PUBLIC int musaCommented(int x);\n"
        "typedef int (*musaCallback_t)(void*);\n"
        "MUSA_PUBLIC musaError_t musaFirst(const struct musaThing* thing,\n"
        "    int count MUSA_DEFAULT_ARGUMENT(f(0)));\n"
        "static inline int musaInline(int x) { return musaFirst(0, x); }\n"
        "MUSA_PUBLIC const char* musaSecond(void);\n"
    )
    found = declarations.functions(header, "musa")
    assert [(one.result, one.name, one.declared) for one in found] == [
        ("musaError_t", "musaFirst", "const struct musaThing* thing, int count"),
        ("const char*", "musaSecond", ""),
    ]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("musa_cuda::forward<int>(wide, static_cast<Narrow*>(nullptr));", "another size"),
        ("musa_cuda::forward<int>(wide);", "another number of arguments"),
        ("musa_cuda::forward<int>(wide, static_cast<Wide*>(nullptr));", None),
    ],
    ids=["a structure of another size", "an argument less", "what fits"],
)
def test_a_call_of_another_signature_does_not_compile(tmp_path: Path, call: str, message: str | None) -> None:
    source = tmp_path / "call.cpp"
    source.write_text(
        '#include "support/forward.h"\n'
        "struct Narrow { int a; };\nstruct Wide { int a, b; };\nint wide(Wide*);\n"
        f"void go() {{ {call} }}\n"
    )
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{PACKAGE / 'csrc'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (message is None), done.stderr
    assert message is None or message in done.stderr
