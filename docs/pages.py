# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Functions shared by the generators of pages, scripts `docs/<name>.py` that write `docs/<name>.md`, and by
the checks of pages."""

import argparse
import pathlib
import re
from collections import Counter
from typing import NamedTuple

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
COMMENT = re.compile(r"^<!-- (.*) -->$")


class Block(NamedTuple):
    """A fenced code block: its language, its text, the number of its first line and the comment above it."""

    language: str
    text: str
    line: int
    comment: str


def code_blocks(page):
    """The fenced code blocks of a Markdown page, in order.

    Args:
        page (str): the text of the page.

    Returns:
        list of Block: `line` counts from 1 and is that of the opening fence; `comment` is the text of an HTML
        comment on the line directly above, or empty.

    Raises:
        ValueError: if a fence is not closed.
    """
    blocks, open_, above = [], None, ""
    for number, line in enumerate(page.splitlines(), 1):
        fence = FENCE.match(line)
        if open_ is None and fence:
            comment = COMMENT.match(above)
            words = fence["info"].split()
            open_ = (fence["mark"], words[0] if words else "", number, comment[1] if comment else "", [])
        elif open_ is not None and fence and fence["mark"].startswith(open_[0]) and not fence["info"].strip():
            _, language, first, comment, lines = open_
            blocks.append(Block(language, "".join(f"{text}\n" for text in lines), first, comment))
            open_ = None
        elif open_ is not None:
            open_[4].append(line)
        above = line.strip()
    if open_ is not None:
        raise ValueError(f"the code block that begins in line {open_[2]} is not closed")
    return blocks


def without_code(page):
    """The page with spaces in place of its code blocks; every other character keeps its position."""
    lines = page.split("\n")
    for block in code_blocks(page):
        for number in range(block.line - 1, block.line + block.text.count("\n") + 1):
            lines[number] = " " * len(lines[number])
    return "\n".join(lines)


def base_name(op):
    """The operator without overload and the underscore of an in-place form; of aten without its namespace."""
    name = op.partition(".")[0].removeprefix("aten::")
    return name if name.endswith("__") else name.removesuffix("_")


def by_family(families, first, provider):
    """The operators of which `provider` is the first, as rows of a table.

    Args:
        families (dict of str to str): family of each operator that the provider's pack declares, in order.
        first (dict of str to str): first provider of each operator.
        provider (str): whose operators are listed.

    Returns:
        tuple of (int, int, str): number of operators, number of families, the rows.
    """
    served = [op for op in families if first.get(op) == provider]
    bases = {}
    for op in served:
        bases.setdefault(families[op], Counter())[base_name(op)] += 1
    rows = []
    for family, counts in bases.items():
        names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(counts.items()))
        rows.append(f"| {family} | {sum(counts.values())} | {names} |")
    return len(served), len(bases), "\n".join(rows)


def main(page, script, about):
    """The command line of a generator.

    Args:
        page (callable): gives the text.
        script (str): `__file__` of the generator.
        about (str): its docstring.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(script).with_suffix(".md"))
    parser.parse_args().out.write_text(page(), encoding="utf-8")
