# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training steps and inference that many cases share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch


def moved(batch: Any, device: str) -> Any:
    """A batch with its tensors on the device."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {name: moved(value, device) for name, value in batch.items()}
    return type(batch)(moved(value, device) for value in batch)


def gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The gradients of all parameters that have one, by name."""
    return {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def steps(
    model: torch.nn.Module,
    loss_of: Callable[[], torch.Tensor],
    count: int = 2,
    optimizer: torch.optim.Optimizer | None = None,
) -> list[torch.Tensor]:
    """Losses of `count` steps, with AdamW unless an optimizer is given. The last gradients are kept."""
    if optimizer is None:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def without_dropout(modules: Iterable[torch.nn.Module]) -> None:
    """Sets the probability of all dropout layers to 0: devices draw different numbers."""
    for module in modules:
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
