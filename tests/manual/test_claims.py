# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sentences of pages about runs cite a record, `<!-- record: NAME [SUITE], ... -->`, and say no more than it.

A sentence with "H100", "emulator only", "has run on" or a number of programs or cases is such a sentence.
NAME is a row of docs/records.json, or `programs` for docs/programs.json. "emulator only" cites `none SUITE`,
and is refused as soon as a record of a GPU has the suite. Design pages hold the measurements themselves, and
CHANGELOG.md is history; neither is checked.
"""

from __future__ import annotations

import calendar
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import front_page

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
RECORDS = json.loads((ROOT / "docs" / "records.json").read_text(encoding="utf-8"))
EMULATOR_ONLY = re.compile(
    r"(?<!this )emulator\s+only|only\s+on\s+the\s+emulator|[只仅]在模拟器"
    r"|not\s+(?:been|yet)[^.]{0,20}\son\s+a\s+GPU"
)
CLAIM = re.compile(
    rf"\bH[12]00\b|{EMULATOR_ONLY.pattern}|\bhas\s+run\s+on\b"
    r"|\d[\d,]*\s+(?:of\s+\d+\s+)?(?:whole\s+)?(?:programs|cases)\b|\d[\d,]*\s*个(?:完整程序|程序|用例)"
)
CITATION = re.compile(r"<!-- record: ([^>]*?) -->")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# Not figures: the models of GPUs, links, inline code, and PyTorch's name of a build.
NO_FIGURES = re.compile(r"\bH[12]00\b|\]\([^)]*\)|`[^`]*`|<!--.*?-->", re.DOTALL)
FIGURE = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
MONTHS = tuple(calendar.month_name)


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "docs" / "index.md"]
    found += ROOT.glob("docs/*.md")
    found += ROOT.glob("docs/guide/*.md")
    found += ROOT.glob("docs/zh/**/*.md")
    found += ROOT.glob("packages/*/README.md")
    return sorted(set(found) - {ROOT / "docs" / "navigation.md"})


def blocks(page: str) -> Iterator[str]:
    """The paragraphs, list items and table rows of a page, without its code blocks."""
    for paragraph in re.split(r"\n\s*\n", FENCE.sub("", page)):
        if paragraph.lstrip().startswith("|"):
            yield from paragraph.splitlines()
        else:
            yield from re.split(r"\n(?=[*\-] )", paragraph)


def suites(name: str) -> set[str]:
    """The suites of a record: `... in amp, distributed`."""
    found = re.search(r" in ([a-z_]+(?:, [a-z_]+)*)$", RECORDS[name]["summary"])
    return set(found[1].split(", ")) if found else set()


def evidence(name: str) -> str:
    """The text of a record whose figures a page may repeat."""
    if name == "programs":
        record = front_page.read_record()
        limits = (front_page.NEAR_LIMIT, front_page.MEMORY_LIMIT)
        numbers = [*front_page.summary(record).values(), *(f"{limit:.2f}" for limit in limits)]
        return f"{record['device']} {' '.join(numbers)}"
    row = RECORDS[name]
    year, month, day = row["date"].split("-")
    return f"{row['summary']} {int(day)} {MONTHS[int(month)]} {year}"


def problems(page: str) -> list[str]:
    """Claims of a page that cite no record, and those that their records do not support."""
    found = []
    for block in blocks(page):
        citations = CITATION.findall(block)
        text = CITATION.sub("", block)
        claim = CLAIM.search(text)
        if not citations:
            if claim:
                found.append(f"{claim[0]!r} cites no record: {text.strip()[:90]}")
            continue
        cited = [entry.split() for citation in citations for entry in citation.split(", ")]
        only = any(name == "none" for name, *_ in cited)
        if bool(EMULATOR_ONLY.search(text)) != only:
            found.append(f"'emulator only' and `none SUITE` belong together: {text.strip()[:90]}")
        texts = []
        for name, *of in cited:
            if name == "none":
                ran = [record for record in RECORDS if record.startswith("gpu_") and suites(record) & set(of)]
                found += [f"{of[0]} has run on a GPU: {record}" for record in ran]
                continue
            if name != "programs" and name not in RECORDS:
                found.append(f"no record {name}")
                continue
            texts.append(evidence(name))
            found += [f"{name} has no suite {suite}" for suite in of if suite not in suites(name)]
        known = " ".join(texts)
        models = set(re.findall(r"\bH[12]00\b", text))
        found += [f"no cited record is of an {model}" for model in sorted(models) if model not in known]
        figures = {figure.rstrip(",") for figure in FIGURE.findall(NO_FIGURES.sub(" ", text))}
        numbers = set(FIGURE.findall(known)) | set(re.findall(r"\d[\d,]*(?:\.\d+)?", known))
        # A single digit counts GPUs, processes and hosts.
        unknown = sorted(figure for figure in figures if len(figure) > 1 and figure not in numbers)
        if texts:
            found += [f"{figure} is in no cited record: {text.strip()[:90]}" for figure in unknown]
    return found


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_claims_have_their_record(page: Path) -> None:
    assert problems(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ("It has run on an H200.", "cites no record"),
        ("It was tested on the emulator only.", "cites no record"),
        ("目前只在模拟器上运行过。", "cites no record"),
        ("All 31 programs ran.", "cites no record"),
        ("Tested on the emulator only. <!-- record: none amp -->", "amp has run on a GPU: gpu_1x_h100"),
        ("Tested on the emulator. <!-- record: none host -->", "belong together"),
        ("Tested on an H100. <!-- record: gpu_2x_h200 runtime -->", "no cited record is of an H100"),
        ("Tested on an H200. <!-- record: gpu_2x_h200 amp -->", "gpu_2x_h200 has no suite amp"),
        ("Tested on an H200. <!-- record: gpu_9x_h200 -->", "no record gpu_9x_h200"),
        ("33 whole programs on an H200. <!-- record: programs -->", "33 is in no cited record"),
        ("| a | 639 cases passed <!-- record: ecosystem --> |", "639 is in no cited record"),
        ("在 H200 上运行 33 个完整程序。 <!-- record: programs -->", "33 is in no cited record"),
    ],
)
def test_a_wrong_claim_is_found(claim: str, problem: str) -> None:
    found = problems(f"# Page\n\n{claim}\n")
    assert found and problem in found[0]


def test_right_claims_and_other_sentences_pass() -> None:
    page = """
    Tested on the emulator only. <!-- record: none host -->

    Tested on two H200. <!-- record: gpu_2x_h200 runtime -->

    | 638 cases of 99 packages passed <!-- record: ecosystem --> |

    The emulator has two devices, and 128 threads in a warp.
    """
    assert problems("\n".join(line.strip() for line in page.splitlines())) == []
