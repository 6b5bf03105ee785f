# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_aborts.py: one thread makes calls while another one aborts the group."""

from __future__ import annotations

import contextlib
import datetime
import os
import threading
from collections.abc import Callable

import torch
import torch.distributed as dist

from tests.musa_distributed.collectives import all_gather_single, reduce_scatter_single

CALLS = 100
# A call that returns its work, and a check of its result.
Started = tuple[dist.Work | None, Callable[[], bool]]


def all_reduce(group, rank, device) -> Started:
    x = torch.full((64,), float(rank + 1), device=device)
    return dist.all_reduce(x, group=group, async_op=True), lambda: bool((x == 3).all())


def reduce(group, rank, device) -> Started:
    x = torch.full((64,), float(rank + 1), device=device)
    return dist.reduce(x, group_dst=0, group=group, async_op=True), lambda: rank == 1 or bool((x == 3).all())


def broadcast(group, rank, device) -> Started:
    x = torch.full((64,), float(rank + 1), device=device)
    return dist.broadcast(x, group_src=1, group=group, async_op=True), lambda: bool((x == 2).all())


def all_gather(group, rank, device) -> Started:
    x, got = torch.full((4,), float(rank + 1), device=device), torch.zeros(8, device=device)
    work = all_gather_single(got, x, group=group, async_op=True)
    return work, lambda: got.tolist() == [1.0] * 4 + [2.0] * 4


def reduce_scatter(group, rank, device) -> Started:
    x, got = torch.full((8,), float(rank + 1), device=device), torch.zeros(4, device=device)
    work = reduce_scatter_single(got, x, group=group, async_op=True)
    return work, lambda: bool((got == 3).all())


def gather(group, rank, device) -> Started:
    x = torch.full((4,), float(rank + 1), device=device)
    got = [torch.zeros(4, device=device) for _ in range(2)] if rank == 0 else None
    work = dist.gather(x, got, group_dst=0, group=group, async_op=True)
    return work, lambda: rank == 1 or [part[0].item() for part in got] == [1, 2]


def scatter(group, rank, device) -> Started:
    parts = [torch.full((4,), float(n + 1), device=device) for n in range(2)] if rank == 0 else None
    got = torch.zeros(4, device=device)
    work = dist.scatter(got, parts, group_src=0, group=group, async_op=True)
    return work, lambda: bool((got == rank + 1).all())


def all_to_all(group, rank, device) -> Started:
    x, got = torch.full((4,), float(rank + 1), device=device), torch.zeros(4, device=device)
    work = dist.all_to_all_single(got, x, group=group, async_op=True)
    return work, lambda: got.tolist() == [1, 1, 2, 2]


def send_and_recv(group, rank, device) -> Started:
    if rank == 0:
        return dist.isend(torch.full((4,), 1.0, device=device), group=group, group_dst=1), lambda: True
    got = torch.zeros(4, device=device)
    return dist.irecv(got, group=group, group_src=0), lambda: bool((got == 1).all())


def barrier(group, rank, device) -> Started:
    return dist.barrier(group, async_op=True), lambda: True


COLLECTIVES = (all_reduce, reduce, broadcast, all_gather, reduce_scatter, gather, scatter, all_to_all,
               send_and_recv, barrier)  # fmt: skip


def abort_beside_calls(start, turn: int, device: torch.device) -> tuple[int, int]:
    """Returns the number of calls that were made and of those that succeeded."""
    group = dist.new_group(backend="mccl", timeout=datetime.timedelta(seconds=60))
    rank, made, refused, enough = dist.get_rank(), [], [], threading.Event()

    def program() -> None:
        torch.musa.set_device(device)
        for number in range(CALLS):
            try:
                made.append(start(group, rank, device))
            except RuntimeError as error:  # DistBackendError, or the communicator's
                refused.append(str(error))
                break
            finally:
                if number == turn:
                    enough.set()
        enough.set()

    thread = threading.Thread(target=program)
    thread.start()
    enough.wait()
    group._get_backend(device).abort()
    thread.join()
    with contextlib.suppress(dist.DistBackendError):  # this rank may have detected the abort of the other one
        torch.musa.synchronize()
    succeeded = [check for work, check in made if work.is_success()]
    assert all(check() for check in succeeded), f"{start.__name__}: success of a call without a valid result"
    try:
        start(group, rank, device)
    except RuntimeError:
        pass
    else:
        raise AssertionError(f"{start.__name__}: the group is usable after the abort")
    dist.destroy_process_group(group)
    return len(made), len(succeeded)


def main(turns: int) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    device = torch.device("musa", rank)
    torch.musa.set_device(device)
    store = dist.FileStore(os.environ["MEETING"], size)
    dist.init_process_group("cpu:gloo,musa:mccl", store=store, rank=rank, world_size=size)
    made = succeeded = 0
    for turn in range(turns):
        for start in COLLECTIVES:
            counts = abort_beside_calls(start, 3 * turn, device)
            made, succeeded = made + counts[0], succeeded + counts[1]
    print(made, succeeded)
    dist.destroy_process_group()
