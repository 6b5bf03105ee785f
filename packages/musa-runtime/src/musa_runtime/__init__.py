# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The MUSA device runtime: loading, device API, op registry and the plugin contract.

This package runs inside `import torch`, so its top level imports nothing: no torch, no pluggy, no metadata.
`load()` does the work, once, and never raises.
"""

__version__ = "0.1.0"

# The torch minor the libraries of this wheel were compiled for. torch's C++ ABI changes with every minor.
TORCH_MINOR = "2.13"

# Must equal `musa_runtime_abi()` of libmusa_runtime.so. Raised whenever Python and C++ stop understanding
# each other.
ABI = 2


def load():
    """Load the runtime once and return a :class:`musa_runtime._load.LoadResult`. Never raises."""
    from ._load import load as load_once

    return load_once()


__all__ = ["ABI", "TORCH_MINOR", "__version__", "load"]
