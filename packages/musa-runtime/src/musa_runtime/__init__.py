# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The MUSA device runtime: loading, device API, op registry and the plugin contract.

This package runs inside `import torch`, so its top level imports constants only: no torch, no pluggy, no
metadata. `load()` does the work, once, and never raises.
"""

from __future__ import annotations

from ._build import ABI, __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._load import LoadResult


def load() -> LoadResult:
    """Load the runtime once and return a :class:`musa_runtime._load.LoadResult`. Never raises."""
    from ._load import load as load_once

    return load_once()


def __getattr__(name: str) -> str:
    # Not at the top: builds import this package for its CMake files, even while pip replaces it.
    if name == "TORCH_MINOR":
        from ._load import torch_minor

        return torch_minor()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["ABI", "TORCH_MINOR", "__version__", "load"]
