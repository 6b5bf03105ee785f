# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The version of this package, and the torch minors it supports."""

__version__ = "0.1.0"

# The torch minors that this version can be built for. The one that the libraries of a wheel were compiled for
# is in _torch_minor.py, which CMake writes.
OLDEST_TORCH = "2.11"
NEWEST_TORCH = "2.15"

# Must equal `musa_runtime_abi()` of libmusa_runtime.so. Raised with every incompatible change between Python
# and C++.
ABI = 3
