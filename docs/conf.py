# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Configuration of Sphinx, which `python3 tools/dev.py docs` runs: docs/design/manual.md."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "extensions"), str(ROOT / "tools")]
from search_language import EnglishAndChinese  # noqa: E402

from workspace import versions  # noqa: E402
from workspace.packages import workspace_setting  # noqa: E402
from workspace.prerequisites import find_browser  # noqa: E402

# Programs whose output is on a page run in the environment that runs Sphinx.
os.environ |= {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "COLUMNS": "80",
    "NO_COLOR": "1",
}

settings = (ROOT / "pyproject.toml").read_text()
project = "torch_musa"
author = copyright = "torch_musa contributors"
version = release = versions.of_workspace()
html_title = f"torch_musa {version}"

# `sphinx -t zh` builds the Chinese manual, whose source folder is docs/zh. That of the English one is the
# root of the repository, so that links work on code hosts and in the site.
CHINESE = tags.has("zh")  # noqa: F821 - Sphinx defines `tags`
language = "zh_CN" if CHINESE else "en"
root_doc = "index" if CHINESE else "docs/index"
english_pages = [
    "docs/**.md",
    "docs/reference/**.rst",
    "packages/*/README.md",
    "examples/*/README.md",
    "*.md",
    "tests/README.md",
]
other_files = [
    "build",
    ".*",
    "dist",
    "packages/*/[!R]*",
    "tests/[!R]*",
    "docs/zh",
    "README.zh.md",
    "CHANGELOG.md",
    "**navigation.md",
]
chinese_pages = ["**.md"]
chinese_other_files = ["navigation.md"]
include_patterns = chinese_pages if CHINESE else english_pages
exclude_patterns = chinese_other_files if CHINESE else other_files

extensions = [
    "myst_parser",
    "breathe",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxcontrib.programoutput",
    "languages",
    "names",
    "operators",
    "python_names",
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
html_theme_options = {}
# The address of the source, for links that edit a page: pyproject.toml or the workflow may have it.
configured = workspace_setting(settings, r'^repository = "([^"]+)"')
if repository := configured or os.environ.get("MUSA_DOCS_REPOSITORY"):
    html_theme_options = {
        "source_repository": repository,
        "source_branch": "main",
        "source_directory": "docs/zh/" if CHINESE else "",
    }
html_search_language = EnglishAndChinese.lang if CHINESE else "en"
html_search_scorer = str(DOCS / "scorer.js")
html_show_sourcelink = html_copy_source = False
html_static_path = ["static"]
html_css_files = ["manual.css"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
locale_dirs = [str(DOCS / "locale")]


def add_navigation(app, name, text):
    """Appends the navigation to the start page."""
    if name == root_doc:
        folder = DOCS / "zh" if CHINESE else DOCS
        text[0] += (folder / "navigation.md").read_text(encoding="utf-8").partition("\n\n")[2]


def setup(app):
    app.add_search_language(EnglishAndChinese)
    app.connect("source-read", add_navigation)
