# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Op packs written in Python into a directory, with the metadata an installer would write."""

from __future__ import annotations

import textwrap
from pathlib import Path


def write_pack(
    site: Path, name: str, code: str, contract: str | None = "v1", entry: str | None = None
) -> None:
    """Install a pack called `name`, whose module is `pack_<name>`, into a directory on the path."""
    module = f"pack_{name}"
    (site / f"{module}.py").write_text(textwrap.dedent(code))
    info = site / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pack-{name}\nVersion: 1.2\n")
    points = f"[torch_musa.plugins]\n{name} = {entry or module}\n"
    if contract:
        points += f"[torch_musa.contract]\n{name} = {contract}\n"
    (info / "entry_points.txt").write_text(points)
