# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the table of operators and their providers from the op registry.

python docs/reference_operators.py --out FILE
"""

import pages

PAGE = """\
# Operators

Written by `python docs/reference_operators.py` from the registrations of the installed packs, with the
default order of providers on the emulator, whose memory the host can address. `python -m torch_musa ops`
prints the same table for the device of a machine.

The op registry has {total} operators (overloads, in-place and `out=` forms). The provider `composite` means
that torch computes the operator with other operators, and `none` that the registry installs no kernel.
{counts}

<input id="operator-filter" type="search" placeholder="part of a name, or provider:NAME" hidden
  style="width: 100%; padding: 0.4em; margin-bottom: 0.5em">
<p id="operator-count" hidden></p>

| operator | provider | candidates, in order |
|---|---|---|
{rows}

<script>
(function () {{
  const rows = Array.from(document.querySelectorAll("table tbody tr"));
  const field = document.getElementById("operator-filter");
  const count = document.getElementById("operator-count");
  function filter() {{
    const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {{
      const name = row.cells[0].textContent.toLowerCase();
      const provider = row.cells[1].textContent.toLowerCase();
      const match = words.every(word => word.startsWith("provider:") ? provider === word.slice(9)
        : name.includes(word));
      row.hidden = !match;
      shown += match;
    }}
    count.textContent = shown + " of " + rows.length + " operators";
  }}
  field.hidden = count.hidden = false;
  field.addEventListener("input", filter);
  filter();
}})();
</script>
"""


def render(rows):
    """The page. rows: as `torch_musa.listings.ops()` returns them."""
    counts = {}
    for row in rows:
        counts[row["provider"]] = counts.get(row["provider"], 0) + 1
    summary = ", ".join(f"`{name}` {number}" for name, number in sorted(counts.items()))
    lines = [f"| `{row['op']}` | {row['provider']} | {', '.join(row['candidates'])} |" for row in rows]
    return PAGE.format(total=len(rows), counts=f"By provider: {summary}.", rows="\n".join(lines))


def page():
    from torch_musa import listings

    return render(listings.ops())


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
