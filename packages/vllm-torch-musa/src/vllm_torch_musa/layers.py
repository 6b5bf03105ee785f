# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Layers of vLLM's models by the serving operators."""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.activation import GeluAndMul, SiluAndMul
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

from . import experts  # noqa: F401 - registers its class


@SiluAndMul.register_oot
class MusaSiluAndMul(SiluAndMul):
    """The product of SiLU of the first half of the last dimension with the second half."""

    def forward_oot(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.musa_serving.silu_and_mul(x)


@GeluAndMul.register_oot
class MusaGeluAndMul(GeluAndMul):
    """The product of GELU of the first half of the last dimension with the second half."""

    def forward_oot(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.musa_serving.gelu_and_mul(x, self.approximate)


@RotaryEmbedding.register_oot
class MusaRotaryEmbedding(RotaryEmbedding):
    """Rotates queries and keys in place."""

    def forward_oot(
        self, positions: torch.Tensor, query: torch.Tensor, key: torch.Tensor | None = None, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        cache = self._match_cos_sin_cache_dtype(query)
        torch.ops.musa_serving.rotary_embedding(
            positions, query, key, self.head_size, cache, self.is_neox_style
        )
        return query, key
