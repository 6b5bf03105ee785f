# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DistributedDataParallel by mp.spawn: training, a checkpoint, and collectives."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=world_size, device_id=torch.device("cuda", rank))


def demo(rank, world_size, port, path):
    setup(rank, world_size, port)
    assert dist.get_backend() == "nccl"
    model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5)).to(rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    ddp_model = DDP(model, device_ids=[rank], output_device=rank)
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        outputs = ddp_model(torch.randn(20, 10, device=f"cuda:{rank}"))
        nn.MSELoss()(outputs, torch.randn(20, 5).to(rank)).backward()
        optimizer.step()
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier(device_ids=[rank])
    ddp_model.load_state_dict(torch.load(path, map_location={"cuda:0": f"cuda:{rank}"}, weights_only=True))
    total = torch.full((3,), rank + 1.0).cuda()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    assert total.tolist() == [3.0] * 3 and total.get_device() == rank
    gathered = [torch.empty(1, device="cuda") for _ in range(world_size)]
    dist.all_gather(gathered, torch.ones(1, device="cuda") * rank)
    assert [int(each) for each in gathered] == [0, 1]
    assert torch.cuda.nccl.version() > (0,)
    dist.destroy_process_group()


if __name__ == "__main__":
    assert dist.is_nccl_available() and torch.cuda.device_count() >= 2
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(demo, args=(2, sys.argv[1], os.path.join(folder, "model.pt")), nprocs=2, join=True)
    print("done")
