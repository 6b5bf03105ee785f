# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares the results of a program on two devices: trees of tensors, numbers, strings and containers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

# A tensor's scale is at least this share of the largest value in its container.
SHARE_OF_GROUP = 1e-2


class Differs(AssertionError):
    """Two results that should be equal are not."""


def leaves(tree: Any, name: str = "result") -> Iterator[tuple[str, Any]]:
    """The tensors and values of a tree, each with its path."""
    if isinstance(tree, (torch.Tensor, np.ndarray, bool, int, float, str, type(None), torch.dtype)):
        yield name, tree
    elif isinstance(tree, np.generic):
        yield name, tree.item()
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, (type, Mapping)):
        for field in dataclasses.fields(tree):
            yield from leaves(getattr(tree, field.name), f"{name}.{field.name}")
    elif isinstance(tree, Mapping):
        for key in tree:
            yield from leaves(tree[key], f"{name}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        for number, part in enumerate(tree):
            yield from leaves(part, f"{name}[{number}]")
    else:
        raise TypeError(f"{name} is a {type(tree).__name__}, which cannot be compared")


def devices(tree: Any) -> Counter[str]:
    """Device types of the tree's tensors."""
    return Counter(leaf.device.type for _, leaf in leaves(tree) if isinstance(leaf, torch.Tensor))


def _as_tensor(leaf: Any) -> torch.Tensor:
    tensor = torch.as_tensor(leaf).detach()
    return (tensor.to_dense() if tensor.layout != torch.strided else tensor).cpu()


def group_of(name: str) -> str:
    """The path of the container of a leaf."""
    return name[: max(name.rfind("["), name.rfind("."), 0)]


def largest(leaf: Any) -> float:
    """The largest finite absolute value of a floating-point tensor; 0 for other leaves."""
    if not isinstance(leaf, (torch.Tensor, np.ndarray)) or not torch.as_tensor(leaf).dtype.is_floating_point:
        return 0.0
    values = _as_tensor(leaf).double()
    return values[values.isfinite()].abs().max().item() if values.isfinite().any() else 0.0


def difference(expected: Any, found: Any, name: str, least_scale: float = 0.0) -> float:
    """The largest difference of two leaves relative to the largest expected value, or to `least_scale` if it
    is larger.

    Raises Differs if integers, booleans, strings, shapes or dtypes are not equal.
    """
    if isinstance(expected, (str, type(None), torch.dtype)):
        if expected != found:
            raise Differs(f"{name}: {found!r} on musa, {expected!r} on the CPU")
        return 0.0
    expected, found = _as_tensor(expected), _as_tensor(found)
    if (expected.shape, expected.dtype) != (found.shape, found.dtype):
        kinds = [f"{list(tensor.shape)} of {tensor.dtype}" for tensor in (found, expected)]
        raise Differs(f"{name}: {kinds[0]} on musa, {kinds[1]} on the CPU")
    if not expected.dtype.is_floating_point and not expected.dtype.is_complex:
        if not torch.equal(expected, found):
            raise Differs(f"{name}: {found.flatten()[:8]} on musa, {expected.flatten()[:8]} on the CPU")
        return 0.0
    if expected.isnan().any():
        raise Differs(f"{name}: the CPU's result holds NaN, so nothing is compared")
    wide = torch.complex128 if expected.dtype.is_complex else torch.float64
    expected, found = expected.to(wide), found.to(wide)
    finite = expected.isfinite()
    if not torch.equal(expected[~finite], found[~finite]):
        raise Differs(f"{name}: infinities differ")
    if not finite.any():
        return 0.0
    scale = max(expected[finite].abs().max().item(), least_scale, torch.finfo(torch.float32).tiny)
    return ((expected[finite] - found[finite]).abs().max() / scale).nan_to_num(torch.inf).item()


def compare(expected: Any, found: Any, within: float) -> float:
    """The largest relative difference of two trees.

    Raises:
        Differs: a leaf differs by more than `within`, the trees have different leaves, or no leaf to compare.
    """
    expected, found = dict(leaves(expected)), dict(leaves(found))
    if expected.keys() != found.keys():
        raise Differs(f"results have other parts: {sorted(expected.keys() ^ found.keys())}")
    if not any(isinstance(leaf, (torch.Tensor, np.ndarray, int, float, str)) for leaf in expected.values()):
        raise Differs("the program returned nothing that could be compared")
    # A gradient that is 0 except for rounding, as that of a bias before a batch norm, has no meaningful scale
    # of its own, so a tensor's scale also depends on the other tensors of its container.
    scales: dict[str, float] = {}
    for name, leaf in expected.items():
        scales[group_of(name)] = max(scales.get(group_of(name), 0.0), largest(leaf))
    worst = 0.0
    for name, leaf in expected.items():
        this = difference(leaf, found[name], name, SHARE_OF_GROUP * scales[group_of(name)])
        if not this <= within:
            raise Differs(f"{name} differs from the CPU's by {this:.3g}, more than {within:g}")
        worst = max(worst, this)
    return worst
