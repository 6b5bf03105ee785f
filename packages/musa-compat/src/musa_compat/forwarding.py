# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules that look up their attributes in another module when accessed."""

import importlib

from .deprecation import warn_once


def forward(module, names, home="torch.musa"):
    """Returns `__getattr__` and `__dir__` for a module that forwards to another module.

    Also warns once that the module is deprecated.

    Args:
        module (str): the name that programs import, such as "torch_musa.core.device".
        names (dict of str to str): maps names of the module to names in `home`, with dots for nested
            attributes.
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
    """Returns `names` for :func:`forward` that are equal in both modules."""
    return {name: name for name in names}
