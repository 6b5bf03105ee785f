# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Captures of libmudnn's calls, whose scratch memory is from a pool of torch.cuda for each graph."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_code

_CAPTURE = """
import gc
import torch
def capture(step):
    step()
    torch.musa.synchronize()
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        step()
    graph.replay()
    torch.musa.synchronize()
    return graph
"""
_MUDNN = {"TORCH_MUSA_OPS": "mudnn,ported,host-copy"}


def test_replays_do_not_wait_for_the_device() -> None:
    """A user object of CUDA in the graph would make each launch wait for the one before it."""
    code = """
x = torch.rand(256, 256, device="musa")
graph = capture(lambda: (x * 1.01 + 0.1).relu())
torch.musa._sleep(1 << 30)
for _ in range(3):
    graph.replay()
print(torch.musa.current_stream().query())
torch.musa.synchronize()
"""
    assert run_code(_CAPTURE + code, **_MUDNN) == "False\n"


@pytest.mark.parametrize("kept", [False, True])
def test_scratch_memory_is_released_with_the_graph(kept: bool) -> None:
    """If the graphs are kept, so is the scratch memory: a sort's, tens of MiB."""
    code = f"""
torch.cuda.init()  # until then its statistics are zero
x = torch.rand(1 << 23, device="musa")
reserved, kept = [], []
for _ in range(6):
    graph = capture(lambda: x.sort())
    kept += [graph] * {kept}
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved() >> 20)
print((reserved[-1] - reserved[1]) // 4)
"""
    grown = int(run_code(_CAPTURE + code, **_MUDNN))
    assert grown >= 32 if kept else grown == 0
