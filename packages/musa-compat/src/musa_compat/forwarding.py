# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules whose names are those of another module, looked up when they are read."""

import importlib

from .deprecation import warn_once


def forward(module, names, home="torch.musa"):
    """A pair `__getattr__`, `__dir__` for a module, which looks up names in another one.

    Warns once that the module is deprecated.

    Args:
        module (str): the name that programs import, "torch_musa.core.device".
        names (dict of str to str): names of the module and what they are called in `home`, with dots for
            attributes of attributes.
        home (str): the other module.
    """
    warn_once(module, home)

    def lookup(name):
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = importlib.import_module(home)
        for part in names[name].split("."):
            value = getattr(value, part)
        return value

    return lookup, lambda: sorted(names)


def same(*names):
    """Names that are the same in both modules, for :func:`forward`."""
    return {name: name for name in names}
