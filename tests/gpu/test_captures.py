# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Captures of libmudnn's calls, whose scratch memory comes from a pool of torch.cuda's allocator for each graph."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_code

_CAPTURE = """
import gc
import torch
import torch.nn.functional as F
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
    """If the graphs are kept, so is the scratch memory: the attention's scores, 32 MiB, and more."""
    code = f"""
q = torch.rand(4, 8, 512, 64, device="musa")
mask = torch.zeros(512, 512, device="musa")
reserved, kept = [], []
for _ in range(6):
    graph = capture(lambda: F.scaled_dot_product_attention(q, q, q, attn_mask=mask))
    kept += [graph] * {kept}
    del graph
    gc.collect()
    torch.cuda.empty_cache()
    reserved.append(torch.cuda.memory_reserved() >> 20)
print((reserved[-1] - reserved[1]) // 4)
"""
    grown = int(run_code(_CAPTURE + code, **_MUDNN))
    assert grown >= 32 if kept else grown == 0
