# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.load` of files that name CUDA, and `map_location="cuda"`: storages are moved to musa.

torch calls the functions in its registry in order of priority. This one follows the CPU's and precedes
CUDA's. Saved files contain the actual device of the tensors: musa.
"""

from torch import serialization

from . import translation

_PRIORITY = 11  # the CPU has 10, CUDA 20


def register():
    """Adds the functions to torch's registry."""
    serialization.register_package(_PRIORITY, _tag, _restore)


def unregister():
    """Removes them."""
    registry = serialization._package_registry
    registry[:] = [entry for entry in registry if entry[2] is not _restore]


def _tag(storage):
    return None  # torch's own function for musa


def _restore(storage, location):
    """Returns the storage on musa if the location is a CUDA device, else None for the next function."""
    device = translation.to_musa(location)
    return serialization.default_restore_location(storage, device) if device is not location else None
