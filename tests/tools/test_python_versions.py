# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""One wheel fits all versions of Python, except those with extension modules. Every package is typed."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def packages_without_marker(root: Path) -> list[str]:
    """The import packages without py.typed, without which type checkers ignore their annotations."""
    found = sorted(path.parent for path in root.glob("packages/*/src/*/__init__.py"))
    assert found, f"{root} has no packages"
    return [path.name for path in found if not (path / "py.typed").is_file()]


def symbols_of_python(library: Path) -> list[str]:
    """The symbols that a library imports from the interpreter."""
    command = ["nm", "-D", "--undefined-only", str(library)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [
        name
        for name in (line.split()[-1].partition("@")[0] for line in lines)
        if name.startswith(("Py", "_Py"))
    ]


def test_every_package_is_marked_as_typed(tmp_path: Path) -> None:
    assert packages_without_marker(ROOT) == []
    for name in ("marked", "unmarked"):
        (tmp_path / "packages" / name / "src" / name).mkdir(parents=True)
        (tmp_path / "packages" / name / "src" / name / "__init__.py").touch()
    (tmp_path / "packages" / "marked" / "src" / "marked" / "py.typed").touch()
    assert packages_without_marker(tmp_path) == ["unmarked"]


def test_only_extension_modules_are_bound_to_a_python() -> None:
    site = Path(sysconfig.get_path("purelib"))
    libraries = sorted(site.glob("musa_*/lib/*.so"))
    assert len(libraries) > 5
    assert {library.name: symbols for library in libraries if (symbols := symbols_of_python(library))} == {}
    modules = sorted(site.glob("musa_*/_C.*.so"))
    names = {module.parent.name for module in modules}
    assert names == {"musa_runtime", "musa_distributed", "musa_compile"}
    assert all(symbols_of_python(module) for module in modules)
