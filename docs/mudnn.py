# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes docs/mudnn.md: the operators that muDNN serves, by family, as the op registry has them.

python docs/mudnn.py [--out docs/mudnn.md]
"""

import argparse
import pathlib
from collections import Counter

PAGE = """\
# Operators served by muDNN

Written by `python docs/mudnn.py` from the op registry; do not edit.

{total} operators (overloads, in-place and `out=` forms) of {families} families have muDNN {version} as their
first provider. A call whose operands muDNN does not take goes on to the next one, which
`torch.musa.ops.explain("aten::mm")` names. `python -m torch_musa ops` lists all operators and counts calls.

A number behind a name says how many operators have that base name.

| family | number | operators |
|---|---|---|
{rows}
"""


def base_name(op):
    """The operator without overload and the underscore of an in-place form; of aten without its namespace."""
    name = op.partition(".")[0].removeprefix("aten::")
    return name if name.endswith("__") else name.removesuffix("_")


def render(families, first, version):
    """The page.

    Args:
        families (dict of str to str): family of each operator that the pack declares, in order.
        first (dict of str to str): first provider of each operator.
        version (str): of muDNN.
    """
    served = [op for op in families if first.get(op) == "mudnn"]
    bases = {}
    for op in served:
        bases.setdefault(families[op], Counter())[base_name(op)] += 1
    rows = []
    for family, counts in bases.items():
        names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(counts.items()))
        rows.append(f"| {family} | {sum(counts.values())} | {names} |")
    return PAGE.format(total=len(served), families=len(bases), version=version, rows="\n".join(rows))


def page():
    from musa_ops_mudnn import _library

    from torch_musa import report

    first = {row["op"]: row["provider"] for row in report.ops()}
    return render(_library.families(), first, _library.version_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    options.out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
