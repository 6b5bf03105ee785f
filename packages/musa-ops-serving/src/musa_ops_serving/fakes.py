# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fake rules: shapes and dtypes of results, for torch.compile and torch.export."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def paged_attention(
    query: Tensor, key_cache: Tensor, value_cache: Tensor, *rest: Any, **options: Any
) -> Tensor:
    """Returns (tokens, heads, size of the values)."""
    torch._check(
        query.dim() == 3, lambda: f"paged_attention: expected a query of 3 dimensions, got {query.shape}"
    )
    return query.new_empty((query.shape[0], query.shape[1], value_cache.shape[-1]))


def paged_attention_out(*arguments: Any, out: Tensor, **options: Any) -> Tensor:
    """Returns the output argument."""
    return out


def like_input(input: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Returns a contiguous tensor of the shape of the input."""
    return input.new_empty(input.shape)


def add_rms_norm(input: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
    """Returns the norm and the sum, of the shape of the input."""
    return input.new_empty(input.shape), input.new_empty(input.shape)


def gated(input: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Returns half of the last dimension."""
    torch._check(
        input.shape[-1] % 2 == 0, lambda: f"expected gates and values, got a row of {input.shape[-1]}"
    )
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


def moe_route(scores: Tensor, k: int, **options: Any) -> tuple[Tensor, Tensor]:
    """Returns (tokens, k): float32 weights and int32 experts."""
    shape = (scores.shape[0], k)
    return scores.new_empty(shape, dtype=torch.float32), scores.new_empty(shape, dtype=torch.int32)


def moe_group(experts: Tensor, expert_count: int) -> tuple[Tensor, Tensor]:
    """Returns the int64 order of all rows, and int32 ends of the experts."""
    order = experts.new_empty((experts.numel(),), dtype=torch.int64)
    return order, experts.new_empty((expert_count,), dtype=torch.int32)


def lora_shrink(input: Tensor, weights: Tensor, *rest: Any) -> Tensor:
    """Returns float32 (tokens, rank)."""
    return input.new_empty((input.shape[0], weights.shape[1]), dtype=torch.float32)


def in_place(*arguments: Any, **options: Any) -> None:
    """Returns nothing."""


RULES = {
    "reshape_and_cache": in_place,
    "paged_attention": paged_attention,
    "paged_attention.out": paged_attention_out,
    "rms_norm": like_input,
    "add_rms_norm": add_rms_norm,
    "add_rms_norm_": in_place,
    "rotary_embedding": in_place,
    "silu_and_mul": gated,
    "gelu_and_mul": gated,
    "apply_penalties": in_place,
    "top_k_top_p": like_input,
    "moe_route": moe_route,
    "moe_group": moe_group,
    "lora_shrink": lora_shrink,
    "lora_expand": in_place,
}


def register(library: torch.library.Library) -> None:
    """Registers the rules. The operators exist."""
    for name, rule in RULES.items():
        torch.library.register_fake(f"{library.ns}::{name}", rule, lib=library)
