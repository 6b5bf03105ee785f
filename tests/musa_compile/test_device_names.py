# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each function of torch that names a device ("cuda", "xpu", `is_cuda`, `is_gpu`, `GPU_TYPES`) is in
device_names.txt, with its consequence for musa. A function that another torch adds fails the comparison.

Kinds of rows: `served` by a file of this project or by torch itself, `registered` with a function of torch's,
`irrelevant` for musa, `lacking` with the effect. torch.distributed has its own table (test_device_tables.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.harness.skips import needs_torch

pytestmark = pytest.mark.once

# Folders of torch that are for one other device, have their own table, or contain no code that users run.
_LEFT_OUT = {"cuda", "distributed", "mps", "mtia", "testing", "_vendor", "xpu"}
KINDS = {"served", "registered", "irrelevant", "lacking"}
_DEVICES = {"cuda", "xpu", "cuda:0", "xpu:0", "cuda:", "xpu:"}
_NAMES = {"is_gpu", "GPU_TYPES", "get_gpu_type"}
_ATTRIBUTES = {"is_cuda", "is_xpu", "is_gpu"}


def functions_that_name_devices(node: ast.AST, scope: str = "") -> Iterator[str]:
    """The qualified names of the functions, or "<module>". Text in docstrings does not count."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope = f"{scope}.{node.name}" if scope else node.name
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if (
        (isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _DEVICES)
        or (isinstance(node, ast.Name) and node.id in _NAMES)
        or (isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES)
    ):
        yield scope or "<module>"
    for child in ast.iter_child_nodes(node):
        yield from functions_that_name_devices(child, scope)


def found_in_torch() -> set[tuple[str, str]]:
    folder = Path(torch.__file__).parent
    files = [file for file in folder.rglob("*.py") if file.relative_to(folder).parts[0] not in _LEFT_OUT]
    texts = ((file, file.read_text()) for file in files)
    return {
        (file.relative_to(folder).as_posix(), function)
        for file, text in texts
        if any(name in text for name in ("cuda", "xpu", *_NAMES, *_ATTRIBUTES))  # parsing all takes 20 s
        for function in functions_that_name_devices(ast.parse(text))
    }


def rows() -> dict[tuple[str, str], tuple[str, str]]:
    """Kind and reason of each function."""
    listed = {}
    for line in (Path(__file__).parent / "device_names.txt").read_text().splitlines():
        if not line.startswith("#"):
            file, kind, reason, functions = line.split(" | ")
            for function in functions.split():
                assert (file, function) not in listed, f"{file} {function} is listed twice"
                listed[file, function] = kind, reason
    return listed


def test_each_function_that_names_devices_is_listed() -> None:
    needs_torch("2.13", "these functions")
    listed, found = rows(), found_in_torch()
    assert {kind for kind, _ in listed.values()} <= KINDS
    assert not found - listed.keys(), "Fix: add the functions to device_names.txt, with their effect on musa"
    assert not listed.keys() - found, "Fix: remove these functions from device_names.txt"


def test_files_of_this_project_that_rows_name_exist() -> None:
    root = Path(__file__).parents[2]
    names = {
        path.name
        for folder in ("packages", "tests")
        for path in root.joinpath(folder).rglob("*")
        if path.suffix in (".py", ".cpp", ".h")
    }
    for kind, reason in rows().values():
        for word in reason.replace(":", " ").replace(",", " ").replace("(", " ").replace(")", " ").split():
            if kind in ("served", "registered") and word.endswith((".py", ".cpp", ".h")):
                assert word in names, f"{word}: {reason}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def f(x):\n    return x.device.type in ("cuda", "xpu")', ["f", "f"]),
        ("class A:\n    def g(self, x):\n        return x.is_cuda", ["A.g"]),
        ("TYPES = GPU_TYPES + ['musa']", ["<module>"]),
        ('def f(x):\n    "cuda"\n    return x.is_cpu', []),
    ],
)
def test_the_scan_finds_a_new_guard(source: str, expected: list[str]) -> None:
    assert list(functions_that_name_devices(ast.parse(source))) == expected
