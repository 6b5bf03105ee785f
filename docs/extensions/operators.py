# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension: the directive `operators` is a table of the op registry, of all or of one provider."""

from collections import Counter
from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

# Filters the rows of the page's last table.
FILTER = """
<input id="operator-filter" type="search" placeholder="part of a name, or provider:NAME"
  style="width: 100%; padding: 0.4em; margin-bottom: 0.5em">
<p id="operator-count"></p>
<script>
document.getElementById("operator-filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const rows = [...document.querySelectorAll("section:has(> #operator-filter) tbody tr")];
  for (const row of rows) {
    const [name, provider] = [...row.cells].map(cell => cell.textContent.toLowerCase());
    row.hidden = !words.every(
      word => word.startsWith("provider:") ? provider === word.slice(9) : name.includes(word));
  }
  document.getElementById("operator-count").textContent =
    rows.filter(row => !row.hidden).length + " of " + rows.length + " operators";
});
</script>
"""


def base_name(operator):
    """The operator without overload and the underscore of an in-place form; of aten without its namespace."""
    name = operator.partition(".")[0].removeprefix("aten::")
    return name if name.endswith("__") else name.removesuffix("_")


def by_family(families):
    """A table of operators by family. families: the family of each operator."""
    names = {}
    for operator, family in families.items():
        names.setdefault(family, Counter())[base_name(operator)] += 1
    table = f"{len(families)} operators of {len(names)} families:\n\n"
    table += "| family | number | operators |\n|---|---|---|\n"
    for family, counts in names.items():
        listed = ", ".join(f"`{name}` ({n})" if n > 1 else f"`{name}`" for name, n in sorted(counts.items()))
        table += f"| {family} | {counts.total()} | {listed} |\n"
    return table


def declared_by(provider):
    """The family of each operator that a pack declares."""
    if provider == "mudnn":
        from musa_ops_mudnn import _library

        return _library.families()
    from musa_ops_ported.codegen.catalog import Catalog

    return {
        f"aten::{form.func.name}": operator.family
        for operator in Catalog().operators
        for form in operator.forms()
    }


class Operators(SphinxDirective):
    required_arguments = 1

    def run(self):
        import torch

        from torch_musa import listings

        provider = self.arguments[0]
        if provider != "all":
            with torch.musa.ops.prefer("*", provider, "host"):
                served = {row["op"] for row in listings.ops(every=True)[0] if row["provider"] == provider}
            families = {name: family for name, family in declared_by(provider).items() if name in served}
            return self.parse_text_to_nodes(by_family(families))
        rows, _ = listings.ops(every=True)
        counts = ", ".join(
            f"`{name}` {n}" for name, n in sorted(Counter(row["provider"] for row in rows).items())
        )
        # Plain HTML, because nodes for thousands of rows would make the page several times as large.
        cells = "".join(
            f"<tr><td><code>{escape(row['op'])}</code><td>{row['provider']}"
            f"<td>{', '.join(row['candidates'])}\n"
            for row in rows
        )
        head = "<thead><tr><th>operator<th>provider<th>candidates</thead>"
        table = (
            f'<div class="table-wrapper"><table class="docutils">{head}<tbody>\n{cells}</tbody></table></div>'
        )
        text = f"{len(rows)} operators, by provider: {counts}."
        return [*self.parse_text_to_nodes(text), nodes.raw("", FILTER + table, format="html")]


def setup(app):
    app.add_directive("operators", Operators)
    return {"parallel_read_safe": True}
