# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`pip install -e .` at the root runs `dev.py setup` in the environment of that pip; later runs use it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, backend, packages

pytestmark = pytest.mark.once

DEV = """
import json, os, pathlib, sys
prefixes = ("PYTHONPATH", "PYTHONNOUSERSITE", "PIP_BUILD", "PEP517", "_PYP")
hidden = [name for name in os.environ if name.startswith(prefixes)]
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from workspace import packages
print(json.dumps([sys.argv[1:], hidden, str(packages.VENV)]), file=open("build/run.json", "w"))
"""


@pytest.mark.timeout(120)
def test_pip_sets_up_its_own_environment(tmp_path: Path) -> None:
    tree, environment = tmp_path / "tree", tmp_path / "environment"
    shutil.copytree(ROOT / "tools", tree / "tools")
    shutil.copy(ROOT / "pyproject.toml", tree)
    (tree / "tools" / "dev.py").write_text(DEV)
    (tree / "build").mkdir()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip"]
    command = [*pip, "install", "--no-index", "-e", tree, "--config-settings=packages=core"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tree / "build" / "run.json").read_text()) == [
        ["setup", "--core"],
        [],
        str(environment),
    ]
    shown = subprocess.run([*pip, "show", "torch-musa-workspace"], capture_output=True, text=True, check=True)
    assert f"Version: {backend.VERSION}" in shown.stdout


def test_only_the_environment_of_this_tree_is_used(tmp_path: Path) -> None:
    assert packages.own_environment(tmp_path) == ROOT / ".venv"
    packages.claimed(tmp_path).parent.mkdir()
    packages.claimed(tmp_path).write_text("another tree")
    assert packages.own_environment(tmp_path) == ROOT / ".venv"
    packages.claimed(tmp_path).write_text(str(ROOT))
    assert packages.own_environment(tmp_path) == tmp_path


def test_wheels_of_the_workspace_and_unknown_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"Fix: pip install -e \."):
        backend.build_wheel(str(tmp_path))
    with pytest.raises(WorkspaceError, match="packages=some"):
        backend.build_editable(str(tmp_path), {"packages": "some"})
