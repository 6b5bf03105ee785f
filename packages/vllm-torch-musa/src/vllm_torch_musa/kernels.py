# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Replacements for Triton kernels of vLLM's model runner, by vLLM's interface `register_kernels`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def compute_slot_mapping(
    num_tokens: int,
    max_num_tokens: int,
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table: torch.Tensor,
    block_table_stride: int,
    slot_mapping: torch.Tensor,
    KV_CACHE_BLOCK_SIZE: int,
    TOTAL_CP_WORLD_SIZE: int,
    TOTAL_CP_RANK: int,
    CP_KV_CACHE_INTERLEAVE_SIZE: int,
    PAD_ID: int,
    BLOCK_SIZE: int,
) -> None:
    """Writes the place of each token in the cache.

    Args:
        num_tokens: Tokens of the batch, padding included.
        max_num_tokens: Elements of `slot_mapping`.
        query_start_loc: Shape [sequences + 1], int32: the first token of each sequence.
        positions: Shape [num_tokens], int64: the position of each token in its sequence.
        block_table: Shape [most sequences, most blocks], int32.
        block_table_stride: Elements between two rows of `block_table`.
        slot_mapping: Shape [max_num_tokens], int64. Element t becomes `block * KV_CACHE_BLOCK_SIZE + offset`;
            elements that belong to no token, or to a token of another rank, become `PAD_ID`.
        KV_CACHE_BLOCK_SIZE: Tokens of a block.
        TOTAL_CP_WORLD_SIZE: Ranks between which a sequence is divided.
        TOTAL_CP_RANK: Number of this rank.
        CP_KV_CACHE_INTERLEAVE_SIZE: Successive tokens of one rank.
        PAD_ID: Marks an element that is not written.
        BLOCK_SIZE: Not used.
    """
    tokens = torch.arange(num_tokens, device=positions.device, dtype=query_start_loc.dtype)
    # The last starts repeat the number of tokens, so padding tokens get the index after the last sequence.
    sequences = torch.searchsorted(query_start_loc[1:].contiguous(), tokens, right=True)
    of_sequence = sequences < query_start_loc.numel() - 1
    sequences = sequences.clamp_(max=query_start_loc.numel() - 2)
    positions = positions[:num_tokens]
    period = KV_CACHE_BLOCK_SIZE * TOTAL_CP_WORLD_SIZE
    columns = positions // period
    offsets = positions - columns * period
    if TOTAL_CP_WORLD_SIZE > 1:
        turns = offsets // CP_KV_CACHE_INTERLEAVE_SIZE
        of_sequence &= turns % TOTAL_CP_WORLD_SIZE == TOTAL_CP_RANK
        offsets = (
            turns // TOTAL_CP_WORLD_SIZE * CP_KV_CACHE_INTERLEAVE_SIZE + offsets % CP_KV_CACHE_INTERLEAVE_SIZE
        )
    columns = columns.clamp_(max=block_table.shape[1] - 1)
    slots = block_table[sequences, columns].long() * KV_CACHE_BLOCK_SIZE + offsets
    slot_mapping[:num_tokens] = torch.where(of_sequence, slots, PAD_ID)
    slot_mapping[num_tokens:max_num_tokens].fill_(PAD_ID)


REPLACEMENTS: dict[str, Callable[..., Any]] = {
    "vllm.v1.worker.block_table.ComputeSlotMappingKernel.kernel": compute_slot_mapping,
}
