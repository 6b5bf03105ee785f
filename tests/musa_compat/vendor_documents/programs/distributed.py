# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DistributedDataParallel with the backend mccl in spawned processes, and a profiler in each."""

import argparse
import glob
import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.backends import cudnn
from torch.distributed import ProcessGroupMCCL
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import torch_musa

ACTIVITIES = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.MUSA]


def start(rank, world_size, port):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", port)
    options = ProcessGroupMCCL.Options()
    dist.init_process_group("mccl", rank=rank, world_size=world_size, pg_options=options)


def runner(gpu, args):
    rank = args.nr * args.gpus + gpu
    torch_musa.set_device(rank % torch.musa.device_count())
    start(rank, args.gpus * args.nodes, args.port)
    cudnn.benchmark = True
    model = nn.Linear(5, 5).to("musa")
    parallel = DDP(model, device_ids=[rank % torch.musa.device_count()])
    optimizer = optim.SGD(parallel.parameters(), lr=0.001)
    data = TensorDataset(torch.randn(16, 5), torch.zeros(16, 5))
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data), shuffle=False)
    criterion = nn.MSELoss().to(rank)
    with torch.profiler.profile(
        activities=ACTIVITIES,
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=torch.profiler.tensorboard_trace_handler("result", worker_name=f"worker{rank}"),
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
    ) as profiler:
        for inputs, target in loader:
            optimizer.zero_grad()
            criterion(parallel(inputs.to("musa")), target.to("musa")).backward()
            optimizer.step()
            profiler.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", "--nodes", default=1, type=int)
    parser.add_argument("-g", "--gpus", default=2, type=int)
    parser.add_argument("-nr", "--nr", default=0, type=int)
    options = parser.parse_args()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        options.port = str(unused.getsockname()[1])
    mp.spawn(runner, args=(options,), nprocs=options.gpus, join=True)
    assert len({name.split(".")[0] for name in glob.glob("result/*.json")}) == 2
    print("done")
