# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.amp.grad_scaler`."""

import torch
from torch.amp.grad_scaler import OptState

from ..deprecation import warn_once

warn_once("torch_musa.core.amp.grad_scaler", "torch.musa.amp and torch.amp.grad_scaler")

GradScaler = torch.musa.amp.GradScaler

__all__ = ["GradScaler", "OptState"]
