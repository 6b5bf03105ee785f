# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""On two ranks: all-reduce over mccl against Gloo on CPU tensors, and overlap of DDP's communication."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

from .measure import Effort, Row, pair_of

RANKS = 2
BAR = 1.1
SIZES = {"1 KB": 1 << 10, "64 KB": 1 << 16, "1 MB": 1 << 20, "16 MB": 1 << 24, "64 MB": 1 << 26}
PATIENCE = 300  # timeout for a rank's answer, in seconds


def timed(gloo: dist.ProcessGroup, step: Callable, finish: Callable, count: int) -> float:
    """Returns seconds per call; the ranks start together."""
    dist.barrier(group=gloo)
    start = time.perf_counter()
    for _ in range(count):
        step()
    finish()
    return (time.perf_counter() - start) / count


def all_reduce(gloo: dist.ProcessGroup, size: int, effort: Effort) -> tuple[list[float], list[float]]:
    """Returns samples of mccl and Gloo, taken in turn."""
    ours, theirs = torch.ones(size // 4, device="musa"), torch.ones(size // 4)
    sides = [
        (lambda: dist.all_reduce(ours), torch.musa.synchronize),
        (lambda: dist.all_reduce(theirs, group=gloo), lambda: None),
    ]
    first = torch.tensor([max(timed(gloo, *side, 3) for side in sides)])
    dist.all_reduce(first, dist.ReduceOp.MAX, group=gloo)  # all ranks must use the same count
    count = max(1, round(effort.seconds / first.item()))
    samples: tuple[list[float], list[float]] = ([], [])
    for index in range(effort.rounds):
        for side in (0, 1) if index % 2 == 0 else (1, 0):
            samples[side].append(timed(gloo, *sides[side], count))
    assert ours[0].item() == theirs[0].item(), "the two have computed different sums"
    return samples


def exposed_share(effort: Effort) -> float:
    """Returns the share of DDP's communication time without concurrent computation."""
    layers = [torch.nn.Linear(512, 512) for _ in range(8)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers).to("musa"), bucket_cap_mb=1)
    model._set_ddp_runtime_logging_sample_rate(1)
    x = torch.randn(256, 512, device="musa")
    for _ in range(max(12, 4 * effort.rounds)):
        model(x).sum().backward()
    torch.musa.synchronize()
    seen = model._get_ddp_logging_data()
    return 1 - seen["avg_backward_compute_comm_overlap_time"] / seen["avg_backward_comm_time"]


def rank_main(rank: int, folder: str, effort: Effort, pipe: Connection | None) -> None:
    torch.set_num_threads(1)
    torch.musa.set_device(rank)
    store = dist.FileStore(str(Path(folder, "meeting")), RANKS)
    dist.init_process_group("mccl", store=store, rank=rank, world_size=RANKS)
    gloo = dist.new_group(backend="gloo")
    for name, size in SIZES.items():
        samples = all_reduce(gloo, size, effort)
        if pipe is not None:
            pipe.send((name, samples))
    share = exposed_share(effort)
    if pipe is not None:
        pipe.send(("exposed", share))
    dist.destroy_process_group()


def measure_all(effort: Effort) -> Iterator[Row]:
    # Number of devices of the ranks. Read when a process first counts its devices, so this process
    # is not affected.
    before = os.environ.get("MUSA_EMULATOR_DEVICES")
    os.environ["MUSA_EMULATOR_DEVICES"] = str(RANKS)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        ranks = [
            context.Process(target=rank_main, args=(rank, folder, effort, theirs if rank == 0 else None))
            for rank in range(RANKS)
        ]
        try:
            for process in ranks:
                process.start()
            theirs.close()
            for name in SIZES:
                answer, (over_mccl, over_gloo) = receive(ours)
                assert answer == name
                pair = pair_of(over_mccl, over_gloo)
                medians = (1e6 * pair.value, 1e6 * pair.baseline)
                judged = {"ratio": pair.ratio, "spread": pair.spread}
                yield Row("all-reduce over Gloo", name, *medians, "us", BAR, **judged)
            _, share = receive(ours)
            yield Row("DDP", "communication not hidden", 100 * share, 100.0, "%", 100.0, by="value")
            for process in ranks:
                process.join(PATIENCE)
        finally:
            for process in ranks:
                process.kill()
            os.environ.pop("MUSA_EMULATOR_DEVICES")
            if before is not None:
                os.environ["MUSA_EMULATOR_DEVICES"] = before


def receive(pipe: Connection) -> tuple:
    if not pipe.poll(PATIENCE):
        raise RuntimeError(f"the ranks have not answered for {PATIENCE} s")
    return pipe.recv()
