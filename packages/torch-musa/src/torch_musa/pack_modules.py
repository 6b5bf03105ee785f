# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of `torch.musa` that packs offer, such as `torch.musa.amp`, imported on first access.

A pack names them by entry points of group `torch_musa.modules.v2`; a finder at the end of `sys.meta_path`
makes them importable below `torch.musa`. Where two distributions offer one name, the first in the order of
distribution names is taken, unless its pack is disabled, and the pack of the other is reported.
"""

import sys
from importlib.machinery import ModuleSpec

from . import entry_points
from .module_loader import Loader

_PREFIX = "torch.musa."


def offered():
    """Entry points by the name of the module: `{"amp": EntryPoint(...)}`."""
    return entry_points.offered(entry_points.MODULES)


def names():
    """Names of the modules of enabled packs."""
    return [name for name, entry in offered().items() if not entry_points.packs_are_disabled(entry)]


def why_missing(name):
    """Why there is no module `torch.musa.<name>`, with the fix; None if it exists or no pack has it."""
    entry = offered().get(name)
    if entry is not None:
        if not entry_points.packs_are_disabled(entry):
            return None
        return entry_points.why_disabled(f"torch.musa.{name}", entry)
    from . import extras  # on failures only: it parses the metadata of torch-musa

    missing = extras.missing(name)
    if not missing:
        return None
    from musa_runtime.installation import command

    wheels = f"{' and '.join(missing)} (the extra torch-musa[{name}])"
    return f"torch.musa.{name} needs {wheels}, which is not installed.\nFix: {command(*missing)}"


def install_finders():
    """Makes modules of packs importable by `import torch.musa.<name>` and `import torch_musa.<name>`."""
    for kind in (_Finder, _FinderBelowPackage):
        if not any(isinstance(finder, kind) for finder in sys.meta_path):
            sys.meta_path.append(kind())


class _Finder:
    """Finds `torch.musa.<name>`, also where the pack is missing, so that the import names the fix."""

    def find_spec(self, fullname, path=None, target=None):
        name = fullname.removeprefix(_PREFIX)
        if name == fullname or "." in name:
            return None
        reason = why_missing(name)
        if reason is None and name not in offered():
            return None
        return ModuleSpec(fullname, Loader(offered().get(name), reason))


class _FinderBelowPackage:
    """Finds `torch_musa.<name>` of packs: `package_names.py`, which is imported when a name is looked up."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("torch_musa."):
            return None
        from . import package_names

        return package_names.find_spec(fullname)
