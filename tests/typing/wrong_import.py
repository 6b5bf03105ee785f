# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`import torch` alone, after which type checkers find no torch.musa: see wrong.py."""

import torch

torch.musa.is_available()  # type: ignore
