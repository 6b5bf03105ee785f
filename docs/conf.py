# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Configuration of Sphinx, which `python3 tools/dev.py docs` runs: docs/design/manual.md."""

import os
import shlex
import subprocess
import sys
import types
from pathlib import Path

from sphinx import addnodes

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "extensions"), str(ROOT / "tools")]
from search_language import EnglishAndChinese  # noqa: E402

from workspace.prerequisites import find_browser  # noqa: E402

# Programs whose output is on a page run in the environment that runs Sphinx.
os.environ |= {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "COLUMNS": "80",
    "NO_COLOR": "1",
}

project = html_title = "torch_musa"
author = copyright = "torch_musa contributors"
language = "en"

# The source folder is the root of the repository, so that links work on code hosts and in the site.
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/reference/python.rst",
    "packages/*/README.md",
    "*.md",
    "tests/README.md",
]
exclude_patterns = [
    "build",
    ".*",
    "dist",
    "packages/*/[!R]*",
    "tests/[!R]*",
    "CHANGELOG.md",
    "docs/navigation.md",
]

extensions = [
    "myst_parser",
    "breathe",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxcontrib.programoutput",
    "names",
    "operators",
]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 6
# Fences whose language is a comment for readers, or that Pygments has no lexer for, are plain text.
highlight_language = "text"

autodoc_default_options = {"members": True, "undoc-members": True}
autodoc_typehints_format = "short"
napoleon_use_ivar = True
default_role = "code"

os.makedirs(ROOT / "build" / "docs", exist_ok=True)
subprocess.run(["doxygen", "docs/Doxyfile"], cwd=ROOT, check=True)
breathe_projects = {"musa-runtime": str(ROOT / "build" / "docs" / "doxygen" / "xml")}
breathe_default_project = "musa-runtime"
breathe_default_members = ("members", "undoc-members")

# `dev.py docs` fetches Mermaid if npm is installed. Without it, diagrams are shown as text.
if (ROOT / "build" / "docs" / "mermaid.min.js").exists():
    extensions.append("sphinxcontrib.mermaid")
    myst_fence_as_directive = ["mermaid"]
    mermaid_output_format = "svg"
    mermaid_cmd = shlex.join(
        [sys.executable, str(DOCS / "extensions" / "diagram.py"), "--browser", find_browser()]
    )

html_theme = "furo"
html_search_language = EnglishAndChinese.lang
html_show_sourcelink = html_copy_source = False
html_extra_path = ["index.html"]


def add_navigation(app, name, text):
    """Appends the navigation to the start page."""
    if name == root_doc:
        text[0] += (DOCS / "navigation.md").read_text(encoding="utf-8").partition("\n\n")[2]


def unlink(app, doctree):
    """Replaces links to folders, and to pages that are not in the site, by their text."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(doctree.findall(addnodes.pending_xref)):
        page = link["reftarget"] not in app.env.found_docs and ROOT / f"{link['reftarget']}.md"
        if (folder / link["reftarget"]).is_dir() or (page and page.exists()):
            link.replace_self(link.children)


def skip_described(app, what, name, value, skip, options):
    """Leaves functions and classes out of modules below torch.musa if torch.musa has them too."""
    is_module = what == "module" and isinstance(value, (type, types.FunctionType))
    described = app.env.temp_data.setdefault("described", set())
    repeated = is_module and value in described
    if is_module:
        described.add(value)
    return repeated or None


def setup(app):
    app.connect("autodoc-skip-member", skip_described)
    app.connect("doctree-read", unlink)
    app.add_search_language(EnglishAndChinese)
    app.connect("source-read", add_navigation)
