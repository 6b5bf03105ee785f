# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Graphs with failures of SDK calls: the capture is discarded, and the next one works."""

from __future__ import annotations

import pytest
import torch

from tests.musa_runtime import test_fault_sweep as sweep

_full_stream_pools = sweep._full_stream_pools  # the module's fixture


def _capture(work, **options):
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph, **options):
        result = work()
    return graph, result


def _captured_calls():
    x = torch.zeros(100, device="musa")
    graph, y = _capture(lambda: x.add_(1) * 2)
    graph.replay()
    graph.replay()
    assert y.cpu().eq(4).all()


def _captured_copies_between_streams():
    x = torch.ones(100, device="musa")
    pinned = torch.zeros(100, pin_memory=True)
    side = torch.musa.Stream()

    def work():
        side.wait_stream(torch.musa.current_stream())
        with torch.musa.stream(side):
            pinned.copy_(x, non_blocking=True)
        torch.musa.current_stream().wait_stream(side)

    graph, _ = _capture(work)
    graph.replay()
    torch.musa.synchronize()
    assert pinned.eq(1).all()


def _captured_random_numbers():
    graph, drawn = _capture(lambda: torch.rand(100, device="musa"))
    graph.replay()
    assert drawn.cpu().max() < 1


def _discarded_captures():
    x = torch.ones(10, device="musa")
    try:
        _capture(lambda: x.nonzero())
    except NotImplementedError:
        pass
    else:
        raise AssertionError("nonzero was captured")


def _graphed_callables():
    x = torch.ones(4, device="musa", requires_grad=True)
    graphed = torch.musa.make_graphed_callables(lambda a: (a * a).sum(), (x,), num_warmup_iters=1)
    graphed(x).backward()
    assert x.grad.cpu().eq(2).all()


SCENARIOS = [
    _captured_calls,
    _captured_copies_between_streams,
    _captured_random_numbers,
    _discarded_captures,
    _graphed_callables,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__.strip("_"))
def test_any_sdk_call_may_fail_around_a_graph(two_devices, emulator, scenario):
    sweep.test_any_sdk_call_may_fail(two_devices, emulator, scenario, sweep.MEMORY_ALLOCATION)
    assert emulator.footprint(2).graphs == 0
