# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The MUSA SDK's libraries over CUDA, laid out like a MUSA_HOME."""

from __future__ import annotations

import importlib.metadata
import pathlib

__all__ = ["home"]


def home() -> pathlib.Path:
    """Return the directory that serves as ``MUSA_HOME``, with ``include``, ``lib`` and ``bin``.

    Raises:
        RuntimeError: the package is present as sources only, without the libraries that installing builds.
    """
    candidates = [pathlib.Path(__file__).parent / "sdk"]
    # In an editable install this file stays among the sources, while what CMake built is in site-packages.
    try:
        distribution = importlib.metadata.distribution("musa-cuda")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        candidates.append(pathlib.Path(str(distribution.locate_file("musa_cuda/sdk"))))
    for candidate in candidates:
        if (candidate / "lib" / "libmusart.so").is_file():
            return candidate
    looked = ", ".join(str(candidate) for candidate in candidates)
    raise RuntimeError(
        f"musa_cuda has no libmusart.so (looked in {looked}). Likely cause: the package is on the path "
        "but was not installed. Install it with: python3 tools/dev.py gpu --build"
    )
