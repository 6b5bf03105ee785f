# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fake rules: shapes and dtypes of results, for torch.compile and torch.export."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_library: torch.library.Library | None = None  # owns the registrations


def reshape_and_cache(*arguments: Any, **options: Any) -> None:
    """Returns nothing."""


def paged_attention(query: Tensor, key_cache: Tensor, value_cache: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Returns (tokens, heads, size of the values)."""
    torch._check(query.dim() == 3, lambda: f"paged_attention: expected a query of 3 dimensions, got {query.shape}")
    return query.new_empty((query.shape[0], query.shape[1], value_cache.shape[-1]))


def paged_attention_out(*arguments: Any, out: Tensor, **options: Any) -> Tensor:
    """Returns the output argument."""
    return out


RULES = {
    "reshape_and_cache": reshape_and_cache,
    "paged_attention": paged_attention,
    "paged_attention.out": paged_attention_out,
}


def register() -> None:
    """Registers the rules, once the library has defined the operators."""
    global _library
    if _library is None:
        _library = torch.library.Library("musa_serving", "FRAGMENT")
        for name, rule in RULES.items():
            torch.library.register_fake(f"musa_serving::{name}", rule, lib=_library)
