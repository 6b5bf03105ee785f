# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes docs/ported.md: the operators that the ported pack serves where it is first, by family.

TORCH_MUSA_OPS=ported,native python docs/ported.py [--out docs/ported.md]
"""

import argparse
import pathlib
from collections import Counter

PAGE = """\
# Operators with ported kernels

Written by `python docs/ported.py` from the op registry; do not edit.

{total} operators (overloads, in-place and `out=` forms) of {families} families have `ported` as their first
provider under `TORCH_MUSA_OPS=ported,native`. On a device with memory of its own the order is
`mudnn, ported, cpu`; where the host can address the device's memory it is `mudnn, native, ported`.

A number behind a name says how many operators have that base name.

| family | number | operators |
|---|---|---|
{rows}
"""


def base_name(op):
    """The operator without overload and the underscore of an in-place form; of aten without its namespace."""
    name = op.partition(".")[0].removeprefix("aten::")
    return name if name.endswith("__") else name.removesuffix("_")


def render(families, first):
    """The page.

    Args:
        families (dict of str to str): family of each operator that the pack declares, in order.
        first (dict of str to str): first provider of each operator.
    """
    served = [op for op in families if first.get(op) == "ported"]
    bases = {}
    for op in served:
        bases.setdefault(families[op], Counter())[base_name(op)] += 1
    rows = []
    for family, counts in bases.items():
        names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(counts.items()))
        rows.append(f"| {family} | {sum(counts.values())} | {names} |")
    return PAGE.format(total=len(served), families=len(bases), rows="\n".join(rows))


def declared():
    """Family of each overload in ops.yaml."""
    from musa_ops_ported.codegen.catalog import Catalog

    return {
        f"aten::{form.func.name}": operator.family
        for operator in Catalog().operators
        for form in operator.forms()
    }


def page():
    import torch

    with torch.musa.ops.prefer("*", "ported", "native"):
        from torch_musa import report

        return render(declared(), {row["op"]: row["provider"] for row in report.ops()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    options.out.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
