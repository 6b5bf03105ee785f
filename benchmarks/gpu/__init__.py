# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares the musa device over musa-cuda with torch.cuda, on one NVIDIA GPU."""
