# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The plug-in without vLLM: its entry point, its imports, and the page of the overridden parts of vLLM."""

from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "packages" / "vllm-torch-musa" / "src" / "vllm_torch_musa"
ALLOWED = {
    "collections",
    "contextlib",
    "dataclasses",
    "gc",
    "importlib",
    "musa_runtime",
    "os",
    "torch",
    "torch_musa",
    "typing",
    "unittest",
    "vllm",
}
ALLOWED |= {"__future__"}
PAGE = ROOT / "docs" / "design" / "vllm.md"


def test_vllm_finds_the_plugin_by_its_entry_point():
    (found,) = importlib.metadata.entry_points(group="vllm.platform_plugins", name="musa")
    assert found.value == "vllm_torch_musa:platform"
    assert found.load()() == "vllm_torch_musa.platform.MusaPlatform"


def test_the_entry_points_module_imports_neither_torch_nor_vllm():
    done = run_python("-c", "import sys, vllm_torch_musa; print({'torch', 'vllm'} & set(sys.modules))")
    assert done.stdout == "set()\n"


CODE = "import vllm_torch_musa; print(vllm_torch_musa.platform())"


def test_the_plugin_returns_none_without_a_device():
    done = run_python("-c", CODE, MUSA_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr
    # The known good case: with a device the same code returns the class.
    assert run_python("-c", CODE).stdout == "vllm_torch_musa.platform.MusaPlatform\n"


def test_the_plugin_returns_none_without_torch_musa():
    hidden = f"import sys; sys.modules['torch_musa'] = None\n{CODE}"
    done = run_python("-c", hidden, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


def overridden(source: str) -> set[str]:
    """Returns the names of vLLM that a module subclasses, registers something with, or replaces."""
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vllm"
        for alias in node.names
    }
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in (*node.bases, *node.decorator_list):
                part = part.value if isinstance(part, ast.Subscript) else part
                if isinstance(part, ast.Attribute) and part not in node.decorator_list:
                    names.add(part.attr)
                else:
                    names |= {name.id for name in ast.walk(part) if isinstance(name, ast.Name)} & imported
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("patch.object"):
            names.add(ast.literal_eval(node.args[1]))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "patch":
            names.add(ast.literal_eval(node.args[0]))
    return names


def test_overridden_names_are_found():
    source = """from vllm.a import B, C, D
@C.register
class E(B[int], m.F): ...
class G(H): ...
patch.object(m, "i", i)
patch("j.k")
"""
    assert overridden(source) == {"B", "C", "F", "i", "j.k"}


def test_the_design_page_lists_the_overridden_parts_of_vllm():
    page = PAGE.read_text()
    names = set().union(*(overridden(path.read_text()) for path in SOURCES.glob("*.py")))
    assert len(names) > 10
    assert not {name for name in names if f"`{name}`" not in page}


def test_the_plugin_imports_no_pack_and_no_module_that_replaces_torch():
    for path in SOURCES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module or ""]
            roots = {module.split(".")[0] for module in modules}
            assert roots <= ALLOWED, path.name
