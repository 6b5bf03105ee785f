# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Pinned memory where torch.cuda is in the process too and its allocator serves it."""

from __future__ import annotations

import contextlib

import pytest
import torch


@contextlib.contextmanager
def capture(musa):
    """Captures an empty graph on a stream of its own."""
    graph, stream = musa.MUSAGraph(), musa.Stream()
    with musa.stream(stream):
        graph.capture_begin(capture_error_mode="relaxed")
    try:
        yield
    finally:
        with musa.stream(stream):
            graph.reset()


@pytest.mark.parametrize("beside", [lambda _: contextlib.nullcontext(), capture], ids=["alone", "capture"])
def test_pinned_memory_is_not_reused_while_a_copy_from_it_waits(beside) -> None:
    device, musa = torch.device("musa"), torch.musa
    matrix = torch.rand(4096, 4096, device=device)
    matrix @ matrix
    stream = musa.Stream()
    stream.wait_stream(musa.current_stream())
    with beside(musa), musa.stream(stream):
        for value in range(20):
            for _ in range(5):
                matrix @ matrix  # milliseconds, for which the copy waits
            host = torch.full((2,), value, pin_memory=True)
            copied = host.to(device, non_blocking=True)
            del host
            torch.full((2,), -1, pin_memory=True)
            assert copied.tolist() == [value, value]
