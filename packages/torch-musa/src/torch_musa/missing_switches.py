# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A warning for environment variables that have no effect because the pack that reads them is not installed.

The metadata of torch-musa lists the variables, each with the extra that installs its pack.
"""

import os
import warnings

from . import entry_points


def warn() -> None:
    """Warns once per variable that is switched on and whose extra is not installed."""
    for entry in entry_points.select(entry_points.SWITCHES_OF_EXTRAS):
        if os.environ.get(entry.name, "0") in ("", "0"):
            continue
        from . import extras

        if reason := extras.why_missing(f"{entry.name} has no effect: it", entry_points.extra_of(entry)):
            warnings.warn(reason, stacklevel=1)
