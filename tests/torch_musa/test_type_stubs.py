# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa stubs` writes types with the names of torch.musa, and replaces only its own files."""

from __future__ import annotations

import ast
import importlib
import types
from pathlib import Path

import pytest
import torch

from musa_runtime.errors import MusaError
from tests.harness.subprocesses import run_python
from torch_musa import type_stubs
from torch_musa.backends import AbsentBackend

pytestmark = pytest.mark.once

STUBS = Path(type_stubs.__file__).parent / "stubs"
TORCH = Path(torch.__file__).parent
MODULES = sorted(
    name for name in torch.musa.__all__ if isinstance(getattr(torch.musa, name), types.ModuleType)
)


def names_of(stub: str) -> set[str]:
    """Returns the names that a stub offers: definitions, and imports of the form `name as name` or `*`."""
    found = set()
    for node in ast.parse((STUBS / stub / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                everything = alias.name == "*"
                found |= set(importlib.import_module(node.module).__all__) if everything else {alias.asname}
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return found - {None}


def explicit_names_of(stub: str) -> set[str]:
    nodes = ast.parse((STUBS / stub / "__init__.pyi").read_text()).body
    return {alias.asname for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names} - {
        None
    }


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_stub_of_torch_musa_has_every_name_of_the_module():
    assert names_of("musa") == set(torch.musa.__all__)
    # Type checkers do not follow the statement that adds these to __all__.
    assert explicit_names_of("musa") == set(torch.musa._LEGACY_TYPES)


@pytest.mark.parametrize("name", MODULES)
def test_each_submodule_has_a_stub_with_its_names(name):
    assert public(names_of(f"musa/{name}")) == set(getattr(torch.musa, name).__all__)


def test_names_with_an_underscore_exist():
    names = {name for name in names_of("musa/memory") if name.startswith("_")}
    assert "_record_memory_history" in names
    assert [name for name in names if not hasattr(torch.musa.memory, name)] == []


def test_the_stubs_of_the_backends_have_the_names_of_the_modules():
    of_packs = {"fft_plan_cache"}
    assert names_of("backends/musa") == public(dir(torch.backends.musa)) | of_packs
    placeholder = AbsentBackend("torch.backends.mudnn")
    assert names_of("backends/mudnn") == public({*dir(placeholder), *dir(AbsentBackend)})
    assert [name for name in names_of("backends/mudnn") if not hasattr(torch.backends.mudnn, name)] == []


def classes_of_compiled(package: str) -> dict[str, list[ast.stmt]]:
    """Returns the bodies of the classes in the stub of a compiled module."""
    places = [Path(path, "_C.pyi") for path in importlib.import_module(package).__path__]
    [stub] = [path for path in places if path.exists()]
    return {
        node.name: node.body for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ClassDef)
    }


def test_the_stub_of_the_compiled_runtime_has_the_properties_of_devices(musa):
    properties = classes_of_compiled("musa_runtime")["_MusaDeviceProperties"]
    assert {part.target.id for part in properties} == public(dir(musa.get_device_properties(0)))


@pytest.mark.parametrize("package", ["musa_runtime", "musa_distributed"])
def test_the_stubs_of_compiled_modules_name_what_exists(musa, package):
    if package == "musa_distributed":
        importlib.import_module("musa_distributed._extension").load()
    module = importlib.import_module(f"{package}._C")
    for name, body in classes_of_compiled(package).items():
        members = {part.name for part in body if isinstance(part, (ast.FunctionDef, ast.ClassDef))}
        assert [member for member in members if not hasattr(getattr(module, name), member)] == []


def test_the_package_is_partial_and_copies_the_stubs_of_torch(tmp_path):
    package = type_stubs.write(tmp_path, TORCH, {"extra": "extra_pack.module"})
    assert package == tmp_path / "torch-stubs" and [path.name for path in tmp_path.iterdir()] == [
        "torch-stubs"
    ]
    assert (package / "py.typed").read_text() == "partial\n"
    for name in ("_C/__init__.pyi", "nn/functional.pyi"):
        assert (package / name).read_bytes() == (TORCH / name).read_bytes()
    assert (package / "musa/extra/__init__.pyi").read_text() == "from extra_pack.module import *\n"
    assert (package / "musa/__init__.pyi").read_text().endswith("\nfrom . import extra as extra\n")
    assert not (package / "__init__.pyi").exists()  # it would replace torch/__init__.py


def test_a_package_of_an_earlier_run_is_replaced_and_removed(tmp_path):
    package = type_stubs.write(tmp_path, TORCH, {"old": "old_pack"})
    type_stubs.write(tmp_path, TORCH, {})
    assert not (package / "musa/old").exists() and (package / "musa/__init__.pyi").is_file()
    assert type_stubs.remove(tmp_path) == package and list(tmp_path.iterdir()) == []
    type_stubs.remove(tmp_path)  # nothing is left to remove


def test_a_package_of_another_origin_is_kept(tmp_path):
    (tmp_path / "torch-stubs").mkdir()
    (tmp_path / "torch-stubs" / "py.typed").write_text("partial\n")
    for action in (lambda: type_stubs.write(tmp_path, TORCH, {}), lambda: type_stubs.remove(tmp_path)):
        with pytest.raises(MusaError, match=r"another origin[^$]*Fix: uninstall"):
            action()
    assert [path.name for path in (tmp_path / "torch-stubs").iterdir()] == ["py.typed"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(MusaError, match=r"missing/torch-stubs cannot be written[^$]*Fix: .*--folder"):
        type_stubs.write(tmp_path / "missing", TORCH, {})


def test_the_command_writes_and_removes_the_package(tmp_path):
    done = run_python("-m", "torch_musa", "stubs", "--folder", str(tmp_path))
    assert done.returncode == 0 and f"wrote {tmp_path}/torch-stubs" in done.stdout, done.stderr
    # The packs of this environment add their modules.
    assert (tmp_path / "torch-stubs/musa/amp/__init__.pyi").read_text() == "from musa_amp import *\n"
    done = run_python("-m", "torch_musa", "stubs", "--folder", str(tmp_path), "--remove")
    assert done.returncode == 0 and list(tmp_path.iterdir()) == []
