# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names in `torch_musa` that packs provide: modules, imported on first access, and other attributes.

A pack declares modules by entry points of group `torch_musa.submodules.v2`, with dots for nested modules. A
function of group `torch_musa.attributes.v2`, named after its pack, is called with names that `torch_musa`
lacks; it returns the object or raises AttributeError. If two packs declare one name, or a pack is disabled,
the rules of `pack_modules.py` apply.
"""

import functools
import importlib
from importlib.machinery import ModuleSpec

from . import entry_points
from .module_loader import Loader

_PREFIX = "torch_musa."
_NAMES_OF_TORCH_MUSA = "*"  # an entry point of NAMES_OF_EXTRAS: attributes that torch.musa has


def offered():
    """Returns entry points by module name in `torch_musa`: `{"core.device": EntryPoint(...)}`."""
    return entry_points.offered(entry_points.SUBMODULES)


def names():
    """Returns the names of enabled packs' modules directly in `torch_musa`."""
    enabled = (name for name, entry in offered().items() if not entry_points.packs_are_disabled(entry))
    return [name for name in enabled if "." not in name]


def attribute(name):
    """Returns the object that a pack provides as `torch_musa.<name>`.

    Raises:
        AttributeError: if no enabled pack has it; names the extra that does, if known.
    """
    entry = offered().get(name)
    if entry is not None and not entry_points.packs_are_disabled(entry):
        return importlib.import_module(_PREFIX + name)
    for find in _functions():
        try:
            return find(name)
        except AttributeError:
            continue  # the next pack may have the name
    raise AttributeError(why_missing(name) or f"module 'torch_musa' has no attribute {name!r}")


def why_missing(name):
    """Returns why `torch_musa.<name>` is missing, with the fix; None if it exists or no pack is known."""
    entry = offered().get(name)
    if entry is not None:
        if not entry_points.packs_are_disabled(entry):
            return None
        return entry_points.why_disabled(_PREFIX + name, entry)
    extra = _extra_of(name)
    if extra is None:
        return None
    disabled = [each for each in entry_points.select(entry_points.ATTRIBUTES) if each.name == extra]
    if disabled and entry_points.packs_are_disabled(disabled[0]):
        return entry_points.why_disabled(_PREFIX + name, disabled[0])
    from . import extras  # imported on failures only, because it parses torch-musa's metadata

    return extras.why_missing(f"torch_musa.{name}", extra)


def find_spec(fullname):
    """Returns the spec of a module in `torch_musa`. If its pack is missing, importing raises the fix."""
    name = fullname.removeprefix(_PREFIX)
    entry = offered().get(name)
    reason = why_missing(name)
    return None if entry is None and reason is None else ModuleSpec(fullname, Loader(entry, reason))


@functools.cache
def _functions():
    """Yields the attribute functions of enabled packs."""
    entries = entry_points.select(entry_points.ATTRIBUTES)
    return [
        entry.load()
        for entry in entries
        if entry.name in entry_points.packs_beside(entry) and not entry_points.is_disabled(entry.name)
    ]


def _extra_of(name):
    """Returns the extra of torch-musa that has the name, or None if unknown."""
    named = entry_points.select(entry_points.NAMES_OF_EXTRAS)
    declared = {entry.name: entry_points.extra_of(entry) for entry in named}
    if name in declared:
        return declared[name]
    if name.startswith("_") or "." in name:
        return None
    return declared.get(_NAMES_OF_TORCH_MUSA) if _is_in_torch_musa(name) else None


def _is_in_torch_musa(name):
    import torch

    return hasattr(getattr(torch, "musa", None), name)
