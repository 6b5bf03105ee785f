# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tensors of bool whose true elements are any byte except 0, as `x.view(torch.bool)` makes them from uint8.

A compiler assumes that a bool is 0 or 1, so a kernel that loads one as bool computes wrong values, or results
of another size. torch loads them as bytes (c10::load), on the CPU and on a GPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from .transfer import to_device


def has_bools(*values: Any) -> bool:
    return any(map(_is_bool, tree_leaves(values)))


def with_any_bytes(*values: Any) -> tuple:
    """The same arguments, with random bytes from 1 to 255 for true."""
    copies = to_device("cpu", *values)  # keeps views of one storage together
    generator = torch.Generator().manual_seed(0)
    storages = {tensor.untyped_storage() for tensor in tree_leaves(copies) if _is_bool(tensor)}
    for storage in {storage._cdata: storage for storage in storages}.values():
        stored = torch.empty(0, dtype=torch.uint8).set_(storage)
        stored.mul_(torch.randint(1, 256, stored.shape, generator=generator, dtype=torch.uint8))
    return copies


def with_zeros_and_ones(value: Any) -> Any:
    """The same result, with 1 for each true element: operators that move elements keep their bytes."""

    def of(leaf: Any) -> Any:
        if not _is_bool(leaf):
            return leaf
        return leaf.detach().cpu().contiguous().view(torch.uint8).ne(0).to(leaf.device)

    return tree_map(of, value)


def _is_bool(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.dtype is torch.bool
        and value.layout is torch.strided
        and not value.is_nested
    )
