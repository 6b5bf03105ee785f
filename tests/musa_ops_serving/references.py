# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The operators in torch, in float64 on the CPU, with loops over tokens and heads instead of tiles."""

from __future__ import annotations

import torch
from torch import Tensor


def rows_of(cache: Tensor, table: Tensor, length: int, scale: Tensor | None) -> Tensor:
    """The first `length` tokens of a sequence: (length, kv_heads, size)."""
    size = cache.shape[1]
    tokens = [cache[int(table[at // size]), at % size] for at in range(length)]
    rows = torch.stack(tokens) if tokens else cache.new_zeros(0, *cache.shape[2:])
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
    key_cache, value_cache = key_cache.double(), value_cache.double()
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


LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    key_scale: Tensor | None = None,
    value_scale: Tensor | None = None,
) -> None:
    """Changes the caches."""
    size = key_cache.shape[1]
    for rows, cache, scale in ((key, key_cache, key_scale), (value, value_cache, value_scale)):
        for token, slot in enumerate(slot_mapping.tolist()):
            if slot >= 0:
                row = rows[token].float()  # the division is one of float32
                row = row if scale is None else row / scale.float().reshape(-1, 1)
                if cache.dtype in LARGEST:
                    row = row.clamp(-LARGEST[cache.dtype], LARGEST[cache.dtype])
                cache[slot // size, slot % size] = row.to(cache.dtype)


def rms_norm(input: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return input * (input.square().mean(-1, keepdim=True) + epsilon).rsqrt() * weight


def add_rms_norm(input: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    return rms_norm(input + residual, weight, epsilon), input + residual


def add_rms_norm_(input: Tensor, residual: Tensor, weight: Tensor, epsilon: float) -> None:
    """Changes input and residual."""
    residual += input
    input.copy_(rms_norm(residual, weight, epsilon))


def rotary_embedding(
    positions: Tensor, query: Tensor, key: Tensor | None, head_size: int, cos_sin_cache: Tensor, neox: bool
) -> None:
    """Changes query and key: products of complex numbers."""
    cosines, sines = cos_sin_cache[positions].double().chunk(2, -1)
    factors = torch.complex(cosines, sines)[:, None]
    rotated = cos_sin_cache.shape[1]
    for tensor in (query, key):
        if tensor is not None:
            heads = tensor.unflatten(-1, (-1, head_size)).flatten(1, -2)[..., :rotated].clone()
            pairs = heads.unflatten(-1, (2, -1)).mT if neox else heads.unflatten(-1, (-1, 2))
            numbers = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * factors)
            result = numbers.mT.flatten(-2) if neox else numbers.flatten(-2)
            tensor.unflatten(-1, (-1, head_size))[..., :rotated] = (
                result if tensor.dim() == 2 else result.unsqueeze(-2)
            )


def silu_and_mul(input: Tensor) -> Tensor:
    gates, values = input.chunk(2, -1)
    return gates * gates.sigmoid() * values


def gelu_and_mul(input: Tensor, approximate: str = "none") -> Tensor:
    gates, values = input.chunk(2, -1)
    return torch.nn.functional.gelu(gates, approximate=approximate) * values


def apply_penalties(
    logits: Tensor,
    prompt_mask: Tensor,
    output_counts: Tensor,
    presence: Tensor,
    frequency: Tensor,
    repetition: Tensor,
) -> None:
    """Changes the logits."""
    seen = prompt_mask | (output_counts > 0)
    factors = torch.where(seen, repetition.double()[:, None], torch.ones((), dtype=torch.float64))
    logits.copy_(torch.where(logits > 0, logits / factors, logits * factors))
    logits -= frequency.double()[:, None] * output_counts
    logits -= presence.double()[:, None] * (output_counts > 0)


def top_k_top_p(logits: Tensor, k: Tensor | None, p: Tensor | None) -> Tensor:
    out = logits.clone()
    for row, numbers in enumerate(out):
        if k is not None and 0 < k[row] < len(numbers):
            least = numbers.sort(descending=True).values[k[row] - 1]
            numbers[numbers < least] = -torch.inf
        if p is not None and p[row] < 1:
            values = numbers.sort(descending=True).values
            sums = values.softmax(0).cumsum(0)
            count = int((sums < p[row]).sum()) + 1  # the first sum that reaches p
            numbers[numbers < values[count - 1]] = -torch.inf
    return out


def moe_route(
    scores: Tensor,
    k: int,
    *,
    scoring: str = "softmax",
    renormalize: bool = True,
    groups: int = 1,
    top_groups: int = 1,
    bias: Tensor | None = None,
    scale: float = 1.0,
) -> tuple[Tensor, Tensor]:
    shares = scores.softmax(-1) if scoring == "softmax" else scores.sigmoid()
    choices = shares if bias is None else shares + bias.double()
    grouped = choices.unflatten(-1, (groups, -1))
    best = grouped.amax(-1) if bias is None else grouped.topk(min(2, grouped.shape[-1]), -1).values.sum(-1)
    kept = torch.zeros_like(best, dtype=torch.bool).scatter_(1, best.topk(top_groups, -1).indices, True)
    choices = grouped.masked_fill(~kept[..., None], -torch.inf).flatten(-2)
    experts = choices.topk(k, -1).indices
    weights = shares.gather(1, experts)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights * scale, experts.int()


def moe_group(experts: Tensor, expert_count: int) -> tuple[Tensor, Tensor]:
    flat = experts.flatten().long()
    order = torch.where(flat < 0, expert_count, flat).argsort(stable=True)
    return order, torch.bincount(flat[flat >= 0], minlength=expert_count).cumsum(0).int()


def lora_shrink(input: Tensor, weights: Tensor, adapter_of_token: Tensor, scale: float) -> Tensor:
    out = torch.zeros(len(input), weights.shape[1], dtype=torch.float64)
    for token, adapter in enumerate(adapter_of_token.tolist()):
        if adapter >= 0:
            out[token] = weights[adapter] @ input[token] * scale
    return out


def lora_expand(
    input: Tensor, weights: Tensor, adapter_of_token: Tensor, output: Tensor, offset: int = 0
) -> None:
    """Changes the output."""
    for token, adapter in enumerate(adapter_of_token.tolist()):
        if adapter >= 0:
            output[token, offset : offset + weights.shape[1]] += weights[adapter] @ input[token].double()
