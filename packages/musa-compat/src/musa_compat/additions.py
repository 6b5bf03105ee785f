# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The import hook of the pack: adds names to torch that the vendor's package or its users expect there.

Nothing is replaced: a name that torch has stays.
"""


def musa_import(musa):
    """Adds the names of :mod:`.fused_layers` and :mod:`.profiler_names`."""
    from . import fused_layers, profiler_names

    fused_layers.add()
    profiler_names.add()
