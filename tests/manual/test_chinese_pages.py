# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Chinese pages have the code blocks of the English pages that they name, the right terms and no stray space.

The blocks of Chinese pages do not run.
"""

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


PAGES = [page for page in sorted(CHINESE.rglob("*.md")) if page.name not in ("navigation.md", "reference.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_chinese_page_has_the_code_of_its_english_page(page):
    text = page.read_text(encoding="utf-8")
    english = page.parent / ORIGINAL.match(text)[1]
    assert code(text) == code(english.read_text(encoding="utf-8"))


def test_another_block_is_noticed():
    english = "Text.\n\n```python\nx = 1  # one\n```\n"
    assert code(english) == code("文字。\n\n```python\nx = 1  # 一\n```\n")
    assert code(english) != code("文字。\n\n```python\nx = 2  # 一\n```\n")


# A line break between Chinese characters, which browsers show as a space.
BROKEN = re.compile(
    r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]\n(?=[\u3000-\u303f\u3400-\u9fff\uff00-\uffef])"
)
# Terms, and the term that the manual uses instead.
TERMS = {"设备内存": "显存", "GPU 内存": "显存", "主存": "主机内存"}


def problems(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    found = [f"a line break after {match[0]!r}" for match in BROKEN.finditer(prose)]
    return found + [f"{term}: write {instead}" for term, instead in TERMS.items() if term in text]


@pytest.mark.parametrize("page", sorted(CHINESE.rglob("*.md")), ids=lambda page: page.stem)
def test_chinese_prose_has_no_stray_space_and_uses_the_terms_of_the_manual(page):
    assert problems(page.read_text(encoding="utf-8")) == []


def test_a_broken_line_and_another_term_are_noticed():
    assert problems("张量\uff0c\n释放。\n\n释放\n`x`\n") == ["a line break after '\uff0c\\n'"]
    assert problems("```\n甲\n乙\n```\n设备内存。\n") == ["设备内存: write 显存"]
