# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp.grad_scaler`, the counterpart of a module that older programs import from torch.cuda."""

from musa_amp import GradScaler

__all__ = ["GradScaler"]
