# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The page has the table of replaced attributes, with every name and its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from musa_as_cuda import replacements

pytestmark = pytest.mark.once

PAGE = Path(__file__).parents[2] / "docs" / "design" / "as_cuda.md"


def rows(text: str) -> dict[tuple[str, tuple[str, ...]], str]:
    """The rows of the table: owner and names to the reason."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\| `(torch[\w.]*)` \| (`.+`) \| (.+) \|", line)
        if match:
            found[match[1], tuple(re.findall(r"`(\w+)`", match[2]))] = match[3]
    return found


def differences(text: str) -> list[str]:
    expected = {(group.owner, group.names): group.reason for group in replacements.TABLE}
    found = rows(text)
    rows_differ = [f"{owner}: {names}" for owner, names in expected.keys() ^ found.keys()]
    return rows_differ + [reason for key, reason in expected.items() if found.get(key) != reason]


def test_the_page_has_every_name_with_its_reason():
    assert differences(PAGE.read_text()) == []


def test_each_name_is_replaced_once_and_has_a_reason():
    names = replacements.replaced_names()
    assert len(names) == len(set(names)) and all(len(group.reason) > 10 for group in replacements.TABLE)


@pytest.mark.parametrize(
    ("old", "new"), [("`is_available`, ", ""), ("`version`", "`versions`"), ("raise", "rise")]
)
def test_a_table_that_differs_is_noticed(old, new):
    text = PAGE.read_text()
    assert old in text and differences(text.replace(old, new))
