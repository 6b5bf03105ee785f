# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fixtures: processes of a group, which tests share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.harness import skips
from tests.musa_distributed.ranks import Ranks


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Ranks]:
    """A function that returns the session's Ranks of a size, and starts them at the first call."""
    pools: dict[int, Ranks] = {}

    def of_size(size: int) -> Ranks:
        skips.needs_devices(size)
        if size not in pools:
            pools[size] = Ranks(size, tmp_path_factory.mktemp(f"ranks{size}"))
        return pools[size]

    yield of_size
    for ranks in pools.values():
        ranks.stop()


@pytest.fixture(params=[2, 4], ids=["2-ranks", "4-ranks"])
def ranks(request: pytest.FixtureRequest, pool: Callable[[int], Ranks]) -> Ranks:
    return pool(request.param)


@pytest.fixture
def two_ranks(pool: Callable[[int], Ranks]) -> Ranks:
    return pool(2)


@pytest.fixture
def four_ranks(pool: Callable[[int], Ranks]) -> Ranks:
    return pool(4)
