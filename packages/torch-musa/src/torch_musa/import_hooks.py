# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls the import hooks of packs at the end of `import torch`, each in isolation.

An exception is stored in `failures`, becomes the error of the pack's record when packs load, and is shown by
`python -m torch_musa packs` and `doctor`. It is not raised here, so no pack can break `import torch`.
"""

import os
import sys

import torch.backends

from . import entry_points

failures = {}  # (distribution, pack) -> exception
called = []  # names of the packs whose hook returned


def run(musa):
    """Calls the import hook of each enabled pack with the module `torch.musa`, sorted by name."""
    for entry in entry_points.select(entry_points.IMPORT_HOOKS):
        # A hook that is not named after a pack of its distribution is reported when packs load.
        if entry.name in entry_points.packs_beside(entry) and not entry_points.is_disabled(entry.name):
            _call(entry, musa)


def add_placeholders():
    """Adds the placeholder of each pack whose hook was not called, unless `torch.backends` has the name."""
    for entry in entry_points.select(entry_points.PLACEHOLDERS):
        if entry.name not in called and not hasattr(torch.backends, entry.name):
            name = f"torch.backends.{entry.name}"
            sys.modules[name] = placeholder = entry.load()(name)
            setattr(torch.backends, entry.name, placeholder)


def _call(entry, musa):
    # `import torch` cannot raise: an invalid value raises when the packs load.
    if os.environ.get("TORCH_MUSA_TRACE_PACKS") == "1":
        print(f"torch_musa packs: {entry.name}: {entry.value} at import", file=sys.stderr)
    try:
        entry.load()(musa)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - stored for the pack's record
        failures[entry_points.dist_of(entry), entry.name] = error
    else:
        called.append(entry.name)
