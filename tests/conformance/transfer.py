# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rebuild arguments on another device, exactly: strides, offset, aliasing, conj and neg bits, requires_grad.

`Tensor.to` alone is not enough: it makes expanded and overlapping tensors contiguous and gives two views of
one storage a storage each, so the operator and the reference would get different arguments.
"""

from __future__ import annotations

from typing import Any

import torch


class Transfer:
    """One argument list's move to `device`. Tensors that share a storage still share one afterwards."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._storages: dict[int, torch.UntypedStorage] = {}
        # Keeps the sources alive: the address of a freed storage could be reused and be mistaken for an
        # alias.
        self._sources: list[torch.UntypedStorage] = []

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if isinstance(value, torch.device):
            return self._device if value.type == "cpu" else value
        if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
            moved = [self(item) for item in value]
            return type(value)(*moved) if hasattr(value, "_fields") else type(value)(moved)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        return str(self._device) if value == "cpu" else value

    def _tensor(self, source: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            moved = self._without_grad(source.detach())
        return moved.requires_grad_(source.requires_grad)

    def _without_grad(self, source: torch.Tensor) -> torch.Tensor:
        if source.is_meta:
            return source
        if source.layout is not torch.strided or source.is_quantized or source.is_nested:
            return source.to(self._device, copy=True)
        if source.is_conj():
            return self._without_grad(source.conj()).conj()
        if source.is_neg():
            return torch._neg_view(self._without_grad(torch._neg_view(source)))
        storage = source.untyped_storage()
        key = storage._cdata
        if key not in self._storages:
            self._sources.append(storage)
            if source.is_contiguous() and source.storage_offset() == 0 and storage.nbytes() == source.nbytes:
                moved = source.to(self._device, copy=True)
                self._storages[key] = moved.untyped_storage()
                return moved
            raw = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._storages[key] = raw.to(self._device, copy=True).untyped_storage()
        empty = torch.empty(0, dtype=source.dtype, device=self._device)
        return empty.set_(self._storages[key], source.storage_offset(), source.size(), source.stride())


def to_device(device: str, *values: Any) -> tuple:
    """Move `values`, which may share storages with one another, to `device`."""
    transfer = Transfer(device)
    return tuple(transfer(value) for value in values)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor of a nest of lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for item in value for tensor in tensors_in(item)]
