# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An emulator of the MUSA SDK that runs on the CPU, with the layout of a MUSA_HOME."""

from __future__ import annotations

import importlib.metadata
import pathlib

__all__ = ["home"]


def home() -> pathlib.Path:
    """Return the emulator's ``MUSA_HOME``, with ``include``, ``lib`` and ``bin``.

    Raises:
        RuntimeError: the libraries are missing, because only the package's sources are present.
    """
    candidates = [pathlib.Path(__file__).parent / "sdk"]
    # In an editable install this file is in the source tree, the files that CMake built in site-packages.
    try:
        distribution = importlib.metadata.distribution("musa-emulator")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        candidates.append(pathlib.Path(str(distribution.locate_file("musa_emulator/sdk"))))
    for candidate in candidates:
        if (candidate / "lib" / "libmusart.so").is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise RuntimeError(
        f"musa_emulator has no libmusart.so (looked in {looked}). Likely cause: the package is on the path "
        "but was not installed. Fix: python3 tools/dev.py setup"
    )
