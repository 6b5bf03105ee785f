# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.core.mccl`."""

from ..forwarding import forward, same

__getattr__, __dir__ = forward("torch_musa.core.mccl", same("version"), "torch.musa.mccl")
