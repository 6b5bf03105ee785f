# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Handles indices that differ because several elements are equal, as in sorting and maxima."""

import torch

# Operators that return values and their indices along `dim`; without `dim`, along the last
# dimension.
_ALONG_DIMENSION = frozenset(
    ("sort", "topk", "max", "min", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin", "argsort",
     "argmax", "argmin", "_cummax_helper", "_cummin_helper")
)  # fmt: skip
# The output with the indices, if it is not the second one.
_INDICES_OF = {"argsort": "result", "argmax": "result", "argmin": "result"}


def picked_values(call, name, actual, source):
    """Returns the values at the device's indices, to compare with the values at the CPU's indices.

    Args:
        call (OperatorCall): the call.
        name (str): the output's name.
        actual (Tensor): int64 indices from the device, on the CPU.
        source (dict of str to Tensor): the call's arguments on the CPU.

    Returns:
        Tensor or None: None if the output has no such indices, or if they are out of range or repeated.
    """
    if actual.dtype is not torch.int64 or "self" not in source:
        return None
    values, picked = dict(call.named_arguments), source["self"]
    if values.get("stable"):  # the order of ties is specified
        return None
    if name == "result[1]" and call.base_name.startswith(
        ("max_pool", "adaptive_max_pool", "fractional_max_pool")
    ):
        spatial = 3 if "3d" in call.base_name else 2
        return _gather(picked.flatten(-spatial), actual.flatten(-spatial), -1)
    if call.base_name not in _ALONG_DIMENSION or name != _INDICES_OF.get(call.base_name, "result[1]"):
        return None
    dim = values.get("dim", -1)
    if dim is None:
        return _gather(picked.reshape(-1), actual.reshape(-1), 0)
    if not isinstance(dim, int):
        return None
    if actual.dim() < picked.dim():
        actual = actual.unsqueeze(dim)
    if call.base_name in ("sort", "argsort") and actual.dim():
        order = actual.sort(dim).values
        places = torch.arange(actual.shape[dim]).view([-1] + [1] * (actual.dim() - 1 - dim % actual.dim()))
        if not bool((order == places).all()):
            return None
    return _gather(picked, actual, dim)


def _gather(values, indices, dim):
    if not values.dim():
        values, indices = values.reshape(1), indices.reshape(1)
    size = values.shape[dim]
    if indices.numel() and not (int(indices.min()) >= 0 and int(indices.max()) < size):
        return None
    return values.gather(dim, indices)
