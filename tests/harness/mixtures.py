# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/mixtures.md quotes the message of each mixture of releases, and names the test that produces it.

That test calls `check`, so it fails after a change of the message until the page has the new words.
`tests/manual/test_mixtures.py` checks that every row names an existing test that calls `check`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mixtures.md"
# The minor of torch in a message is that of the installed torch.
MINOR = re.compile(r"(\btorch(?:==| )?)\d+\.\d+")


@dataclass(frozen=True)
class Row:
    """A mixture, its result (the refusing component, or success), parts of the message, and the test's id."""

    mixture: str
    result: str
    quotes: tuple[str, ...]
    test: str


def rows(text: str | None = None) -> list[Row]:
    """The rows of the page's table, or of another text."""
    found = []
    for line in (PAGE.read_text() if text is None else text).splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and "::" in cells[3]:
            mixture, result, message, test = cells
            found.append(Row(mixture, result, tuple(re.findall(r"`([^`]+)`", message)), test.strip("`")))
    return found


def plain(text: str) -> str:
    """A message on one line, without the minor of torch."""
    return " ".join(MINOR.sub(r"\1X.Y", text).split())


def check(request: pytest.FixtureRequest, message: str, text: str | None = None) -> None:
    """Fails unless the message contains the page's quotations for the running test.

    `text` replaces the page's text. A test with parameters may have rows for only some of them.
    """
    name = request.node.nodeid
    own = [row for row in rows(text) if row.test.partition("[")[0] == name.partition("[")[0]]
    assert own, f"{PAGE.name} has no row for {name}"
    for quote in (quote for row in own if row.test == name for quote in row.quotes):
        assert plain(quote) in plain(message), f"{PAGE.name} quotes {quote!r}, the message is\n{message}"
