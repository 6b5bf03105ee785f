# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What the generators of pages share. Each is a script `docs/<name>.py` that writes `docs/<name>.md`."""

import argparse
import pathlib
from collections import Counter


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
