# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.amp.common`, the counterpart of a module of torch.cuda."""

from musa_amp import amp_definitely_not_available

__all__ = ["amp_definitely_not_available"]
