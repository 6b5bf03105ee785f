# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.mudnn`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward(
    "torch_musa.core.mudnn",
    same("allow_tf32", "flags", "is_available", "set_flags", "version"),
    "torch.backends.mudnn",
)
