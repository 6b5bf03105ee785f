# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension: the directive `public-names` documents the names of torch.musa that given modules define."""

import inspect
import types

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


def skip_public(app, what, name, value, skip, options):
    """Leaves functions and classes out of modules below torch.musa if they are public names of torch.musa."""
    import torch

    is_module = what == "module" and isinstance(value, (type, types.FunctionType))
    public = name in torch.musa.__all__ and getattr(torch.musa, name) is value
    return True if is_module and public else None


def setup(app):
    app.add_directive("public-names", PublicNames)
    app.connect("autodoc-skip-member", skip_public)
    return {"parallel_read_safe": True}
