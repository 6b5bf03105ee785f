# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension: directives for Python names that autodoc alone cannot document."""

import ast
import importlib.util
import inspect
import re
import types
from pathlib import Path

from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.docutils import SphinxDirective

# Names whose value has no module of its own.
CONSTANTS = {"has_half": "musa_runtime.device"}


def defining_module(name):
    """The module that defines a public name of torch.musa; empty for a module below torch.musa."""
    import torch

    value = getattr(torch.musa, name)
    if isinstance(value, types.ModuleType):
        return ""
    return CONSTANTS.get(name) or getattr(value, "__module__", None) or type(value).__module__


def directive(value):
    """autodoc's directive for a value."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(value) else "autodata"


class PublicNames(SphinxDirective):
    """Documents the public names of torch.musa whose module is one of the content."""

    has_content = True

    def run(self):
        import torch

        found = []
        for name in sorted(torch.musa.__all__):
            if defining_module(name) in self.content:
                kind = directive(getattr(torch.musa, name))
                found += [f".. {kind}:: torch.musa.{name}", *["   :no-value:"] * (kind == "autodata"), ""]
        if not found:
            raise self.error(f"torch.musa has no public name of {', '.join(self.content)}")
        return self.parse_text_to_nodes("\n".join(found))


class ModuleSource(SphinxDirective):
    """Documents a module and the functions and classes of its `__all__` from its source.

    Integrations import the packages that they adapt, which need not be installed.
    """

    required_arguments = 1

    def run(self):
        name = self.arguments[0]
        source = Path(importlib.util.find_spec(name).origin)
        tree = ast.parse(source.read_text(encoding="utf-8"))
        # An indented block of these docstrings is code.
        prose = re.sub(r"\n\n(?=    \S)", "\n\n::\n\n", ast.get_docstring(tree))
        text = [f".. py:module:: {name}", "", *prose.splitlines(), ""]
        names = {node.name: node for file in source.parent.glob("*.py") for node in self.definitions(file)}
        [public] = [
            ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        ]
        for member in public:
            node = names[member]
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            signature = "" if kind == "class" else f"({ast.unparse(node.args)})"
            text += [f".. py:{kind}:: {name}.{member}{signature}", ""]
            text += [f"   {line}" for line in self.docstring(node)]
        return self.parse_text_to_nodes("\n".join(text))

    def docstring(self, node):
        return [*GoogleDocstring(ast.get_docstring(node) or "", self.config).lines(), ""]

    @staticmethod
    def definitions(file):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        return [node for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]


def skip_public(app, what, name, value, skip, options):
    """Leaves functions and classes out of modules below torch.musa if they are public names of torch.musa."""
    import torch

    is_module = what == "module" and isinstance(value, (type, types.FunctionType))
    public = name in torch.musa.__all__ and getattr(torch.musa, name) is value
    return True if is_module and public else None


def setup(app):
    app.add_directive("public-names", PublicNames)
    app.add_directive("module-source", ModuleSource)
    app.connect("autodoc-skip-member", skip_public)
    return {"parallel_read_safe": True}
