# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The musa device over musa-cuda beside torch.cuda, on one NVIDIA GPU."""
