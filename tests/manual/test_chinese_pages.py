# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The code blocks of a Chinese page, which do not run, are those of the English page that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.pages import code_blocks

pytestmark = pytest.mark.once

CHINESE = Path(__file__).resolve().parents[2] / "docs" / "zh"
# A Chinese page names its English page below its heading.
ORIGINAL = re.compile(r"\A# .+\n\n英文版\uff1a\[[^\]\n]+\]\((\S+?)\)。\n")
COMMENTS = {"python": r"#.*", "bash": r"(?<!\S)#.*", "cmake": r"#.*", "cpp": r"//.*"}


def code(text: str) -> list[str]:
    """The blocks without their comments, which are translated."""
    plain = [re.sub(COMMENTS.get(block.language, "(?!)"), "", block.text) for block in code_blocks(text)]
    return ["\n".join(line.rstrip() for line in block.splitlines()) for block in plain]


@pytest.mark.parametrize("page", sorted(CHINESE.rglob("*.md")), ids=lambda page: page.stem)
def test_a_chinese_page_has_the_code_of_its_english_page(page):
    text = page.read_text(encoding="utf-8")
    english = page.parent / ORIGINAL.match(text)[1]
    assert code(text) == code(english.read_text(encoding="utf-8"))


def test_another_block_is_noticed():
    english = "Text.\n\n```python\nx = 1  # one\n```\n"
    assert code(english) == code("文字。\n\n```python\nx = 1  # 一\n```\n")
    assert code(english) != code("文字。\n\n```python\nx = 2  # 一\n```\n")
