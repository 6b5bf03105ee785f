# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes docs/mudnn.md: the operators that muDNN serves, by family, as the op registry has them.

python docs/mudnn.py [--out docs/mudnn.md]
"""

import pages

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


def render(families, first, version):
    """The page: of families and first providers as `pages.by_family` takes them, and muDNN's version."""
    total, count, rows = pages.by_family(families, first, "mudnn")
    return PAGE.format(total=total, families=count, version=version, rows=rows)


def page():
    from musa_ops_mudnn import _library

    from torch_musa import report

    first = {row["op"]: row["provider"] for row in report.ops()}
    return render(_library.families(), first, _library.version_text())


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
