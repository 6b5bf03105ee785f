# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the manual: `dev.py docs`. docs/design/manual.md describes the steps and the checks."""

import shutil
import subprocess
import sys
import tarfile

from tests.harness import tier

from . import ROOT, WorkspaceError, packages, prerequisites
from .progress import run_logged

FOLDER = ROOT / "build" / "docs"
SITE = FOLDER / "site"
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


def build(manual: str, source: str, *options: str) -> None:
    """Builds one of the manuals of the site: "en" or "zh"."""
    command = [str(packages.PYTHON), "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
    command += ["-c", "docs", *options, "-d", str(FOLDER / "doctrees" / manual), source, str(SITE / manual)]
    run_logged(f"building build/docs/site/{manual}", command, packages.LOGS / f"docs.{manual}.log", cwd=ROOT)


def changed_pages() -> list[str]:
    """Pages of docs/ that differ from the base of the branch, and whose code blocks run."""
    found = (
        ROOT / name for name in tier.changed_files() if name.startswith("docs/") and name.endswith(".md")
    )
    return [
        str(page)
        for page in sorted(found)
        if page.is_file() and not page.is_relative_to(ROOT / "docs" / "zh")
    ]


def run(code: str = "all") -> int:
    """Builds and checks the site. code: the pages whose code blocks run: "all", "changed" ones, or "none"."""
    prerequisites.ensure(prerequisites.DOCS)
    install_tools()
    build("en", ".")
    build("zh", "docs/zh", "-t", "zh")
    shutil.copy(ROOT / "docs" / "index.html", SITE)
    pages = {"all": ["docs"], "changed": changed_pages(), "none": []}[code]
    command = [str(packages.PYTHON), "-m", "pytest", "-q", "--durations=5", "-n", "auto", "--dist=loadscope"]
    command += ["tests/manual/test_site.py", *pages]
    command += ["--full"] * (code == "all")  # every page in the browser
    status = subprocess.run(command, cwd=ROOT).returncode
    print(f"the manual: {SITE / 'index.html'}; screenshots: {SITE.with_name('screenshots')}")
    return status
