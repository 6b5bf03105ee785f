# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators in torch, in float64 on the CPU, with loops over tokens and heads instead of the kernels' tiles."""

from __future__ import annotations

import torch
from torch import Tensor


def rows_of(cache: Tensor, table: Tensor, length: int, scale: Tensor | None) -> Tensor:
    """The first `length` tokens of a sequence: (length, kv_heads, size)."""
    size = cache.shape[1]
    tokens = [cache[int(table[at // size]), at % size] for at in range(length)]
    rows = torch.stack(tokens).double() if tokens else cache.new_zeros(0, *cache.shape[2:]).double()
    return rows if scale is None else rows * scale.double().reshape(-1, 1)


def paged_attention(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_table: Tensor,
    query_starts: Tensor,
    sequence_lengths: Tensor,
    max_query_length: int,
    max_sequence_length: int,
    *,
    scale: float,
    causal: bool = True,
    window: int = -1,
    soft_cap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    sinks: Tensor | None = None,
    key_scale: Tensor | None = None,
    value_scale: Tensor | None = None,
) -> Tensor:
    tokens, heads, _ = query.shape
    out = torch.zeros(tokens, heads, value_cache.shape[-1], dtype=torch.float64)
    group = heads // key_cache.shape[2]
    starts = query_starts.tolist()
    for sequence, length in enumerate(sequence_lengths.tolist()):
        keys = rows_of(key_cache, block_table[sequence], length, key_scale)
        values = rows_of(value_cache, block_table[sequence], length, value_scale)
        count = starts[sequence + 1] - starts[sequence]
        places = torch.arange(length)
        for token in range(count):
            position = length - count + token
            visible = torch.ones(length, dtype=torch.bool)
            if causal:
                visible &= places <= position
            if window > 0:
                visible &= places > position - window
            if not visible.any():
                continue
            row = starts[sequence] + token
            for head in range(heads):
                scores = keys[visible, head // group] @ query[row, head].double() * scale
                if soft_cap > 0:
                    scores = soft_cap * torch.tanh(scores / soft_cap)
                if alibi_slopes is not None:
                    scores = scores + alibi_slopes[head].double() * (places[visible] - position)
                if sinks is not None:
                    scores = torch.cat([scores, sinks[head].double().reshape(1)])
                weights = scores.softmax(0)[: int(visible.sum())]
                out[row, head] = weights @ values[visible, head // group]
    return out
