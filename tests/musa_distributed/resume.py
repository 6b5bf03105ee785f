# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A program for torchrun that trains. In each start except the last, a rank kills itself in a random step.

Arguments: folder, number of starts with a killed rank. A step is complete once its checkpoint exists.
"""

import os
import random
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

LONGEST = 4  # the maximum number of steps of a start


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to("musa")
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def batch(step, rank, ranks):
    x = torch.randn(16, 8, generator=torch.Generator().manual_seed(step)).chunk(ranks)[rank].to("musa")
    return x, x.sum(1, keepdim=True)


def loss_of(model, step, rank, ranks):
    x, y = batch(step, rank, ranks)
    return nn.functional.mse_loss(model(x), y)


def append(path, number):
    with path.open("a") as log:
        log.write(f"{number}\n")


def main():
    folder, faults = Path(sys.argv[1]), int(sys.argv[2])
    start = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    torch.musa.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("mccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        append(folder / "starts", start)
    model, optimizer = make()
    checkpoint, first = folder / "checkpoint.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location="musa")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["steps"]
    parallel = DistributedDataParallel(model)

    chance = random.Random(start)
    doomed = chance.randrange(ranks) if start < faults else None
    last = first + chance.randrange(LONGEST) if start < faults else first + LONGEST
    place = chance.choice(["before", "within", "after"])

    def die(where, step):
        if rank == doomed and step == last and where == place:
            os.kill(os.getpid(), signal.SIGKILL)

    for step in range(first, last + 1):
        die("before", step)
        optimizer.zero_grad()
        loss = loss_of(parallel, step, rank, ranks)
        die("within", step)
        loss.backward()
        optimizer.step()
        dist.barrier()  # waits until every rank has made the step
        die("after", step)
        if rank == 0:
            part = checkpoint.with_suffix(".part")
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": step + 1}, part
            )
            part.replace(checkpoint)
            append(folder / "steps", step)
        dist.barrier()
    if rank == 0:
        alone, optimizer = make()
        for step in range(last + 1):
            optimizer.zero_grad()
            loss_of(alone, step, 0, 1).backward()
            optimizer.step()
        for ours, expected in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5)
        print("the weights are those of a run without a fault", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
