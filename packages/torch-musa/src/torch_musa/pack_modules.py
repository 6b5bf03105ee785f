# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of `torch.musa` that packs provide, such as `torch.musa.amp`, imported on first access.

A pack declares them by entry points of group `torch_musa.modules.v2`; a finder at the end of `sys.meta_path`
makes them importable from `torch.musa`. If two distributions declare one name, the first by distribution
name wins, unless its pack is disabled, and the other pack is reported.
"""

import sys
from importlib.machinery import ModuleSpec

from . import entry_points
from .module_loader import Loader

_PREFIX = "torch.musa."


def offered():
    """Returns entry points by module name: `{"amp": EntryPoint(...)}`."""
    return entry_points.offered(entry_points.MODULES)


def names():
    """Returns the module names of enabled packs."""
    return [name for name, entry in offered().items() if not entry_points.packs_are_disabled(entry)]


def why_missing(name):
    """Returns why `torch.musa.<name>` is missing, with the fix; None if it exists or no pack has it."""
    entry = offered().get(name)
    if entry is not None:
        if not entry_points.packs_are_disabled(entry):
            return None
        return entry_points.why_disabled(f"torch.musa.{name}", entry)
    from . import extras  # imported on failures only, because it parses torch-musa's metadata

    named = entry_points.select(entry_points.MODULES_OF_EXTRAS)
    listed = {each.name: entry_points.extra_of(each) for each in named}
    if reason := extras.why_missing(f"torch.musa.{name}", listed.get(name, name)):
        return reason
    from . import cuda_names

    return cuda_names.advice("torch.musa", name)


def install_finders():
    """Makes modules of packs importable by `import torch.musa.<name>` and `import torch_musa.<name>`."""
    for kind in (_Finder, _FinderBelowPackage):
        if not any(isinstance(finder, kind) for finder in sys.meta_path):
            sys.meta_path.append(kind())


class _Finder:
    """Finds `torch.musa.<name>`, even if the pack is missing, so that the error names the fix."""

    def find_spec(self, fullname, path=None, target=None):
        name = fullname.removeprefix(_PREFIX)
        if name == fullname or "." in name:
            return None
        reason = why_missing(name)
        if reason is None and name not in offered():
            return None
        return ModuleSpec(fullname, Loader(offered().get(name), reason))


class _FinderBelowPackage:
    """Finds packs' `torch_musa.<name>`; imports `package_names.py` on the first lookup."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("torch_musa."):
            return None
        from . import package_names

        return package_names.find_spec(fullname)
