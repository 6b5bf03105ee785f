# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every Python file runs on the oldest supported Python: grammar, standard library, and imports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.harness import skips
from workspace import prerequisites, tree_lint

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
OLDEST = ".".join(map(str, prerequisites.MIN_PYTHON))
# Packages that modules may need beside the standard library.
THIRD_PARTY = {
    "torch", "torchgen", "pluggy", "numpy", "yaml", "rich", "setuptools", "mthreads_ml_py", "pymtml",
    "cyclonedx", "packageurl", "rattler_build",
}  # fmt: skip

IMPORT_ALL = """
import importlib, pkgutil, sys
roots, third_party = sys.argv[1].split(":"), set(sys.argv[2].split(","))
for root in roots:
    sys.path.insert(0, root)
sys.modules.update(dict.fromkeys(third_party))  # as if none were installed
for root in roots:
    for module in pkgutil.walk_packages([root], onerror=lambda name: None):
        if module.name.rpartition(".")[2] == "__main__":
            continue
        try:
            importlib.import_module(module.name)
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            assert isinstance(error, ModuleNotFoundError) and missing in third_party, (module.name, error)
        else:
            print(module.name)
"""


def newer_features(*paths: Path) -> list[str]:
    """Uses of grammar and of the standard library that the oldest Python lacks, as `file: use`."""
    command = [sys.executable, "-c", "import vermin; vermin.main()"]
    command += ["--no-tips", "--violations", f"--target={OLDEST}-"]
    done = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)
    assert done.returncode in (0, 1) and "Analyzing" in done.stdout, done.stdout + done.stderr
    found, file = [], ""
    for line in done.stdout.splitlines():
        if line.startswith("  "):
            needed = [tuple(map(int, version.split("."))) for version in re.findall(r"\b3\.\d+", line)]
            found += [f"{file}: {line.strip()}"] if max(needed, default=(3, 0)) > (3, 10) else []
        else:
            file = line.split()[-1] if line.strip() else ""
    return found


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


def old_interpreter() -> str | None:
    """A Python of the oldest supported version that starts, from PATH or from pyenv."""
    name = f"python{OLDEST}"
    found = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/{OLDEST}.*/bin/{name}"))]
    for path in filter(None, found):
        # pyenv's shim on PATH exists for every version and starts only for those that are selected.
        if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return str(path)
    return None


def import_all(*roots: Path) -> subprocess.CompletedProcess[str]:
    """Imports every module below the roots that needs only the standard library and pip's own tomli."""
    interpreter = old_interpreter()
    if interpreter is None:
        skips.skip_permanently("python3.10")
    command = [interpreter, "-c", IMPORT_ALL, ":".join(map(str, roots)), ",".join(THIRD_PARTY)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""})


def test_no_file_uses_a_newer_python_than_the_oldest_supported():
    files = [path for path in tree_lint.tracked_files(ROOT) if path.suffix == ".py"]
    files.append(ROOT / "packages/musa-emulator/mcc/bin/mcc")
    assert len(files) > 200
    assert newer_features(*files) == []


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import tomllib\n", "tomllib"),
        ("import enum\nclass A(enum.StrEnum):\n    x = 'a'\n", "StrEnum"),
        ("try:\n    pass\nexcept* ValueError:\n    pass\n", "except*"),
        ("from datetime import UTC\n", "UTC"),
        ("import itertools\nitertools.batched([1], 2)\n", "batched"),
    ],
)
def test_a_newer_feature_is_found(tmp_path, text, use):
    (tmp_path / "new.py").write_text(text)
    [found] = newer_features(tmp_path / "new.py")
    assert use in found and "new.py" in found


def test_a_newer_module_with_a_substitute_is_allowed(tmp_path):
    lines = ["import sys", "if sys.version_info >= (3, 11):", "    import tomllib", "else:"]
    (tmp_path / "guarded.py").write_text("\n".join([*lines, "    import tomli as tomllib", ""]))
    assert newer_features(tmp_path / "guarded.py") == []


def test_the_modules_that_need_no_torch_import_on_the_oldest_python(tmp_path):
    # The wheel requires tomli below Python 3.11. pip carries a copy of it.
    (tmp_path / "tomli.py").write_text("from pip._vendor.tomli import *\n")
    roots = [tmp_path, ROOT / "tools", *sorted((ROOT / "packages").glob("*/src"))]
    done = import_all(*roots, ROOT / "packages/musa-emulator/mcc/lib")
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"musa_port.rules", "musa_emulator", "driver", "workspace.packages"} <= imported


def test_a_module_that_fails_on_the_oldest_python_is_reported(tmp_path):
    (tmp_path / "uses_tomllib.py").write_text("import tomllib\n")
    done = import_all(tmp_path)
    assert done.returncode != 0 and "uses_tomllib" in done.stderr and "tomllib" in done.stderr


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
