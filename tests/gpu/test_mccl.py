# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""MCCL over NCCL. Ranks on one GPU are refused by NCCL, so several need as many GPUs."""

from __future__ import annotations

import pytest

from tests.harness.rank_processes import run_ranks

pytestmark = pytest.mark.once

CODE = """
import os, torch, torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.musa.set_device(rank)
dist.init_process_group("mccl", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=size)
for dtype in (torch.float32, torch.bfloat16, torch.int64):
    x = torch.full((1000,), rank + 1, dtype=dtype, device="musa")
    dist.all_reduce(x)
    assert (x == size * (size + 1) // 2).all()
parts = [torch.empty(10, device="musa") for _ in range(size)]
dist.all_gather(parts, torch.full((10,), float(rank), device="musa"))
assert [part[0].item() for part in parts] == list(range(size))
out = torch.empty(5, device="musa")
dist.reduce_scatter_tensor(out, torch.arange(5 * size, dtype=torch.float32, device="musa"))
assert torch.equal(out.cpu(), size * torch.arange(5 * rank, 5 * rank + 5, dtype=torch.float32))
y = torch.full((7,), float(rank), device="musa")
dist.broadcast(y, 0)
assert (y == 0).all()
dist.barrier()
dist.destroy_process_group()
print("done")
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_collectives(ranks: int, tmp_path) -> None:
    for ended in run_ranks(CODE, ranks, MEETING=str(tmp_path / "meeting")):
        assert ended.status == 0, ended.err
        assert ended.out.strip() == "done"
