# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiled programs of two ranks: DDP, FSDP2, functional collectives and DTensor against the same programs in
eager mode.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.rank_processes import run_ranks

pytestmark = [pytest.mark.once, pytest.mark.slow]

RANKS = 2
PROGRAM = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as collectives
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
backend = os.environ["BACKEND"]
torch.musa.set_device(rank)
dist.init_process_group("mccl", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=size)
device = torch.device("musa", rank)
torch.manual_seed(1 + rank)
x = torch.randn(6, 8).to(device)

def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(device)

def gradients(trained):
    trained(x).square().mean().backward()
    found = [parameter.grad for parameter in trained.parameters()]
    return [each.full_tensor() if hasattr(each, "full_tensor") else each for each in found]

def compiled(program, **options):
    torch._dynamo.reset()
    return torch.compile(program, backend=backend, **options)

def check(name, expected, actual):
    equal = all(torch.allclose(a, b, atol=1e-5) for a, b in zip(expected, actual, strict=True))
    print(name, equal, flush=True)

expected = gradients(nn.parallel.DistributedDataParallel(model()))
check("DDP", expected, gradients(compiled(nn.parallel.DistributedDataParallel(model()))))
sharded = model()
fully_shard(sharded)
check("FSDP2", expected, gradients(compiled(sharded)))

def reduced(x):
    return collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1
check("collectives", [reduced(x)], [compiled(reduced, fullgraph=True)(x)])

mesh = init_device_mesh("musa", (size,))
torch.manual_seed(2)
matrix = distribute_tensor(torch.randn(8, 8, device=device), mesh, [Shard(0)])
def product(matrix):
    return (matrix @ matrix.t()).relu().redistribute(mesh, [Replicate()]).to_local()
check("DTensor", [product(matrix)], [compiled(product, fullgraph=True)(matrix)])
dist.destroy_process_group()
"""


@pytest.mark.parametrize("compiled_by", ["aot_eager", pytest.param("inductor", marks=pytest.mark.full)])
def test_two_ranks_give_the_results_of_eager_mode(tmp_path: Path, compiled_by: str) -> None:
    ended = run_ranks(
        PROGRAM,
        RANKS,
        timeout=300,
        BACKEND=compiled_by,
        MEETING=str(tmp_path / "meeting"),
    )
    for rank in ended:
        assert rank.status == 0, rank.err
        assert rank.out.splitlines() == ["DDP True", "FSDP2 True", "collectives True", "DTensor True"]
