# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Indices of equal elements: torch promises no order among them, except for a stable sort.

The CPU's unstable algorithms give one order, a device's another. The indices must name elements of the
returned values, each element at most once; then they are replaced by the CPU's before the comparison.
"""

from __future__ import annotations

from typing import Any

import torch

# Operators, and the position of `dim` among the arguments after the input.
_DIM = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "mode": 0}
# These return values alone; the gradient goes to the positions of the selected elements.
_VALUES_ONLY = ("msort",)


def settled(op: Any, arguments: tuple, expected: Any, actual: Any) -> Any:
    """`actual`, with the CPU's index wherever it names another element of the same value."""
    name = getattr(op, "name", None)
    if name not in _DIM or arguments[2].get("stable"):
        return actual
    x, args, kwargs = arguments
    dim = kwargs.get("dim", args[_DIM[name]] if len(args) > _DIM[name] else -1)
    theirs = expected if isinstance(expected, torch.Tensor) else expected[1]
    ours = actual if isinstance(actual, torch.Tensor) else actual[1]
    if x.dim() == 0 or theirs.shape != ours.shape or theirs.dtype != ours.dtype or not ours.numel():
        return actual
    reduced = theirs.dim() < x.dim()
    left, right = (index.unsqueeze(dim) if reduced else index for index in (theirs.cpu(), ours.cpu()))
    if int(right.min()) < 0 or int(right.max()) >= x.shape[dim] or _repeats(right, dim):
        return actual
    first, second = (x.detach().take_along_dim(index, dim) for index in (left, right))
    same = (first == second) | ((first != first) & (second != second))
    replaced = torch.where(same, left, right)
    replaced = (replaced.squeeze(dim) if reduced else replaced).to(ours.device)
    return replaced if isinstance(actual, torch.Tensor) else type(actual)((actual[0], replaced))


def has_equal_elements(op: Any, arguments: tuple) -> bool:
    """Whether the operator selects among equal elements of its input, in no promised order."""
    name = getattr(op, "name", None)
    x, _, kwargs = arguments
    if name not in (*_DIM, *_VALUES_ONLY) or kwargs.get("stable"):
        return False
    return x.unique().numel() < x.numel()


def _repeats(index: torch.Tensor, dim: int) -> bool:
    ordered = index.sort(dim).values
    return bool((ordered.diff(dim=dim) == 0).any())
