# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators as MUSA kernels, built from sources in the style of PyTorch's CUDA kernels."""
