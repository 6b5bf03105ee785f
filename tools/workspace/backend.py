# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The build backend of the workspace (PEP 660): `pip install -e .` sets up the environment of that pip.

It runs `dev.py setup` there, because pip orders neither editable builds nor builds without isolation. The
wheel that pip gets is empty. `--config-settings=packages=core` leaves the op packs out.
"""

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from . import ROOT, WorkspaceError, packages

NAME = "torch_musa_workspace"
VERSION = packages.workspace_setting((ROOT / "pyproject.toml").read_text(), r'^version = "([^"]*)"')
INFO = f"{NAME}-{VERSION}.dist-info"
# The wheel has nothing else.
METADATA = {
    "METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: workspace\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
# pip sets these for the hooks of a build; they would hide the environment from the pip of `dev.py setup`.
HIDDEN = ("PIP_BUILD_TRACKER", "PYTHONPATH", "PYTHONNOUSERSITE", "_PYPROJECT_HOOKS", "PEP517_")


def outer_environment(inner: dict[str, str]) -> dict[str, str]:
    """Returns the environment variables without those that pip sets for a build."""
    return {name: value for name, value in inner.items() if not name.startswith(HIDDEN)}


def prepare_metadata_for_build_editable(folder: str, config_settings: dict | None = None) -> str:
    (Path(folder) / INFO).mkdir()
    for name, text in METADATA.items():
        (Path(folder) / INFO / name).write_text(text)
    return INFO


def build_editable(
    folder: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    """Installs the requirements and packages, and writes the wheel; returns its name."""
    chosen = (config_settings or {}).get("packages", "all")
    if chosen not in ("all", "core"):
        raise WorkspaceError(f"packages={chosen} is unknown.\nFix: --config-settings=packages=core, or =all")
    env = outer_environment(dict(os.environ))
    if subprocess.run([sys.executable, "-m", "pip", "--version"], env=env, capture_output=True).returncode:
        raise WorkspaceError(
            f"{sys.prefix} has no pip; it may be an isolated environment of uv.\n"
            "Fix: python -m pip install -e ., or uv pip install --no-build-isolation -e . with pip installed"
        )
    claim = packages.claimed(Path(sys.prefix))
    claim.parent.mkdir(exist_ok=True)
    claim.write_text(str(ROOT))
    command = [sys.executable, str(ROOT / "tools" / "dev.py"), "setup", *["--core"] * (chosen == "core")]
    subprocess.run(command, env=env, check=True)
    wheel = Path(folder) / f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        record = f"{INFO}/RECORD,,\n"
        for name, text in METADATA.items():
            archive.writestr(f"{INFO}/{name}", text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{INFO}/{name},sha256={digest},{len(text)}\n"
        archive.writestr(f"{INFO}/RECORD", record)
    return wheel.name


def build_wheel(
    folder: str, config_settings: dict | None = None, metadata_directory: str | None = None
) -> str:
    raise WorkspaceError(
        "The workspace is installed in place.\n"
        "Fix: pip install -e ., or python3 tools/dev.py wheels for wheels of the packages"
    )
