# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The version of this package, and what its libraries were compiled for."""

__version__ = "0.1.0"

# The torch minor the libraries of this wheel were compiled for. torch's C++ ABI changes with every minor.
TORCH_MINOR = "2.13"

# Must equal `musa_runtime_abi()` of libmusa_runtime.so. Raised whenever Python and C++ stop understanding
# each other.
ABI = 2
