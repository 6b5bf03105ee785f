# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Op packs written in Python into a directory, with the metadata an installer would write."""

from __future__ import annotations

import textwrap
from pathlib import Path


def write_pack(
    site: Path,
    name: str,
    code: str,
    contract: str | None = "v2",
    entry: str | None = None,
    import_hook: str | None = None,
    modules: tuple[str, ...] = (),
) -> None:
    """Install a pack called `name`, whose module is `pack_<name>`, into a directory on the path.

    Args:
        contract: the version that it declares; None: a pack of version 1 that declares none.
        entry: the value of its entry point; its module unless given.
        import_hook: the code of a module with a function `musa_import`.
        modules: lines of `torch_musa.modules.v2`.
    """
    module = f"pack_{name}"
    (site / f"{module}.py").write_text(textwrap.dedent(code))
    info = site / f"{module}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pack-{name}\nVersion: 1.2\n")
    old = contract in ("v1", None)
    points = f"[torch_musa.plugins{'' if old else f'.{contract}'}]\n{name} = {entry or module}\n"
    if contract == "v1":
        points += f"[torch_musa.contract]\n{name} = v1\n"
    if import_hook is not None:
        (site / f"{module}_startup.py").write_text(textwrap.dedent(import_hook))
        points += f"[torch_musa.import.v2]\n{name} = {module}_startup:musa_import\n"
    if modules:
        points += "\n".join(["[torch_musa.modules.v2]", *modules, ""])
    (info / "entry_points.txt").write_text(points)
