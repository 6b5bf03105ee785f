# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the manual: `dev.py docs`. docs/design/manual.md describes the steps and the checks."""

import shutil
import subprocess
import sys
import tarfile

from . import ROOT, WorkspaceError, packages, prerequisites
from .progress import run_logged

FOLDER = ROOT / "build" / "docs"
REQUIREMENTS = ROOT / "requirements-docs.txt"
# npm's package with the script that draws diagrams.
MERMAID = "mermaid@12.3.0"


def install_tools() -> None:
    """Installs the requirements of the manual into .venv and fetches Mermaid, unless they are up to date."""
    if sys.version_info < (3, 11):
        raise WorkspaceError(
            f"Sphinx needs Python 3.11 or newer, this is {sys.version.split()[0]}.\n"
            "Fix: run `tools/dev.py docs` with a newer python3"
        )
    stamp, text = packages.STAMPS / "docs", packages.environment_context() + REQUIREMENTS.read_text()
    if not packages.matches(stamp, text):
        command = [str(packages.PYTHON), "-m", "pip", "install", "-r", str(REQUIREMENTS)]
        run_logged("installing the tools of the manual", command, packages.LOGS / "docs.requirements.log")
        stamp.write_text(text)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not (FOLDER / "mermaid.min.js").exists():
        fetch_mermaid()


def fetch_mermaid() -> None:
    """Writes Mermaid's script into build/docs. Without npm, diagrams are shown as text."""
    npm = shutil.which("npm")
    command = [npm or "", "pack", MERMAID, "--silent", "--pack-destination", str(FOLDER)]
    if npm is None or subprocess.run(command, capture_output=True, timeout=120).returncode:
        print("diagrams are shown as text: npm is not installed, or its registry is not reachable")
        return
    with tarfile.open(next(FOLDER.glob("mermaid-*.tgz"))) as archive:
        script = archive.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        (FOLDER / "mermaid.min.js").write_bytes(script.read())


def run(*, code: bool = True) -> int:
    """Builds and checks the site. code: whether to run the code blocks of pages."""
    prerequisites.ensure(prerequisites.DOCS)
    install_tools()
    site = FOLDER / "site"
    command = [str(packages.PYTHON), "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    command += ["-c", "docs", "-d", str(FOLDER / "doctrees"), ".", str(site)]
    run_logged("building build/docs/site", command, packages.LOGS / "docs.sphinx.log", cwd=ROOT)
    tests = ["tests/manual", *["docs"] * code]
    status = subprocess.run([str(packages.PYTHON), "-m", "pytest", "-q", *tests], cwd=ROOT).returncode
    print(f"the manual: {site / 'index.html'}")
    return status
