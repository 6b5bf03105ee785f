# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names below `torch_musa` that packs offer: modules, imported on first access, and other attributes.

A pack names modules by entry points of group `torch_musa.submodules.v2`, with dots for modules below modules.
A function of group `torch_musa.attributes.v2`, which has the name of its pack, is called with names that
`torch_musa` lacks; it returns the object or raises AttributeError. Where two packs have one name, or a pack
is disabled, the rules of `pack_modules.py` apply.
"""

import functools
import importlib
from importlib.machinery import ModuleSpec

from . import entry_points
from .module_loader import Loader

_PREFIX = "torch_musa."
_NAMES_OF_TORCH_MUSA = "*"  # an entry point of NAMES_OF_EXTRAS: attributes that torch.musa has


def offered():
    """Entry points of modules by the name below `torch_musa`: `{"core.device": EntryPoint(...)}`."""
    return entry_points.offered(entry_points.SUBMODULES)


def names():
    """Names of the modules directly below `torch_musa` of enabled packs."""
    enabled = (name for name, entry in offered().items() if not entry_points.packs_are_disabled(entry))
    return [name for name in enabled if "." not in name]


def attribute(name):
    """The object that a pack offers as `torch_musa.<name>`.

    Raises:
        AttributeError: no enabled pack has it. The text says which extra does, if one is known to.
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
    """Why `torch_musa.<name>` does not exist, with the fix; None if it exists or no pack is known for it."""
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
    from . import extras  # on failures only: it parses the metadata of torch-musa

    missing = extras.missing(extra)
    if not missing:
        return None
    from musa_runtime.installation import command

    wheels = f"{' and '.join(missing)} (the extra torch-musa[{extra}])"
    return f"torch_musa.{name} needs {wheels}, which is not installed.\nFix: {command(*missing)}"


def find_spec(fullname):
    """The spec of a module below `torch_musa`, also if its pack is missing: the import then names the fix."""
    name = fullname.removeprefix(_PREFIX)
    entry = offered().get(name)
    reason = why_missing(name)
    return None if entry is None and reason is None else ModuleSpec(fullname, Loader(entry, reason))


@functools.cache
def _functions():
    """The functions of enabled packs that return attributes."""
    entries = entry_points.select(entry_points.ATTRIBUTES)
    return [
        entry.load()
        for entry in entries
        if entry.name in entry_points.packs_beside(entry) and not entry_points.is_disabled(entry.name)
    ]


def _extra_of(name):
    """The extra of torch-musa that has a name; None if none is known to."""
    declared = {entry.name: entry.value for entry in entry_points.select(entry_points.NAMES_OF_EXTRAS)}
    if name in declared:
        return declared[name]
    if name.startswith("_") or "." in name:
        return None
    return declared.get(_NAMES_OF_TORCH_MUSA) if _is_in_torch_musa(name) else None


def _is_in_torch_musa(name):
    import torch

    return hasattr(getattr(torch, "musa", None), name)
