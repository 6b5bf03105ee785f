# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The replacements of Triton kernels, without vLLM."""

from __future__ import annotations

import pytest
import torch

from vllm_torch_musa.kernels import compute_slot_mapping

PAD = -1
BLOCK = 4
STARTS = [0, 3, 3, 8, 9]  # the second sequence has no token
POSITIONS = [5, 6, 7, 0, 1, 2, 3, 4, 30, 0, 0]  # the last two are padding


def expected(table: list[list[int]], ranks: int, rank: int, turn: int) -> list[int]:
    slots = []
    for token, position in enumerate(POSITIONS):
        sequence = next((i for i in range(len(STARTS) - 1) if STARTS[i] <= token < STARTS[i + 1]), None)
        column, offset = divmod(position, BLOCK * ranks)
        if sequence is None or offset // turn % ranks != rank:
            slots.append(PAD)
        else:
            offset = offset // (ranks * turn) * turn + offset % turn
            slots.append(table[sequence][column] * BLOCK + offset)
    return [*slots, PAD, PAD, PAD]


@pytest.mark.parametrize(("ranks", "rank", "turn"), [(1, 0, 1), (2, 0, 1), (2, 1, 1), (2, 1, 2)])
def test_slots_are_those_of_the_table_and_padding_is_marked(ranks: int, rank: int, turn: int) -> None:
    table = [[10 * row + column for column in range(8)] for row in range(6)]
    slots = torch.full((len(POSITIONS) + 3,), 99, device="musa")
    compute_slot_mapping(
        len(POSITIONS),
        len(slots),
        torch.tensor(STARTS, dtype=torch.int32, device="musa"),
        torch.tensor(POSITIONS, device="musa"),
        torch.tensor(table, dtype=torch.int32, device="musa"),
        8,
        slots,
        BLOCK,
        ranks,
        rank,
        turn,
        PAD,
        1024,
    )
    assert slots.tolist() == expected(table, ranks, rank, turn)
