# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.amp`."""

from ..forwarding import forward, same

# Empty: see core.py.
__path__ = []

__getattr__, __dir__ = forward(
    "torch_musa.core.amp",
    same("GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"),
    "torch.musa.amp",
)
