# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators by CUDA kernels of PyTorch, ported when the package is built."""
