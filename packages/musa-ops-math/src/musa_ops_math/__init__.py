# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fourier transforms by muFFT. No import is needed: `torch.musa` finds the pack by its entry point."""
