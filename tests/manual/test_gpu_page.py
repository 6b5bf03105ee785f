# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each cell of the table of cards has its evidence or says "unknown", and both languages agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

DOCS = Path(__file__).resolve().parents[2] / "docs"
ENGLISH, CHINESE = DOCS / "guide" / "gpu.md", DOCS / "zh" / "guide" / "gpu.md"
UNKNOWN = ("unknown", "未知")


def cards(page: str) -> dict[str, list[str]]:
    """The cells of each card, without its name."""
    rows = [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| MTT ")]
    assert len(rows) > 4
    return {row[0]: row[1:] for row in rows}


def evidence(page: str) -> dict[str, str]:
    return dict(re.findall(r"^\| \[(\d+)\] \| .*\]\((https://\S+?)\)", page, re.MULTILINE))


def problems(page: str) -> list[str]:
    """Cells without evidence, and evidence that no cell cites."""
    listed, cited, found = evidence(page), set(), []
    for card, cells in cards(page).items():
        for cell in cells:
            numbers = re.findall(r"\[(\d+)\]", cell)
            cited |= set(numbers)
            if cell not in UNKNOWN and not numbers:
                found.append(f"{card}: {cell!r} has no evidence")
            found += [f"{card}: [{number}] is not listed" for number in numbers if number not in listed]
    return found + [f"[{number}] is cited by no card" for number in sorted(listed.keys() - cited)]


@pytest.mark.parametrize("path", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_each_cell_has_its_evidence(path: Path) -> None:
    assert problems(path.read_text(encoding="utf-8")) == []


def test_both_languages_have_the_same_evidence() -> None:
    english, chinese = (path.read_text(encoding="utf-8") for path in (ENGLISH, CHINESE))
    assert evidence(english) == evidence(chinese)
    numbers = [
        {card: [re.findall(r"\[\d+\]", cell) for cell in cells] for card, cells in cards(page).items()}
        for page in (english, chinese)
    ]
    assert numbers[0] == numbers[1]


def test_cells_without_evidence_are_found() -> None:
    page = ENGLISH.read_text(encoding="utf-8")
    assert problems(page.replace("| 16 GB [4] |", "| 16 GB |")) == [
        "MTT S80: '16 GB' has no evidence",
        "[4] is cited by no card",
    ]
    assert problems(page.replace("| 16 GB [4] |", "| 16 GB [40] |"))[0] == "MTT S80: [40] is not listed"
