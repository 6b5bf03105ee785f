# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Aborts of a group while another thread makes calls: no crash, and no success without a valid result."""

from __future__ import annotations

from tests.harness.rank_processes import run_ranks
from tests.musa_distributed import aborts


def test_no_call_succeeds_without_a_valid_result(tmp_path, request):
    turns = 20 if request.config.getoption("--full") else 2
    ended = run_ranks(
        f"from tests.musa_distributed import aborts\naborts.main({turns})",
        2,
        kept=("MUSA_EMULATOR_MODE", "MUSA_EMULATOR_MEMORY"),
        timeout=1200,
        MEETING=str(tmp_path / "meeting"),
        TORCH_MCCL_DUMP_ON_TIMEOUT="0",
    )
    assert [one.status for one in ended] == [0, 0], "\n".join(one.err[-4000:] for one in ended)
    for one in ended:
        made, succeeded = map(int, one.out.split())
        assert turns * len(aborts.COLLECTIVES) <= made and succeeded < made
