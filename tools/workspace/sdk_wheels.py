# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the wheels for an installed MUSA SDK: `dev.py wheels --sdk /usr/local/musa`.

On a machine with the vendor's SDK, or in its container. The environment and the build folders are in
build/sdk/<kind>, so that those of this tree do not change, and the wheels in dist/<kind>: pip would choose
between the wheels of two SDKs in one folder by their names. Each package is built against the wheels before
it. The emulator is not built, nor the packages that only its extra installs. No device is used.
"""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from . import ROOT, WorkspaceError, packages, torch_metadata
from .progress import run_logged

FOLDER = ROOT / "build" / "sdk"
NEEDED = ("lib/libmusart.so", "include/musa_runtime.h", "bin/mcc", "cmake/FindMUSA.cmake")
# Sections of requirements-dev.txt that a build needs, by title, and single lines.
SECTIONS = ("# Exact versions", "# plugin discovery", "# build")
LINES = ("PyYAML",)


def kind_of(home: Path) -> str:
    """Returns the kind of an SDK, as "musa4".

    Raises:
        WorkspaceError: if the folder is no complete SDK, or the emulator.
    """
    missing = [name for name in NEEDED if not (home / name).exists()]
    if missing:
        raise WorkspaceError(
            f"{home} has no {', '.join(missing)}, so it is no complete MUSA SDK.\n"
            "Likely causes: --sdk names another folder; only the SDK's libraries are installed.\n"
            "Fix: install the MUSA SDK with its development files, then: python3 tools/dev.py wheels "
            "--sdk <directory of the MUSA SDK>"
        )
    kind = torch_metadata.sdk_kind({"MUSA_HOME": str(home)})
    if kind == "emulator":
        raise WorkspaceError(
            f"{home} is the emulator.\nFix: python3 tools/dev.py wheels, which builds the wheels for it, or "
            "--sdk <directory of the MUSA SDK>"
        )
    return kind


def package_names(root: Path = ROOT) -> list[str]:
    """Returns the packages in build order, without those of the umbrella's extra `emulator`."""
    text = (root / "packages" / "torch-musa" / "pyproject.toml").read_text()
    listed = re.search(r"^emulator = \[(.*?)\]", text, re.MULTILINE | re.DOTALL)
    if listed is None:
        raise WorkspaceError("packages/torch-musa/pyproject.toml has no extra `emulator`")
    left_out = set(re.findall(r'"([\w-]+)==', listed[1]))
    return [name for name in packages.package_names(root) if name not in left_out]


def requirements(text: str) -> str:
    """Returns the lines of requirements-dev.txt that a build needs."""
    parts = [part for part in text.split("\n\n") if part.startswith(SECTIONS)]
    lines = [line for line in text.splitlines() if line.startswith(LINES)]
    if len(parts) != len(SECTIONS) or len(lines) != len(LINES):
        raise WorkspaceError("requirements-dev.txt has not the sections that a build needs")
    return "\n\n".join([*parts, *lines, ""])


def build(home: Path, options: packages.Options, names: Sequence[str] = ()) -> tuple[str, list[Path]]:
    """Builds the wheels; returns the kind of the SDK and the wheels in dist/<kind>.

    names: the packages to build, in order; all by default.
    """
    kind = kind_of(home)
    folder, target = FOLDER / kind, ROOT / "dist" / kind
    venv = folder / "venv"
    python = str(venv / "bin" / "python")
    environment = {
        **packages.build_environment(),
        "MUSA_HOME": str(home),
        "VIRTUAL_ENV": str(venv),
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }

    def run(title: str, *command: str) -> None:
        run_logged(f"{kind}: {title}", list(command), folder / "logs" / f"{title}.log", environment, cwd=ROOT)

    if not Path(python).exists():
        run("venv", sys.executable, "-m", "venv", str(venv))
    needed = folder / "requirements.txt"
    needed.write_text(requirements(packages.REQUIREMENTS.read_text()))
    run("requirements", python, "-m", "pip", "install", "-r", str(needed))
    made = []
    for name in names or package_names():
        for old in packages.wheels_of(name, target):
            old.unlink()
        settings = [setting for setting in options.config_settings() if "=build-dir=" not in setting]
        settings.append(f"--config-settings=build-dir={folder / 'objects' / name}")
        command = [python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-v", "-w", str(target)]
        run(name, *command, *settings, str(ROOT / "packages" / name))
        [wheel] = packages.wheels_of(name, target)
        run(f"{name} installed", python, "-m", "pip", "install", "--no-deps", "--force-reinstall", str(wheel))
        made.append(wheel)
    return kind, made
