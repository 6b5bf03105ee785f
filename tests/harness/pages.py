# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The code blocks of a Markdown page, for tests that run or compare them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from sybil import Document
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

COMMENT = re.compile(r"<!-- (.*) -->")
FILE = re.compile(r"file: (?!/)(\S+)")


class Block(NamedTuple):
    """A code block: its language, its text, and the comment on the line above it."""

    language: str
    text: str
    comment: str


def code_blocks(page: str) -> list[Block]:
    """The fenced code blocks of a page, in order."""
    found = []
    for region in FencedCodeBlockLexer(r"[^\n`]*")(Document(page, "")):
        comment = COMMENT.fullmatch(page[: region.start].removesuffix("\n").rpartition("\n")[2])
        source = str(region.lexemes["source"])
        found.append(Block(region.lexemes["language"], source, comment[1] if comment else ""))
    return found


def write_file(directory: Path, name: str, text: str) -> None:
    """Writes a file of a page below `directory`."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
