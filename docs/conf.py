# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Configuration of Sphinx, which `python3 tools/dev.py docs` runs: docs/design/manual.md."""

import html
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

sys.path.append(str(Path(__file__).parent))
from search_language import EnglishAndChinese

project = "torch_musa"
author = "torch_musa contributors"
copyright = author
language = "en"

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4
# A fence of this language is the directive below.
myst_fence_as_directive = ["mermaid"]
# Fences whose language is a comment for readers, or that Pygments has no lexer for, are plain text.
highlight_language = "text"

html_theme = "furo"
html_title = "torch_musa"
html_search_language = EnglishAndChinese.lang
html_show_sourcelink = False
html_copy_source = False

# `dev.py docs` puts Mermaid's script here if npm can fetch it. Without it, diagrams are shown as text.
DIAGRAMS = Path(__file__).resolve().parents[1] / "build" / "docs" / "diagrams"
if (DIAGRAMS / "mermaid.min.js").exists():
    html_static_path = [str(DIAGRAMS)]


class Mermaid(Directive):
    """A diagram as Mermaid's text, which the script draws in the browser."""

    has_content = True

    def run(self):
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


def add_script(app, pagename, templatename, context, doctree):
    """Loads the script on pages with a diagram only, because it has 5 MB."""
    if doctree is not None and any('class="mermaid"' in raw.astext() for raw in doctree.findall(nodes.raw)):
        app.add_js_file("mermaid.min.js")


def setup(app):
    app.add_search_language(EnglishAndChinese)
    app.add_directive("mermaid", Mermaid)
    if (DIAGRAMS / "mermaid.min.js").exists():
        app.connect("html-page-context", add_script)
