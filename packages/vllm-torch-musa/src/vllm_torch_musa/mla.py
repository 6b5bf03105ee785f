# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Latent attention (MLA) of DeepSeek's models, in its absorbed form.

The cache holds one vector for each token: the latent vector, then the rotated part of the key. In the
absorbed form attention over it is attention with one key head whose values are the first elements of the
keys, so the operator of the other models serves it. Prompts take this form too: it needs no second cache, at
the price of longer products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionLayer,
    CommonAttentionMetadata,
    MLAAttentionImpl,
)
from vllm.v1.attention.backends.mla.prefill.base import MLAPrefillBackend
from vllm.v1.attention.backends.registry import register_backend

from .attention import PagedMetadata, PagedMetadataBuilder

if TYPE_CHECKING:
    from vllm.config.cache import CacheDType


@dataclass
class LatentMetadata(PagedMetadata):
    """The metadata, with the fields by which vLLM's layer divides a batch. All tokens are absorbed."""

    num_decodes: int
    num_decode_tokens: int
    num_prefills: int = 0
    prefill: None = None

    @property
    def decode(self) -> LatentMetadata:
        return self


class LatentMetadataBuilder(PagedMetadataBuilder):
    """Builds the metadata of a batch."""

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> LatentMetadata:
        metadata = super().build(common_prefix_len, common_attn_metadata, fast_build)
        return LatentMetadata(
            **vars(metadata),
            num_decodes=common_attn_metadata.num_reqs,
            num_decode_tokens=metadata.num_actual_tokens,
        )


class LatentAttention(MLAAttentionImpl[LatentMetadata]):
    """One attention layer."""

    supports_pcp = False

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int,
        alibi_slopes: list[float] | None,
        sliding_window: int | None,
        kv_cache_dtype: str,
        logits_soft_cap: float | None,
        attn_type: str,
        kv_sharing_target_layer_name: str | None,
        **sizes: Any,
    ) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads
        self.window = -1 if sliding_window is None else sliding_window
        self.kv_cache_dtype = kv_cache_dtype
        self.kv_lora_rank = sizes["kv_lora_rank"]

    def do_kv_cache_update(
        self,
        kv_c_normed: torch.Tensor,
        k_pe: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
        kv_cache_dtype: str,
        k_scale: torch.Tensor,
    ) -> None:
        """Writes latent vectors [tokens, rank] and rotated keys [tokens, 1, size] to the cache."""
        if kv_cache.numel() == 0:  # The run that measures memory has no cache.
            return
        slots = slot_mapping.flatten()
        tokens = slots.shape[0]
        latent, rotated = kv_cache.unsqueeze(2).split(
            [self.kv_lora_rank, kv_cache.shape[-1] - self.kv_lora_rank], dim=-1
        )
        torch.ops.musa_serving.reshape_and_cache(
            kv_c_normed[:tokens].unsqueeze(1), k_pe[:tokens].reshape(tokens, 1, -1), latent, rotated, slots
        )

    def forward_mqa(
        self,
        q: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        kv_c_and_k_pe_cache: torch.Tensor,
        attn_metadata: LatentMetadata,
        layer: AttentionLayer,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Returns [tokens, heads, rank] for queries [tokens, heads, rank + rotated size]."""
        query = torch.cat(q, dim=-1) if isinstance(q, tuple) else q
        cache = kv_c_and_k_pe_cache.unsqueeze(2)
        result = query.new_empty(*query.shape[:2], self.kv_lora_rank)
        for part in attn_metadata.parts:
            torch.ops.musa_serving.paged_attention.out(
                query[part.tokens],
                cache,
                cache[..., : self.kv_lora_rank],
                part.block_table,
                part.query_starts,
                part.sequence_lengths,
                part.max_query_length,
                part.max_sequence_length,
                scale=self.scale,
                causal=attn_metadata.causal,
                window=self.window,
                out=result[part.tokens],
            )
        return result, None


class LatentBackend(AttentionBackend):
    """The attention backend of models whose cache holds latent vectors."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes: ClassVar[list[CacheDType]] = ["auto", "float16", "bfloat16"]

    @staticmethod
    def get_name() -> str:
        return "MUSA_LATENT"

    @staticmethod
    def get_impl_cls() -> type[LatentAttention]:
        return LatentAttention

    @staticmethod
    def get_builder_cls() -> type[LatentMetadataBuilder]:
        return LatentMetadataBuilder

    @classmethod
    def is_mla(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True


class LatentPrefill(MLAPrefillBackend):
    """Stands for vLLM's second kind of attention, that of a prompt in the form that is not absorbed.

    vLLM requires a class for it. No batch of `LatentMetadata` has tokens of that kind, so its methods are
    not called.
    """

    supported_dtypes: ClassVar[list[torch.dtype]] = LatentBackend.supported_dtypes

    @staticmethod
    def get_name() -> str:
        return "MUSA_LATENT"

    def run_prefill_new_tokens(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("A prompt takes the absorbed form.")

    def run_prefill_context_chunk(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("A prompt takes the absorbed form.")


register_backend(LatentBackend.get_name(), f"{__name__}.{LatentBackend.__qualname__}")
