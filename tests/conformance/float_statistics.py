# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Layer and batch norm of 16-bit inputs: a deviation from the CPU, which saves mean and rstd in 16 bits.

As on torch.cuda and with fake tensors, they are float32 on the device (test_norm_statistics.py). The
reference is the CPU's call in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_map_only

# Results 1 and 2 of these operators are mean and rstd.
_OPERATORS = frozenset(
    ("native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
)
_HALVES = (torch.float16, torch.bfloat16)


def with_float_statistics(op: Any, arguments: tuple, expected: Any, device: str) -> Any:
    """`expected`, the CPU's results, with the statistics of a normalization of 16-bit inputs in float32."""
    if device == "cpu" or getattr(op, "name", None) not in _OPERATORS or expected[1].dtype not in _HALVES:
        return expected
    x, args, kwargs = tree_map_only(torch.Tensor, torch.Tensor.float, arguments)
    in_float = op(x, *args, **kwargs)
    return type(expected)((expected[0], *in_float[1:3], *expected[3:]))
