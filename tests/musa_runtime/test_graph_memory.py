# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Memory during a capture in the mode "global", which forbids allocations, frees and queries to every thread
that is not relaxed. The runtime makes its own calls in relaxed mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch


def capture(musa, work):
    graph = musa.MUSAGraph()
    with musa.graph(graph):
        result = work()
    return graph, result


def device_allocations(musa):
    return musa.memory_stats()["num_device_alloc"]


def test_a_capture_can_allocate_memory_from_the_sdk(musa):
    x = torch.ones(1 << 20, device="musa")
    musa.synchronize()
    musa.empty_cache()
    before = device_allocations(musa)
    graph, y = capture(musa, lambda: x * 2 + 1)
    assert device_allocations(musa) > before
    graph.replay()
    assert y.cpu().eq(3).all()


def test_other_threads_allocate_and_free_memory_during_a_capture(musa):
    x = torch.ones(1000, device="musa")
    musa.synchronize()
    musa.empty_cache()

    def use_memory():
        with musa.stream(musa.Stream()):
            before = device_allocations(musa)
            device = torch.empty(48 << 20, dtype=torch.uint8, device="musa")
            taken = device_allocations(musa) - before
            host = torch.empty(24 << 20, dtype=torch.uint8, pin_memory=True)
            del device, host
            return taken

    graph = musa.MUSAGraph()
    with ThreadPoolExecutor(1) as pool, musa.graph(graph):
        assert pool.submit(use_memory).result() >= 1
        y = x + 1
    graph.replay()
    assert y.cpu().eq(2).all()


def test_the_cache_keeps_its_memory_during_a_capture(musa):
    x = torch.ones(1000, device="musa")
    held = torch.empty(48 << 20, dtype=torch.uint8, device="musa")
    del held
    graph = musa.MUSAGraph()
    with ThreadPoolExecutor(1) as pool, musa.graph(graph):
        pool.submit(musa.empty_cache).result()
        y = x + 1
    graph.replay()
    assert y.cpu().eq(2).all()


def test_another_thread_drops_a_graph_during_a_capture(musa):
    x = torch.ones(1000, device="musa")
    graph, _ = capture(musa, lambda: x + 1)
    second = musa.MUSAGraph()
    with ThreadPoolExecutor(1) as pool, musa.graph(second):
        pool.submit(graph.reset).result()
        y = x + 2
    second.replay()
    assert y.cpu().eq(3).all()


def test_another_threads_wait_is_refused_during_a_capture_unless_that_is_thread_local(musa):
    x = torch.ones(1000, device="musa")
    # Consecutive streams of the pool differ.
    side, captured = musa.Stream(), musa.Stream()
    with ThreadPoolExecutor(1) as pool:
        graph = musa.MUSAGraph()
        with musa.graph(graph, stream=captured, capture_error_mode="thread_local"):
            pool.submit(side.synchronize).result()
            y = x + 1
        with pytest.raises(RuntimeError, match="captur"), musa.graph(musa.MUSAGraph(), stream=captured):
            pool.submit(side.synchronize).result()
    graph.replay()
    assert y.cpu().eq(2).all()
