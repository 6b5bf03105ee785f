# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Configuration of Sphinx, which `python3 tools/dev.py docs` runs: docs/design/manual.md."""

project = "torch_musa"
author = "torch_musa contributors"
copyright = author
language = "en"

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 4
# Fences whose language is a comment for readers, or that Pygments has no lexer for, are plain text.
highlight_language = "text"

html_theme = "furo"
html_title = "torch_musa"
# Latin words and Chinese ones in one index.
html_search_language = "zh"
html_show_sourcelink = False
html_copy_source = False
