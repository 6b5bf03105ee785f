# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the manual: `dev.py docs`. docs/design/manual.md describes the steps and the checks."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from . import ROOT, WorkspaceError, diagrams, packages, prerequisites, site_browser, site_pages, tool_venv
from .progress import run_logged

FOLDER = ROOT / "build" / "docs"
PYTHON = FOLDER / "venv" / "bin" / "python"
REQUIREMENTS = ROOT / "requirements-docs.txt"
SOURCE = FOLDER / "source"
GENERATED = FOLDER / "generated"
SITE = FOLDER / "site"
# Generators of reference pages, and the paths that pages link to.
REFERENCE = {
    "reference_python": "docs/reference/python.md",
    "reference_commands": "docs/reference/commands.md",
    "reference_cpp": "docs/reference/cpp.md",
    "reference_operators": "docs/reference/operators.md",
}


def install_tools() -> None:
    """Makes build/docs/venv with the pinned requirements, and fetches Mermaid, unless they are up to date."""
    if sys.version_info < (3, 11):
        raise WorkspaceError(
            f"Sphinx needs Python 3.11 or newer, this is {sys.version.split()[0]}.\n"
            "Fix: run `tools/dev.py docs` with a newer python3"
        )
    tool_venv.make(FOLDER, REQUIREMENTS, "installing the tools of the manual")
    if reason := diagrams.fetch(FOLDER / "diagrams"):
        print(f"diagrams are shown as text: {reason}")


def generate() -> dict[str, str]:
    """Returns the texts of the reference pages by the path that pages link to."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    texts = {}
    for name, page in REFERENCE.items():
        out = GENERATED / f"{name}.md"
        command = [str(packages.PYTHON), str(ROOT / "docs" / f"{name}.py"), "--out", str(out)]
        run_logged(f"generating {page}", command, packages.LOGS / f"docs.{name}.log", cwd=ROOT)
        texts[page] = out.read_text(encoding="utf-8")
    return texts


def run_pages(all_pages: Iterable[site_pages.Page], *, code: bool) -> list[str]:
    """Resolves the names of pages and runs their code blocks in .venv; returns the problems.

    Output of the programs is not shown unless a block fails.
    """
    command = [str(packages.PYTHON), "-m", "workspace.page_runner"]
    command += [] if code else ["--names-only"]
    command += ["--cpp", str(GENERATED / "reference_cpp.md"), "--directory", str(FOLDER / "run")]
    command += [page.source for page in all_pages]
    path = f"{ROOT / 'tools'}{os.pathsep}{ROOT / 'docs'}"
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "PATH": f"{packages.PYTHON.parent}:{os.environ['PATH']}",
        # Kept, so that extensions of pages are compiled again only after a change.
        "TORCH_EXTENSIONS_DIR": str(FOLDER / "extensions"),
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, site_pages.PROBLEMS):
        raise WorkspaceError(f"{done.stdout}{done.stderr}\nthe code of the pages could not be run; see above")
    print(done.stderr, end="", flush=True)
    return done.stdout.splitlines() if done.returncode else []


def external_problems(site: Path) -> list[str]:
    """Returns files of the site that load resources from another host."""
    return [
        f"{path.relative_to(site)}: loads {address}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css")
        for address in site_pages.external(path.read_text(encoding="utf-8"))
    ]


def build_site() -> None:
    """Runs Sphinx with warnings as errors."""
    command = [str(PYTHON), "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    command += ["-c", str(ROOT / "docs"), "-d", str(FOLDER / "doctrees"), str(SOURCE), str(SITE)]
    run_logged("building build/docs/site", command, packages.LOGS / "docs.sphinx.log")


def browser_problems() -> list[str]:
    """Returns the problems that a reader's browser has with the site: scripts, diagrams, search."""
    command = [str(PYTHON), site_browser.__file__, str(SITE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, site_browser.PROBLEMS):
        raise WorkspaceError(
            f"{done.stdout}{done.stderr}\nthe site could not be opened in a browser; see above"
        )
    print(done.stderr, end="", flush=True)
    return done.stdout.splitlines() if done.returncode else []


def run(verbs: Iterable[str], *, code: bool = True) -> int:
    """Builds the site. verbs: the verbs of dev.py. code: whether to run code blocks."""
    start = time.monotonic()
    prerequisites.ensure(prerequisites.DOCS)
    install_tools()
    all_pages = site_pages.collect(ROOT, generate())
    sections = site_pages.navigation((ROOT / site_pages.NAVIGATION).read_text(encoding="utf-8"))
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    repository = packages.workspace_setting(settings, r'^repository\s*=\s*"([^"]*)"') or ""
    problems = site_pages.navigation_problems(all_pages, sections)
    problems += site_pages.stage(all_pages, sections, ROOT, SOURCE, repository)
    problems += site_pages.verb_problems(all_pages.values(), verbs)
    written = [page for page in all_pages.values() if page.source not in REFERENCE.values()]
    problems += run_pages(written, code=code)
    site_pages.refuse(problems)
    build_site()
    site_pages.refuse(external_problems(SITE) + browser_problems())
    seconds = time.monotonic() - start
    print(f"{len(all_pages)} pages in {seconds:.0f} s: {SITE / 'index.html'}")
    return 0
