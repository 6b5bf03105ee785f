# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The version of this package. Activation compares it with that of musa-runtime."""

__version__ = "0.1.0"
