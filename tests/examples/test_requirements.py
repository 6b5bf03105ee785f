# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The examples name the packages that they need, and write nothing into the folder in which they are
started."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Import name -> name for pip. torch is not listed, because every example needs it.
WHEELS = {
    "matplotlib": "matplotlib",
    "sklearn": "scikit-learn",
    "tqdm": "tqdm",
    "torchvision": "torchvision",
    "PIL": "pillow",
}
OURS = {"torch", "torch_musa", "train_digits", *sys.stdlib_module_names}


def imported(path: Path) -> set[str]:
    """The third-party packages, except torch, that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
    return found - OURS


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_package_an_example_needs_is_named_in_it_and_in_the_guide(path):
    needed = {WHEELS[name] for name in imported(path)}  # a new one must be added to WHEELS
    guide = (ROOT / "docs" / "guide" / "first_program.md").read_text()
    [row] = re.findall(rf"^\| \[{path.name}\].*$", guide, re.MULTILINE)
    commands = " ".join(re.findall(r"pip install ([^`\n\"]*)", row)).split()
    assert needed <= set(commands)
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert all(name in docstring for name in needed), needed


def test_there_are_packages_to_name():
    assert {name for path in EXAMPLES for name in imported(path)} == set(WHEELS)


@pytest.mark.parametrize(
    ("example", "module", "wheels"),
    [
        ("train_digits.py", "matplotlib", "matplotlib scikit-learn tqdm"),
        ("train_digits.py", "sklearn", "matplotlib scikit-learn tqdm"),
        ("train_cifar10.py", "torchvision", "torchvision"),
        ("resnet50_inference.py", "torchvision", "torchvision pillow"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(example, module, wheels):
    # Runs in a child process: `None` in sys.modules makes an import fail.
    code = f"""
import runpy, sys
sys.modules[{module!r}] = None
sys.argv = [{example!r}, "--device", "cpu"] + (["x.jpg"] if "resnet" in {example!r} else [])
runpy.run_path({str(ROOT / "examples" / example)!r}, run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert example in done.stderr and f"Fix: {sys.executable} -m pip install {wheels}\n" in done.stderr


def test_nothing_is_written_into_the_folder_the_examples_are_started_from():
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert "examples/out/" in ignored
    for path in EXAMPLES:
        text = path.read_text()
        # A bare Path("x") as a default is below the current folder.
        assert not re.search(r"default=Path\(", text), path.name
        if '"--out"' in text:
            assert "default=OUT /" in text, path.name
