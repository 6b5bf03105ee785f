# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attention with a paged cache as an attention backend of vLLM.

A batch has decoding sequences first, then prompts. `torch.ops.musa_serving.paged_attention` serves both, in
one call each. Prompts none of whose tokens was in the cache need no cache: `torch.nn.attention.varlen` serves
them where muDNN has the case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch.nn.attention.varlen import varlen_attn_out
from vllm.utils.torch_utils import is_quantized_kv_cache
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionLayer,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    CommonAttentionMetadata,
)
from vllm.v1.attention.backends.registry import register_backend
from vllm.v1.attention.backends.utils import split_decodes_and_prefills

from torch_musa import musa

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.config.cache import CacheDType
    from vllm.v1.kv_cache_interface import KVCacheSpec

# muDNN's attention of packed sequences has these head sizes since this architecture. Elsewhere torch_musa
# composes it from products of whole matrices, whose memory grows with the square of a prompt.
PACKED_SIZE, PACKED_CAPABILITY = 128, (2, 2)
FLOAT8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}


@dataclass
class Part:
    """Adjacent sequences of a batch, as arguments of the operator; docs/design/serving.md has their shapes.

    Attributes:
        tokens: the tokens of these sequences among those of the batch.
        is_whole: all tokens of each sequence are in the batch.
    """

    tokens: slice
    max_query_length: int
    max_sequence_length: int
    query_starts: torch.Tensor
    sequence_lengths: torch.Tensor
    block_table: torch.Tensor
    is_whole: bool


@dataclass
class PagedMetadata(AttentionMetadata):
    """What the layers of a batch share."""

    num_actual_tokens: int  # vLLM's layer of latent attention reads it
    parts: list[Part]
    causal: bool


class PagedMetadataBuilder(AttentionMetadataBuilder[PagedMetadata]):
    """Builds the metadata of a batch without a copy: the operator takes vLLM's tensors as they are."""

    # The operator reads nothing on the host, so a graph of decoding steps may hold it.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH

    def __init__(
        self,
        kv_cache_spec: KVCacheSpec,
        layer_names: list[str],
        vllm_config: VllmConfig,
        device: torch.device,
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> PagedMetadata:
        common = common_attn_metadata
        if not isinstance(common.causal, bool):
            raise NotImplementedError("A batch that mixes causal and other sequences is not served on musa.")
        decodes, prompts, decode_tokens, _ = split_decodes_and_prefills(common)
        parts = []
        if decodes or not prompts:
            parts.append(
                Part(
                    tokens=slice(0, decode_tokens),
                    max_query_length=1 if prompts else common.max_query_len,
                    max_sequence_length=common.max_seq_len,
                    query_starts=common.query_start_loc[: decodes + 1],
                    sequence_lengths=common.seq_lens[:decodes],
                    block_table=common.block_table_tensor[:decodes],
                    is_whole=False,
                )
            )
        if prompts:
            counts = common.query_start_loc_cpu[decodes : common.num_reqs + 1].diff()
            bounds = common.seq_lens_cpu_upper_bound
            starts = common.query_start_loc[decodes:]
            parts.append(
                Part(
                    tokens=slice(decode_tokens, common.num_actual_tokens),
                    max_query_length=common.max_query_len,
                    max_sequence_length=common.max_seq_len,
                    query_starts=starts - decode_tokens if decodes else starts,
                    sequence_lengths=common.seq_lens[decodes:],
                    block_table=common.block_table_tensor[decodes:],
                    is_whole=bounds is not None and torch.equal(bounds[decodes : common.num_reqs], counts),
                )
            )
        return PagedMetadata(common.num_actual_tokens, parts, common.causal)


class PagedAttention(AttentionImpl[PagedMetadata]):
    """One attention layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
    ) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.alibi_slopes = (
            None if alibi_slopes is None else torch.tensor(alibi_slopes, dtype=torch.float32, device="musa")
        )
        # Both count the keys that a query sees, its own included.
        self.window = -1 if sliding_window is None else sliding_window
        self.kv_cache_dtype = kv_cache_dtype
        self.soft_cap = logits_soft_cap or 0.0
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sinks = sinks
        # Whether attention within new tokens alone may be this layer's, and muDNN has it.
        self.may_pack = (
            kv_sharing_target_layer_name is None
            and not self.soft_cap
            and alibi_slopes is None
            and sinks is None
            and head_size <= PACKED_SIZE
            and musa.get_device_capability() >= PACKED_CAPABILITY
        )

    def _caches(self, kv_cache: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns views [blocks, block_size, kv_heads, size] of [blocks, kv_heads, block_size, sizes]."""
        if is_quantized_kv_cache(self.kv_cache_dtype):
            kv_cache = kv_cache.view(FLOAT8[self.kv_cache_dtype])
        key_cache, value_cache = kv_cache.transpose(1, 2).split(
            [self.head_size, kv_cache.shape[-1] - self.head_size], dim=-1
        )
        return key_cache, value_cache

    def _scales(self, layer: AttentionLayer) -> dict[str, torch.Tensor]:
        if not is_quantized_kv_cache(self.kv_cache_dtype):
            return {}
        return {"key_scale": layer._k_scale, "value_scale": layer._v_scale}

    def do_kv_cache_update(
        self,
        layer: AttentionLayer,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> None:
        """Writes keys and values of shape [tokens, kv_heads, size] to the cache."""
        # vLLM pads the tokens for a graph; the slots of the padding are negative, or absent.
        tokens = slot_mapping.shape[0]
        torch.ops.musa_serving.reshape_and_cache(
            key[:tokens], value[:tokens], *self._caches(kv_cache), slot_mapping, **self._scales(layer)
        )

    def forward(
        self,
        layer: AttentionLayer,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: PagedMetadata,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Writes attention of queries [tokens, heads, head_size] to `output`, [tokens, heads, value size]."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("Attention that quantizes its result is not served on musa.")
        if attn_metadata is None:  # The run that measures memory has no cache.
            return output.fill_(0)
        for part in attn_metadata.parts:
            out, new = output[part.tokens], query[part.tokens]
            if self._is_packed(part, key, value):
                varlen_attn_out(
                    out,
                    new,
                    key[part.tokens],
                    value[part.tokens],
                    part.query_starts,
                    part.query_starts,
                    part.max_query_length,
                    part.max_query_length,
                    scale=self.scale,
                    window_size=(-1, 0) if attn_metadata.causal else (-1, -1),
                    enable_gqa=True,
                )
            else:
                torch.ops.musa_serving.paged_attention.out(
                    new,
                    *self._caches(kv_cache),
                    part.block_table,
                    part.query_starts,
                    part.sequence_lengths,
                    part.max_query_length,
                    part.max_sequence_length,
                    scale=self.scale,
                    causal=attn_metadata.causal,
                    window=self.window,
                    soft_cap=self.soft_cap,
                    alibi_slopes=self.alibi_slopes,
                    sinks=self.sinks,
                    **self._scales(layer),
                    out=out,
                )
        return output

    def _is_packed(self, part: Part, key: torch.Tensor | None, value: torch.Tensor | None) -> bool:
        """Whether attention within the new tokens is that of the layer, and muDNN has it."""
        return (
            part.is_whole
            and self.may_pack
            and key is not None
            and value is not None
            and (self.window == -1 or part.max_query_length <= self.window)
            and value.shape[-1] == self.head_size
        )


class PagedBackend(AttentionBackend):
    """The attention backend of models whose cache holds keys and values."""

    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16, torch.float32]
    supported_kv_cache_dtypes: ClassVar[list[CacheDType]] = ["auto", "float16", "bfloat16", *FLOAT8]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name() -> str:
        return "MUSA_PAGED"

    @staticmethod
    def get_impl_cls() -> type[PagedAttention]:
        return PagedAttention

    @staticmethod
    def get_builder_cls() -> type[PagedMetadataBuilder]:
        return PagedMetadataBuilder

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    @classmethod
    def supports_non_causal(cls) -> bool:
        return True


# An attention layer looks the name of its backend up in vLLM's table.
register_backend(PagedBackend.get_name(), f"{__name__}.{PagedBackend.__qualname__}")
