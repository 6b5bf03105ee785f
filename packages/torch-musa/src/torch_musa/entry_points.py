# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The entry points of op packs, read from metadata without running code of a pack.

Imported by `import torch`, so this module imports neither pluggy nor the device runtime.
`musa_runtime/hookspecs.py` describes the groups.
"""

import functools
import os
import re
from importlib import metadata

PACKS = "torch_musa.plugins.v2"
IMPORT_HOOKS = "torch_musa.import.v2"
MODULES = "torch_musa.modules.v2"
SUBMODULES = "torch_musa.submodules.v2"
ATTRIBUTES = "torch_musa.attributes.v2"
RUN_OPTIONS = "torch_musa.run_options.v2"
# Contract v1: its version is the value of a second entry point.
PACKS_V1 = "torch_musa.plugins"
CONTRACTS_V1 = "torch_musa.contract"
# Placeholders in `torch.backends` for missing packs, declared by torch-musa itself.
PLACEHOLDERS = "torch_musa.backend_placeholders"
# Maps backends of `torch.distributed` to packs; declared by torch-musa itself.
DISTRIBUTED_BACKENDS = "torch_musa.distributed_backends"
# Maps op packs to a prefix of their operators' dotted names; declared by torch-musa itself.
OP_PACKS = "torch_musa.op_packs"
# Maps environment variables that a pack reads to extras; declared by torch-musa itself.
SWITCHES_OF_EXTRAS = "torch_musa.switches_of_extras"
# Maps modules of `torch.musa` that are not named like their extra to extras; declared by torch-musa itself.
MODULES_OF_EXTRAS = "torch_musa.modules_of_extras"
# Maps modules of `torch_musa` to extras; declared by torch-musa itself.
NAMES_OF_EXTRAS = "torch_musa.names_of_extras"


def extra_of(entry):
    """Returns the extra that an entry point names. Its value must be a name of Python, so that every pip
    installs the wheel: `as_cuda` is the extra `as-cuda`."""
    return entry.value.replace("_", "-")


@functools.cache
def installed():
    """Returns all entry points of this environment, read once per process (2 ms for 60 distributions)."""
    return metadata.entry_points()


@functools.cache
def select(group):
    """Returns the entry points of a group as a tuple, sorted by name, then by distribution."""
    return tuple(sorted(installed().select(group=group), key=lambda entry: (entry.name, dist_of(entry))))


def dist_of(entry):
    """Returns the name of an entry point's distribution; "unnamed" if its metadata cannot be read."""
    return _field(entry.dist, "Name") or "unnamed"


def version_of(entry):
    """Returns the version of an entry point's distribution; "" if its metadata cannot be read."""
    return _field(entry.dist, "Version")


@functools.cache
def _field(dist, name):
    # Avoids the email header parser, which takes almost a millisecond per distribution.
    try:
        found = re.search(rf"^{name}:[ \t]*(\S+)", dist.read_text("METADATA") or "", re.MULTILINE)
    except UnicodeDecodeError:
        return ""
    return found.group(1) if found else ""


def disabled():
    """Returns the names in `TORCH_MUSA_DISABLE_PACKS`. Unknown ones raise when the packs load."""
    parts = os.environ.get("TORCH_MUSA_DISABLE_PACKS", "").split(",")
    return [part.strip() for part in parts if part.strip()]


def is_disabled(name):
    """Whether `TORCH_MUSA_DISABLE_PACKS` names the pack."""
    names = disabled()
    return name in names or "all" in names


def packs_beside(entry):
    """Returns the names of the packs, of both contracts, that an entry point's distribution declares."""
    dist, packs = dist_of(entry), select(PACKS) + select(PACKS_V1)
    return list(dict.fromkeys(pack.name for pack in packs if dist_of(pack) == dist))


@functools.cache
def offered(group):
    """Returns the entry points of a group of modules or options by name: `{"amp": EntryPoint(...)}`.

    The first by distribution name wins, unless its packs are disabled.
    """
    found = {}
    for entry in sorted(select(group), key=packs_are_disabled):
        if packs_beside(entry):  # modules without a pack are ignored here and reported when packs load
            found.setdefault(entry.name, entry)
    return found


def packs_are_disabled(entry):
    """Whether all packs of the distribution of an entry point are disabled."""
    return all(map(is_disabled, packs_beside(entry)))


def why_disabled(name, entry):
    """Returns the error message, with the fix, for a name whose pack is disabled."""
    packs = " and ".join(map(repr, packs_beside(entry)))
    return (
        f"{name} belongs to the pack {packs}, which TORCH_MUSA_DISABLE_PACKS switches off.\n"
        "Fix: remove it from that variable"
    )


def without_pack():
    """Returns entry points of functions and modules that belong to no pack of their distribution."""
    named = [entry for group in (IMPORT_HOOKS, ATTRIBUTES) for entry in select(group)]
    modules = [entry for group in (MODULES, SUBMODULES) for entry in select(group)]
    return [
        *(entry for entry in named if entry.name not in packs_beside(entry)),
        *(entry for entry in modules if not packs_beside(entry)),
    ]
