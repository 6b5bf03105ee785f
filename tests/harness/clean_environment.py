# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A virtual environment that holds chosen distributions of the running one, as links."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from packaging.requirements import Requirement


def required(*names: str) -> dict[str, importlib.metadata.Distribution]:
    """The installed distributions of these names and everything that they require, by name.

    Raises:
        importlib.metadata.PackageNotFoundError: one of them is not installed.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        requirements = [Requirement(text) for text in found[name].requires or ()]
        pending += [r.name for r in requirements if not r.marker or r.marker.evaluate({"extra": ""})]
    return found


class CleanEnvironment:
    """A virtual environment without pip: the pip of the running interpreter installs into it."""

    def __init__(self, folder: Path, *distributions: str) -> None:
        """Links `distributions` and their requirements into a new environment in `folder`."""
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        self.site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        for distribution in required(*distributions).values():
            for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                link = self.site / top
                if not link.exists():
                    link.symlink_to(distribution.locate_file(top))

    def pip_install(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`pip install` with the given arguments, from no index and without this user's settings of pip."""
        command = [sys.executable, "-m", "pip", "--isolated", "--python", str(self.python), "install"]
        return subprocess.run(
            [*command, "--quiet", "--no-index", *arguments], capture_output=True, text=True, timeout=300
        )

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs the environment's Python without the caller's search paths and device settings."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MUSA_", "TORCH_", "PYTHON", "VIRTUAL_ENV"))
        }
        return subprocess.run(
            [str(self.python), *arguments],
            env={**kept, **variables},
            cwd=self.site,
            capture_output=True,
            text=True,
            timeout=300,
        )
