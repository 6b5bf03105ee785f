# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains with the calls of the vendor's torch_musa."""

import argparse
import glob
import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

import torch_musa
from torch_musa.amp import GradScaler, autocast
from torch_musa.optim import FusedAdamW


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 64)
        self.gate = nn.SwishGLU()
        self.down = nn.Linear(32, 4)

    def forward(self, x):
        return self.down(self.gate(self.up(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--extension", required=True)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()

    if not (hasattr(torch.version, "musa") and torch.version.musa is not None):
        sys.exit("not a MUSA build of torch")
    torch.ops.load_library(glob.glob(os.path.join(args.extension, "*.so"))[0])

    rank = int(os.environ["LOCAL_RANK"])
    torch_musa.set_device(rank)
    assert dist.is_mccl_available()
    dist.init_process_group("mccl")
    torch.manual_seed(0)
    torch_musa.manual_seed_all(0)
    device = torch.device("musa", torch_musa.current_device())
    torch.backends.mudnn.allow_tf32 = True
    torch.backends.mudnn.benchmark = True

    model = DistributedDataParallel(Model().to(device), device_ids=[rank])
    optimizer = FusedAdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=0.0)
    scaler = GradScaler()
    inputs = torch.randn(64, 16, generator=torch.Generator().manual_seed(rank)).musa()
    targets = torch.ops.scaled_relu.forward(inputs[:, :4].contiguous(), 2.0)

    losses = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.MUSA]) as prof:
        for _ in range(args.steps):
            optimizer.zero_grad()
            with autocast(dtype=torch.float16), torch.backends.mudnn.flags(allow_tf32=False):
                output = model(inputs)
                loss = nn.functional.mse_loss(output.float(), targets)
            assert output.dtype == torch.float16
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    torch_musa.synchronize()

    total = sum(parameter.detach().double().sum() for parameter in model.parameters())
    sums = [torch.zeros_like(total) for _ in range(dist.get_world_size())]
    dist.all_gather(sums, total)
    on_device = [
        event for event in prof.events() if event.device_type == torch.autograd.DeviceType.PrivateUse1
    ]
    if rank == 0:
        print("arch", torch.ops.scaled_relu.arch(), "ranks", dist.get_world_size())
        print("losses", losses[0], losses[-1])
        print("ranks agree", len({value.item() for value in sums}) == 1)
        print("device rows", len(on_device), "memory", torch_musa.max_memory_allocated() > 0)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
