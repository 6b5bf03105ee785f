# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The thread benchmark of the allocator tells a convoy from a lock that is merely shared."""

import pytest
import torch

from benchmarks import allocator_threads
from tests.harness.device import DEVICE

pytestmark = pytest.mark.once


def test_a_shared_lock_keeps_its_throughput_and_a_convoy_loses_it():
    shared = list(allocator_threads.measure(lambda nbytes, iterations, threads, own: 100.0 * threads))
    assert [row.threads for row in shared] == [1, 2, 4, 8] * 2
    assert all(row.against_one == pytest.approx(1) for row in shared)
    assert shared[0].throughput == pytest.approx(10)
    convoy = list(allocator_threads.measure(lambda nbytes, iterations, threads, own: 100.0 * threads**3))
    assert convoy[3].against_one == pytest.approx(1 / 64)


@pytest.mark.skipif(DEVICE != "musa", reason="needs the musa device")
def test_threads_allocate_at_the_same_time_and_leave_nothing():
    torch.musa.init()
    before = torch.musa.memory_allocated()
    pair_ns = allocator_threads.device_pair_ns()
    for own in (True, False):
        assert pair_ns(4096, 2000, 8, own) > 0
    assert torch.musa.memory_allocated() == before
    with pytest.raises(ValueError, match="threads"):
        pair_ns(4096, 10, 0, True)
