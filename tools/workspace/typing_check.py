# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the types of the Python API with mypy and pyright: `dev.py lint --types`, docs/design/types.md."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from . import ROOT, WorkspaceError, packages, tool_venv

FOLDER = ROOT / "build" / "typing"
REQUIREMENTS = ROOT / "requirements-typing.txt"
SAMPLES = ROOT / "tests" / "typing"


def run(site: Path = packages.SITE) -> int:
    """Returns 0 if the type checkers find no error. site: the folder with torch and the requirements."""
    tool_venv.make(FOLDER, REQUIREMENTS, "installing the type checkers")
    prepare(site)
    programs = FOLDER / "venv" / "bin"
    mypy = [programs / "mypy", "--cache-dir", FOLDER / "mypy"]
    sources = [
        word
        for path in sorted(ROOT.glob("packages/*/src/*/__init__.py"))
        for word in ("-p", path.parent.name)
    ]
    commands = (
        [*mypy, *sources],
        [*mypy, *sorted(SAMPLES.glob("*.py"))],
        [programs / "basedpyright", "--pythonpath", programs / "python"],
    )
    return max(subprocess.run(command, cwd=ROOT).returncode for command in commands)


def prepare(site: Path) -> None:
    """Sets the search path of the type checkers: the stub package of torch.musa, the sources, and `site`."""
    stubs = FOLDER / "site"
    stubs.mkdir(parents=True, exist_ok=True)
    if not (site / "torch" / "__init__.py").is_file():
        raise WorkspaceError(f"{site} has no torch.\nFix: python3 tools/dev.py setup")
    type_stubs().write(stubs, site / "torch", pack_modules(ROOT))
    sources = sorted((ROOT / "packages").glob("*/src"))
    [own] = (FOLDER / "venv" / "lib").glob("python3.*/site-packages")
    (own / "workspace.pth").write_text("".join(f"{path}\n" for path in (stubs, *sources, site)))


def type_stubs():
    """Returns torch_musa.type_stubs, without importing torch_musa, which imports torch."""
    sys.path.append(str(ROOT / "packages" / "musa-runtime" / "src"))
    path = ROOT / "packages" / "torch-musa" / "src" / "torch_musa" / "type_stubs.py"
    spec = importlib.util.spec_from_file_location("type_stubs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pack_modules(root: Path) -> dict[str, str]:
    """Returns the modules that packs add to torch.musa: `{"amp": "musa_amp"}`."""
    found = {}
    for path in sorted(root.glob("packages/*/pyproject.toml")):
        text = path.read_text(encoding="utf-8")
        pattern = r'^\[project\.entry-points\."torch_musa\.modules\.v2"\]\n((?:.+\n)*)'
        for section in re.findall(pattern, text, re.MULTILINE):
            found.update(re.findall(r'^(\w+)\s*=\s*"([\w.]+)"', section, re.MULTILINE))
    return found
