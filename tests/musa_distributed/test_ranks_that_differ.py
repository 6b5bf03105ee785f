# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Collectives of a group after messages between some of its ranks, which create other communicators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.parts import sample
from tests.harness.rank_processes import run_ranks
from tests.musa_distributed import ranks_that_differ

# Whether the group is bound to a device, whether the process sets its device, the number of processes, and
# those that are in the group.
SETTINGS = {
    "device set": (False, True, 3, [0, 1, 2]),
    "device set, in a subgroup": (False, True, 4, [0, 2, 3]),
    "no device set": (False, False, 3, [0, 1, 2]),
    "bound, in a subgroup": (True, False, 4, [0, 1, 3]),
    "bound": (True, False, 3, [0, 1, 2]),
    "bound and device set": (True, True, 3, [0, 1, 2]),
    "in a subgroup": (False, False, 4, [1, 2, 3]),
    "bound and device set, in a subgroup": (True, True, 4, [0, 1, 2]),
}


def run(numbers: list[int], setting: str, folder: Path, timeout: float) -> list[int]:
    bound, sets_device, size, members = SETTINGS[setting]
    code = "from tests.musa_distributed import ranks_that_differ\n"
    code += f"ranks_that_differ.main({numbers}, {bound}, {sets_device}, {members})"
    ended = run_ranks(
        code,
        size,
        kept=("MUSA_EMULATOR_MODE", "MUSA_EMULATOR_MEMORY"),
        timeout=timeout,
        MEETING=str(folder / "meeting"),
    )
    assert [one.status for one in ended] == [0] * size, "\n".join(one.err[-3000:] for one in ended)
    return [int(one.out) for one in ended]


@pytest.mark.parametrize("setting", sample(SETTINGS, 3))
def test_a_collective_after_messages_of_some_ranks(setting, tmp_path, request):
    full = request.config.getoption("--full")
    numbers = list(range(len(ranks_that_differ.cases()))) if full else ranks_that_differ.sampled()
    done = run(numbers, setting, tmp_path, 1200 if full else 120)
    assert min(done) >= len(numbers) * 0.85
