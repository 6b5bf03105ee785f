# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tests whose packages are not installed are skipped with the command that installs them.

`python3 tools/dev.py demo` installs the core alone. A folder of tests/ needs the package of its name; a test
that needs others says so: ``@pytest.mark.needs("musa-ops-ported")``. One that sets TORCH_MUSA_OPS for a
process, or runs under a policy (policies.py), needs the packages of these providers.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Packages that all tests of a folder need besides the one of its name.
NEEDED = {"sdk_programs": ("musa-port", "musa-emulator-mudnn", "musa-emulator-mccl", "musa-emulator-math")}
# Packages of the providers of operators.
PROVIDERS = {"host": "musa-ops-host", "mudnn": "musa-ops-mudnn", "ported": "musa-ops-ported"}


@cache
def workspace_packages() -> tuple[str, ...]:
    """The packages that `python3 tools/dev.py setup` installs."""
    from workspace.packages import package_names  # processes that tests start have no tools/ on their path

    return tuple(package_names())


@cache
def installed(package: str) -> bool:
    try:
        importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def reason(packages: tuple[str, ...]) -> str | None:
    """Why tests that need these packages are skipped, or None.

    Raises:
        ValueError: if the workspace has no such package.
    """
    if unknown := [package for package in packages if package not in workspace_packages()]:
        raise ValueError(f"there is no package {unknown[0]}; there are {', '.join(workspace_packages())}")
    absent = [package for package in packages if not installed(package)]
    return f"{' and '.join(absent)} not installed. Fix: python3 tools/dev.py setup" if absent else None


def reason_of_folder(path: Path) -> str | None:
    """Why the tests of a file are skipped: the package that its folder below tests/ is named after, or one in
    NEEDED, is not installed."""
    if not path.is_relative_to(ROOT / "tests"):
        return None
    folder = path.relative_to(ROOT / "tests").parts[0]
    package = folder.replace("_", "-")
    return reason((package,) * (package in workspace_packages()) + NEEDED.get(folder, ()))


def skip_without(providers: Iterable[str]) -> None:
    """Skips the running test if the package of one of these providers of operators is not installed."""
    if why := reason(tuple(PROVIDERS[name] for name in providers if name in PROVIDERS)):
        pytest.skip(why)


class AbsentModule(pytest.Module):
    """A file of tests that is skipped without being imported."""

    def collect(self):
        pytest.skip(reason_of_folder(self.path), allow_module_level=True)
