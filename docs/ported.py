# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes docs/ported.md: the operators that the ported pack serves where it is first, by family.

TORCH_MUSA_OPS=ported,host python docs/ported.py [--out docs/ported.md]
"""

import pages

PAGE = """\
# Operators with ported kernels

Written by `python docs/ported.py` from the op registry; do not edit.

{total} operators (overloads, in-place and `out=` forms) of {families} families have `ported` as their first
provider under `TORCH_MUSA_OPS=ported,host`. On a device with memory of its own the order is
`mudnn, ported, host-copy`; where the host can address the device's memory it is `mudnn, host, ported`.

A number behind a name says how many operators have that base name.

| family | number | operators |
|---|---|---|
{rows}
"""


def render(families, first):
    """The page: of families and first providers as `pages.by_family` takes them."""
    total, count, rows = pages.by_family(families, first, "ported")
    return PAGE.format(total=total, families=count, rows=rows)


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

    with torch.musa.ops.prefer("*", "ported", "host"):
        from torch_musa import report

        return render(declared(), {row["op"]: row["provider"] for row in report.ops()})


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
