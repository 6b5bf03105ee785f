# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Types of arguments that several modules take. Only type checkers import this module."""

from typing import Protocol, TypeAlias

import torch

# A musa device; None and a negative index mean the current device.
Device: TypeAlias = torch.device | str | int | None

# The id of a memory pool, as `torch.musa.graph_pool_handle()` returns it.
PoolId: TypeAlias = tuple[int, int]

# An operator: its name, such as "aten::add.Tensor", or `torch.ops.aten.add.Tensor`.
Operator: TypeAlias = str | torch._ops.OpOverload | torch._ops.OpOverloadPacket


class HasDevice(Protocol):
    """A tensor or a storage."""

    @property
    def device(self) -> torch.device: ...
