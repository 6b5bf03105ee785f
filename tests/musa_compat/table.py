# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The table of names in the README of musa-compat."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "packages" / "musa-compat" / "README.md"
_ROW = re.compile(
    r"^\| (?P<names>[^|]+) \|(?P<here>[^|]*)\| (?P<covered>yes|no)(?P<why>:[^|]*)? \|$", re.MULTILINE
)
_NAME = re.compile(r"`(torch[\w.]*)`")


def names(text: str) -> dict[str, bool]:
    """Full names of the first column, and whether the table lists them as covered.

    Raises:
        ValueError: a row with "no" has no reason.
    """
    found = {}
    for row in _ROW.finditer(text):
        if row["covered"] == "no" and not row["why"]:
            raise ValueError(f"no reason: {row['names']}")
        # A name with a remark, such as "with the vendor's patterns", is no plain statement about that name.
        listed = re.sub(r"`[\w.]+` with [^,|]+", "", row["names"])
        listed = listed.split(" and every other")[0]
        found |= dict.fromkeys(_NAME.findall(listed), row["covered"] == "yes")
    return found


def headers(text: str) -> dict[str, str]:
    """Headers of the table, and the header that each includes."""
    return dict(re.findall(r"^\| `(torch_musa/[\w/.]+)` \| `([\w/.]+)` \|$", text, re.MULTILINE))
