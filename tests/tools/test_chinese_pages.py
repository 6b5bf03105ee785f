# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Chinese page has the code, output, messages, names and links of the English page that it translates."""

from __future__ import annotations

import os
import re
from itertools import zip_longest
from pathlib import Path

import pytest

import pages
from workspace.site_pages import HEADING, LINK, NAVIGATION, navigation

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
CHINESE = "docs/zh/"
# A Chinese page names its English page below its heading.
ORIGINAL = re.compile(r"\A# .+\n\n英文版\uff1a\[[^\]\n]+\]\((\S+?)\)。\n")
COMMENTS = {"python": r"#.*", "bash": r"(?<!\S)#.*", "cmake": r"#.*", "cpp": r"//.*"}
SPAN = re.compile(r"`([^`\n]+)`")
# Names in code font and numbers. The other words of a row are translated.
FIXED = re.compile(r"`[^`\n]+`|(?<![\w.])\d+(?:\.\d+)*")


def translations() -> dict[str, str]:
    """The English page of each Chinese page; both are paths in the repository."""
    found = {}
    for page in sorted(ROOT.glob(f"{CHINESE}**/*.md")):
        original = ORIGINAL.match(page.read_text(encoding="utf-8"))
        assert original, f"{page} does not begin with a heading and a link to its English page"
        english = (page.parent / original[1]).resolve()
        found[str(page.relative_to(ROOT))] = str(english.relative_to(ROOT))
    return found


def blocks(text: str) -> list[tuple[str, str, str]]:
    """Language, directive and code of each block. Comments in the code may be translated and are left out."""
    found = []
    for block in pages.code_blocks(text):
        code = re.sub(COMMENTS.get(block.language, "(?!)"), "", block.text)
        found.append((block.language, block.comment, "\n".join(line.rstrip() for line in code.splitlines())))
    return found


def rows(text: str) -> list[list[str]]:
    """Names and numbers of each table row, without the targets of links."""
    lines = LINK.sub(lambda link: link["text"], pages.without_code(text)).splitlines()
    return [sorted(FIXED.findall(line)) for line in lines if line.startswith("|")]


def levels(text: str) -> list[int]:
    """The level of each heading."""
    return [len(re.match("#+", found[0])[0]) for found in HEADING.finditer(pages.without_code(text))]


def names(text: str) -> set[str]:
    """The code spans of a page."""
    return set(SPAN.findall(pages.without_code(text)))


def differences(english: str, chinese: str) -> list[str]:
    """The differences between an English page and its Chinese version that translation does not explain."""
    found = []
    for kind, of in ("code block", blocks), ("table row", rows), ("level of heading", levels):
        for number, (first, second) in enumerate(zip_longest(of(english), of(chinese)), 1):
            if first != second:
                found.append(f"{kind} {number}: {first!r} in English, {second!r} in Chinese")
    found += [f"`{name}` is only on the English page" for name in sorted(names(english) - names(chinese))]
    found += [f"`{name}` is only on the Chinese page" for name in sorted(names(chinese) - names(english))]
    return found


def linked(page: str, text: str) -> set[str]:
    """The files of the repository that a page links to, by path in the repository."""
    targets = {link["target"].partition("#")[0] for link in LINK.finditer(pages.without_code(text))}
    files = {target for target in targets if target and "://" not in target}
    return {os.path.normpath(Path(page).parent / file) for file in files}


def expected(chinese: str, english: str, text: str, translated: dict[str, str]) -> set[str]:
    """The files that a Chinese page has to link to: its English page, and the links of that page."""
    of_english = {original: page for page, original in translated.items()}
    return {english} | {of_english.get(target, target) for target in linked(english, text)} - {chinese}


@pytest.mark.parametrize(("chinese", "english"), translations().items())
def test_a_chinese_page_agrees_with_its_english_page(chinese, english):
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in (english, chinese)]
    assert differences(*texts) == []


def test_chinese_pages_are_in_the_order_of_the_english_section():
    sections = navigation((ROOT / NAVIGATION).read_text(encoding="utf-8"))
    english = translations()
    translated = [english[page] for page in sections["用户指南"]]
    assert translated == [page for page in sections["User guide"] if page in translated]
    assert set(english) == set(sections["用户指南"])


@pytest.mark.parametrize(("chinese", "english"), translations().items())
def test_a_chinese_page_links_to_chinese_pages_where_they_exist(chinese, english):
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in (chinese, english)}
    assert linked(chinese, texts[chinese]) == expected(chinese, english, texts[english], translations())


ENGLISH = """# Title

| name | default |
|---|---|
| [`A`](a1.md) | 10 by `B` |

```python
x = 1  # one
```

Use `C`.
"""
GOOD = """# 标题

| 名称 | 默认值 |
|---|---|
| [`A`](b2.md) | `B` 设为 10 |

```python
x = 1  # 一
```

使用 `C`。
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("x = 1", "x = 2", "code block 1: .*"),
        ("```python", "<!-- not run: no -->\n```python", "code block 1: .*"),
        ("10", "11", "table row 3: .*"),
        ("| [`A`](b2.md) | `B` 设为 10 |\n", "", "table row 3: .* None in Chinese|`[AB]` is only .*"),
        ("使用 `C`", "使用", "`C` is only on the English page"),
        ("使用 `C`", "使用 `C` 和 `D`", "`D` is only on the Chinese page"),
        ("使用", "## 用法\n\n使用", "level of heading 2: None in English, 2 in Chinese"),
    ],
)
def test_a_page_that_differs_is_refused(right, wrong, message):
    assert differences(ENGLISH, GOOD) == []
    found = differences(ENGLISH, GOOD.replace(right, wrong))
    assert found and all(re.fullmatch(message, line) for line in found)


def test_a_link_to_the_english_page_and_a_missing_link_are_noticed():
    translated = {"zh/a.md": "a.md", "zh/b.md": "b.md"}
    wanted = expected("zh/a.md", "a.md", "[b](b.md#x), [c](c.md)", translated)
    assert linked("zh/a.md", "[a](../a.md), [b](b.md#y), [c](../c.md)") == wanted
    assert linked("zh/a.md", "[a](../a.md), [b](../b.md), [c](../c.md)") != wanted
    assert linked("zh/a.md", "[a](../a.md), [b](b.md)") != wanted
