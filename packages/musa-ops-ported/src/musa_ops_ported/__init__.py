# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators as kernels of MUSA, built from sources in the style of PyTorch's CUDA kernels."""
