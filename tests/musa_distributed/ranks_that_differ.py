# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_ranks_that_differ.py: messages between some ranks of a group, then a collective."""

from __future__ import annotations

import datetime
import itertools
import os

import torch
import torch.distributed as dist

from tests.musa_distributed import collectives

PATIENCE = datetime.timedelta(seconds=60)
SIZE = 3
PAIRS = tuple(itertools.combinations(range(SIZE), 2))


def barrier(x, group, reference, note, wait):
    dist.barrier(group)


def all_gather_object(x, group, reference, note, wait):
    got = [None] * dist.get_world_size(group)
    dist.all_gather_object(got, {"rank": dist.get_rank(group)}, group=group)
    assert [one["rank"] for one in got] == list(range(len(got))), note


def broadcast_object_list(x, group, reference, note, wait):
    got = [f"from {dist.get_rank(group)}"]
    dist.broadcast_object_list(got, group_src=1, group=group)
    assert got == ["from 1"], note


COLLECTIVES = {
    **collectives.COLLECTIVES,
    **{function.__name__: function for function in (barrier, all_gather_object, broadcast_object_list)},
}
# They use the current device, so they need torch.musa.set_device().
NEED_CURRENT_DEVICE = ("all_gather_object", "broadcast_object_list")


# ---- messages between two ranks `a` and `b` of the group


def value(rank: int, device: torch.device) -> torch.Tensor:
    return torch.full((4,), float(rank + 1), device=device)


def send_and_recv(group, a, b, device):
    rank = dist.get_rank(group)
    if rank == a:
        dist.send(value(a, device), group=group, group_dst=b)
    else:
        got = value(-1, device)
        dist.recv(got, group=group, group_src=a)
        assert (got == a + 1).all()


def isend_and_irecv(group, a, b, device):
    """Both directions; the order of the calls is that of the pair."""
    rank = dist.get_rank(group)
    peer, got = (b if rank == a else a), value(-1, device)
    calls = [
        lambda: dist.isend(value(rank, device), group=group, group_dst=peer),
        lambda: dist.irecv(got, group=group, group_src=peer),
    ]
    for work in [call() for call in (calls if rank == a else calls[::-1])]:
        work.wait()
    assert (got == peer + 1).all()


def batch(group, to, device):
    """Exchanges a message with each rank of `to` in one batch."""
    rank, got = dist.get_rank(group), {peer: value(-1, device) for peer in to}
    transfers = []
    for peer in to:
        transfers.append(dist.P2POp(dist.isend, value(rank, device), group=group, group_peer=peer))
        transfers.append(dist.P2POp(dist.irecv, got[peer], group=group, group_peer=peer))
    for work in dist.batch_isend_irecv(transfers):
        work.wait()
    for peer in to:
        assert (got[peer] == peer + 1).all()


def batch_of_two(group, a, b, device):
    rank = dist.get_rank(group)
    batch(group, [b if rank == a else a], device)


def batch_with_itself(group, a, b, device):
    rank = dist.get_rank(group)
    batch(group, [rank, b if rank == a else a], device)


MESSAGES = {
    function.__name__: function
    for function in (send_and_recv, isend_and_irecv, batch_of_two, batch_with_itself)
}


# ---- messages of all ranks in one batch, each with other peers


def hub(group, device):
    """Rank 1 exchanges messages with each other rank."""
    batch(group, [0, 2] if dist.get_rank(group) == 1 else [1], device)


def ring(group, device):
    """Each rank sends to the next one only."""
    rank = dist.get_rank(group)
    after, before = (rank + 1) % SIZE, (rank - 1) % SIZE
    got = value(-1, device)
    transfers = [
        dist.P2POp(dist.isend, value(rank, device), group=group, group_peer=after),
        dist.P2POp(dist.irecv, got, group=group, group_peer=before),
    ]
    for work in dist.batch_isend_irecv(transfers):
        work.wait()
    assert (got == before + 1).all()


def all_of_them(group, device):
    batch(group, [peer for peer in range(SIZE) if peer != dist.get_rank(group)], device)


BATCHES = {function.__name__: function for function in (hub, ring, all_of_them)}


def cases() -> list[tuple[str, tuple[int, int] | None, str]]:
    """Returns every case: a kind of messages, the two ranks that exchange them, and a collective."""
    pairs = [(kind, pair, name) for name in COLLECTIVES for kind in MESSAGES for pair in PAIRS]
    return pairs + [(kind, None, name) for name in COLLECTIVES for kind in BATCHES]


def sampled() -> list[int]:
    """Returns the numbers of cases that the default run takes: each collective, kind and pair."""
    kinds = len(MESSAGES) * len(PAIRS)
    picked = [n * kinds + (5 * n + 2) % kinds for n in range(len(COLLECTIVES))]
    batches = len(COLLECTIVES) * kinds
    return picked + [batches + n * len(BATCHES) + n for n in range(len(BATCHES))]


def run_case(kind, pair, name, members, device) -> None:
    """Every process calls it, in the same order."""
    group = dist.new_group(members, backend="mccl", timeout=PATIENCE)
    if dist.get_rank() not in members:
        return
    rank = dist.get_rank(group)
    if pair is None:
        BATCHES[kind](group, device)
    elif rank in pair:
        MESSAGES[kind](group, *pair, device)
    x = collectives.operand((4, 3), torch.float32, "contiguous", rank, device)
    COLLECTIVES[name](x, group, references[0], f"{name} after {kind} of {pair}", False)
    # Sequence numbers name collectives in errors and flight records, so messages must not count.
    numbers = [torch.zeros(1, dtype=torch.long) for _ in range(SIZE)]
    own = group._get_backend(device)._get_sequence_number_for_group()
    dist.all_gather(numbers, torch.tensor([own]), group=references[0])
    assert len({number.item() for number in numbers}) == 1, f"sequence numbers of the ranks: {numbers}"
    dist.destroy_process_group(group)


references: list[dist.ProcessGroup] = []  # a group of the same ranks, with Gloo for CPU tensors


def main(numbers: list[int], bound: bool, sets_device: bool, members: list[int]) -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    device = torch.device("musa", rank)
    if sets_device:
        torch.musa.set_device(device)
    dist.init_process_group(
        "cpu:gloo,musa:mccl",
        store=dist.FileStore(os.environ["MEETING"], size),
        rank=rank,
        world_size=size,
        timeout=PATIENCE,
        device_id=device if bound else None,
    )
    references.append(dist.new_group(members, backend="cpu:gloo,musa:mccl", timeout=PATIENCE))
    every, done = cases(), 0
    for number in numbers:
        kind, pair, name = every[number]
        if name in NEED_CURRENT_DEVICE and not sets_device:
            continue
        try:
            run_case(kind, pair, name, members, device)
        except Exception as error:
            raise AssertionError(f"case {number}: {name} after {kind} of {pair}") from error
        done += 1
        # The ranks outside the group have nothing to do in a case. They must not wait in the last part, whose
        # patience is that of one call, while the group runs the cases.
        dist.all_reduce(torch.zeros(1))
    # The default group last: its first call may be a message too.
    if rank in (0, 1):
        send_and_recv(dist.group.WORLD, 0, 1, device)
    x = value(rank, device)
    dist.all_reduce(x)
    assert (x == size * (size + 1) / 2).all()
    print(done)
    dist.destroy_process_group()
