# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_collectives.py: compares each collective on musa tensors with Gloo on CPU tensors."""

from __future__ import annotations

import functools
import itertools

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

# torch has these names since 2.13.
all_gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
reduce_scatter_single = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)

INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool)
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COMPLEX = (torch.complex64,)
# Dtypes that MCCL transfers but does not reduce.
MOVED_ONLY = (torch.int16, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex128, torch.uint32)
LAYOUTS = ("contiguous", "strided", "offset", "empty")


def operand(shape: tuple[int, ...], dtype: torch.dtype, layout: str, seed: int, device: str) -> torch.Tensor:
    """Returns small numbers, whose sums and products every dtype represents; they depend only on the seed."""
    if layout == "empty":
        shape = (shape[0], 0, *shape[1:])
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randint(0, 2 if dtype is torch.bool else 4, shape, generator=generator)
    values = torch.complex(numbers.double(), numbers.flip(0).double()) if dtype.is_complex else numbers
    values = values.to(dtype).to(device)
    if layout == "strided":
        wide = torch.zeros(*shape[:-1], shape[-1] * 2, dtype=torch.int32).to(device).to(dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    if layout == "offset":
        return torch.cat([values.new_zeros(1, *shape[1:]), values])[1:]
    return values


def like(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor of zeros with the same shape, dtype and layout."""
    if tensor.is_contiguous():
        return tensor.clone().zero_()
    wide = torch.zeros(*tensor.shape[:-1], tensor.shape[-1] * 2, dtype=tensor.dtype, device=tensor.device)
    return wide[..., ::2]


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor as bytes on the CPU, to compare transfers."""
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8)


# The dtypes in which Gloo computes in place of those that it does not support.
_WIDER = {torch.bool: torch.uint8, torch.bfloat16: torch.float32, torch.float16: torch.float32}


def as_numbers(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor on the CPU in a dtype that Gloo reduces, to compare reductions."""
    host = tensor.cpu().contiguous()
    return host.to(_WIDER.get(host.dtype, host.dtype))


def check_bytes(ours: torch.Tensor, expected: torch.Tensor, note: str) -> None:
    assert torch.equal(as_bytes(ours), expected), f"{note}: got {ours}, but Gloo transferred {expected}"


def check_numbers(ours: torch.Tensor, expected: torch.Tensor, note: str) -> None:
    """Compares integers exactly, and floating-point numbers with a tolerance for the order of additions.

    Booleans are compared as bytes: every byte except 0 equals True, but only 0 and 1 are valid.
    """
    host = ours.cpu()
    expected = expected.reshape(host.shape).to(host.dtype)
    if host.dtype is torch.bool:
        host, expected = host.view(torch.uint8), expected.view(torch.uint8)
    exact = not (host.is_floating_point() or host.is_complex())
    tolerances = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(host, expected, msg=lambda text: f"{note}: {text}", **tolerances)


def finish(work: dist.Work | None, wait: bool) -> None:
    assert (work is None) != wait
    if wait:
        work.wait()


REDUCTIONS = {
    "sum": ReduceOp.SUM,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
}


def reductions_of_all(x):
    """The reductions that a tensor supports, by name."""
    return {"sum": ReduceOp.SUM} if x.dtype.is_complex else REDUCTIONS


def reductions_of_bools(x):
    """All reductions for booleans, whose reductions differ from those of numbers; otherwise the sum."""
    return REDUCTIONS if x.dtype is torch.bool else {"sum": ReduceOp.SUM}


def all_reduce(x, group, reference, note, wait):
    for name, op in reductions_of_all(x).items():
        expected = as_numbers(x)
        dist.all_reduce(expected, op, group=reference)
        got = like(x).copy_(x)
        finish(dist.all_reduce(got, op, group=group, async_op=wait), wait)
        check_numbers(got, expected, f"{note}, {name}")


def reduce(x, group, reference, note, wait):
    for root, (name, op) in itertools.product(
        range(dist.get_world_size(group)), reductions_of_bools(x).items()
    ):
        expected = as_numbers(x)
        dist.reduce(expected, group_dst=root, op=op, group=reference)
        got = like(x).copy_(x)
        finish(dist.reduce(got, group_dst=root, op=op, group=group, async_op=wait), wait)
        expected = expected if dist.get_rank(group) == root else as_numbers(x)
        check_numbers(got, expected, f"{note}, {name}, root {root}")


def broadcast(x, group, reference, note, wait):
    for root in range(dist.get_world_size(group)):
        expected = as_bytes(x)
        dist.broadcast(expected, group_src=root, group=reference)
        got = like(x).copy_(x)
        finish(dist.broadcast(got, group_src=root, group=group, async_op=wait), wait)
        check_bytes(got, expected, f"{note}, root {root}")


def gathered_by_gloo(x, reference):
    own = as_bytes(x)
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size(reference))]
    dist.all_gather(parts, own, group=reference)
    return parts


def all_gather(x, group, reference, note, wait):
    got = [like(x) for _ in range(dist.get_world_size(group))]
    finish(dist.all_gather(got, x, group=group, async_op=wait), wait)
    for part, expected in zip(got, gathered_by_gloo(x, reference), strict=True):
        check_bytes(part, expected, note)


def all_gather_uneven(x, group, reference, note, wait):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    got = [like(x[: min(other, len(x))]) for other in range(size)]
    finish(dist.all_gather(got, x[: min(rank, len(x))], group=group, async_op=wait), wait)
    for other, expected in enumerate(gathered_by_gloo(x, reference)):
        row = x[0].numel() * x.element_size()
        check_bytes(got[other], expected[: min(other, len(x)) * row], f"{note}, of rank {other}")


def repeated_like(x, times):
    """Returns an output for `times` tensors, one after the other, in the layout of x."""
    if x.is_contiguous():
        return x.new_empty((times * len(x), *x.shape[1:]))
    return torch.empty(times * len(x), *x.shape[1:-1], x.shape[-1] * 2, dtype=x.dtype, device=x.device)[
        ..., ::2
    ]


def all_gather_into_tensor(x, group, reference, note, wait):
    size = dist.get_world_size(group)
    got = repeated_like(x, size)
    finish(all_gather_single(got, x, group=group, async_op=wait), wait)
    for part, expected in zip(got.chunk(size), gathered_by_gloo(x, reference), strict=True):
        check_bytes(part, expected, note)


def _reduced_by_gloo(parts, op, reference):
    expected = [as_numbers(part) for part in parts]
    for part in expected:
        dist.all_reduce(part, op, group=reference)
    return expected[dist.get_rank(reference)]


def reduce_scatter(x, group, reference, note, wait):
    parts = [
        like(x).copy_(x).add_(peer) if x.dtype is not torch.bool else x
        for peer in range(dist.get_world_size(group))
    ]
    for name, op in reductions_of_bools(x).items():
        got = like(x)
        finish(dist.reduce_scatter(got, parts, op, group=group, async_op=wait), wait)
        check_numbers(got, _reduced_by_gloo(parts, op, reference), f"{note}, {name}")


def reduce_scatter_uneven(x, group, reference, note, wait):
    parts = [x[: min(peer, len(x))] for peer in range(dist.get_world_size(group))]
    for name, op in reductions_of_bools(x).items():
        got = like(parts[dist.get_rank(group)])
        finish(dist.reduce_scatter(got, parts, op, group=group, async_op=wait), wait)
        check_numbers(got, _reduced_by_gloo(parts, op, reference), f"{note}, {name}")


def reduce_scatter_tensor(x, group, reference, note, wait):
    size = dist.get_world_size(group)
    whole = torch.cat([x] * size)
    for name, op in reductions_of_bools(x).items():
        got = like(x)
        finish(reduce_scatter_single(got, whole, op, group=group, async_op=wait), wait)
        check_numbers(got, _reduced_by_gloo(whole.chunk(size), op, reference), f"{note}, {name}")


def gather(x, group, reference, note, wait):
    expected = gathered_by_gloo(x, reference)
    for root in range(dist.get_world_size(group)):
        mine = dist.get_rank(group) == root
        got = [like(x) for _ in expected] if mine else None
        finish(dist.gather(x, got, group_dst=root, group=group, async_op=wait), wait)
        for part, whole in zip(got or [], expected, strict=False):
            check_bytes(part, whole, f"{note}, root {root}")


def scatter(x, group, reference, note, wait):
    expected = gathered_by_gloo(x, reference)
    for root in range(dist.get_world_size(group)):
        mine = dist.get_rank(group) == root
        parts = [like(x).copy_(x) for _ in expected] if mine else None
        got = like(x)
        finish(dist.scatter(got, parts, group_src=root, group=group, async_op=wait), wait)
        check_bytes(got, expected[root], f"{note}, root {root}")


def all_to_all(x, group, reference, note, wait):
    size = dist.get_world_size(group)
    to = [like(x).copy_(x) for _ in range(size)]
    got = [like(x) for _ in range(size)]
    finish(dist.all_to_all(got, to, group=group, async_op=wait), wait)
    for part, expected in zip(got, gathered_by_gloo(x, reference), strict=True):
        check_bytes(part, expected, note)


def all_to_all_single(x, group, reference, note, wait):
    """Rank i sends j rows to rank j, and receives i rows from each rank."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    rows = torch.cat([x] * size)[: size * (size - 1) // 2]
    got = like(torch.cat([x] * size)[: rank * size])
    splits = {"output_split_sizes": [rank] * size, "input_split_sizes": list(range(size))}
    finish(dist.all_to_all_single(got, rows, group=group, async_op=wait, **splits), wait)
    # Gloo accepts rows of any element size, so the rows are passed as (rows, bytes).
    host = rows.cpu().contiguous()
    bytes_of = (
        as_bytes(host).reshape(len(host), -1)
        if host.numel()
        else torch.empty(len(host), 0, dtype=torch.uint8)
    )
    expected = bytes_of.new_empty(len(got), bytes_of.shape[1])
    dist.all_to_all_single(expected, bytes_of, group=reference, **splits)
    check_bytes(got, expected.reshape(-1), note)


def send_and_recv(x, group, reference, note, wait):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    after, before = (rank + 1) % size, (rank - 1) % size
    expected = gathered_by_gloo(x, reference)[before]
    got = like(x)
    transfers = [
        dist.P2POp(dist.isend, x, group=group, group_peer=after),
        dist.P2POp(dist.irecv, got, group=group, group_peer=before),
    ]
    for work in dist.batch_isend_irecv(transfers):
        work.wait()
    check_bytes(got, expected, f"{note}, batch")
    got = like(x)
    if rank % 2 == 0:
        dist.send(x, group=group, group_dst=after)
        finish(dist.irecv(got, group=group, group_src=before), True)
    else:
        finish(dist.irecv(got, group=group, group_src=before), True)
        dist.send(x, group=group, group_dst=after)
    check_bytes(got, expected, note)


def coalesced(x, group, reference, note, wait):
    size = dist.get_world_size(group)
    other = x.logical_not() if x.dtype is torch.bool else x + 1
    tensors = [like(x).copy_(x), like(x).copy_(other)]
    expected = [as_numbers(tensor) for tensor in tensors]
    for tensor in expected:
        dist.all_reduce(tensor, group=reference)
    with dist._coalescing_manager(group, async_ops=wait) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor, group=group)
    if wait:
        manager.wait()
    for tensor, gloo in zip(tensors, expected, strict=True):
        check_numbers(tensor, gloo, f"{note}, all_reduce")

    wholes = [torch.cat([x] * size), torch.cat([x] * size)]
    parts = [like(x), like(x)]
    with dist._coalescing_manager(group, async_ops=wait) as manager:
        for whole, part in zip(wholes, parts, strict=True):
            reduce_scatter_single(part, whole, group=group)
    if wait:
        manager.wait()
    for part in parts:
        check_numbers(part, expected[0], f"{note}, reduce_scatter")

    with dist._coalescing_manager(group, async_ops=wait) as manager:
        for whole, part in zip(wholes, parts, strict=True):
            all_gather_single(whole, part, group=group)
    if wait:
        manager.wait()
    for whole in wholes:
        for piece in whole.chunk(size):
            check_numbers(piece, expected[0], f"{note}, all_gather")


MOVES = (broadcast, all_gather, all_gather_uneven, all_gather_into_tensor, gather, scatter, all_to_all,
         all_to_all_single, send_and_recv)  # fmt: skip
REDUCES = (all_reduce, reduce, reduce_scatter, reduce_scatter_uneven, reduce_scatter_tensor, coalesced)
COLLECTIVES = {function.__name__: function for function in (*MOVES, *REDUCES)}


@functools.cache
def groups() -> list[tuple[str, dist.ProcessGroup, dist.ProcessGroup]]:
    """Returns the default group and, with four ranks, a group of the outer two; each with a Gloo group."""
    size, rank = dist.get_world_size(), dist.get_rank()
    made = [("the default group", dist.group.WORLD, dist.new_group(backend="gloo"))]
    if size > 2:
        outer = [0, size - 1]
        ours, gloo = dist.new_group(outer, backend="mccl"), dist.new_group(outer, backend="gloo")
        if rank in outer:
            made.append(("a subgroup", ours, gloo))
    return made


def run(name: str, wait: bool) -> int:
    """Runs one collective with every dtype and layout in every group; returns the number of comparisons."""
    collective = COLLECTIVES[name]
    dtypes = INTEGERS + FLOATS + COMPLEX + (MOVED_ONLY if collective in MOVES else ())
    done = 0
    for where, group, reference in groups():
        for dtype in dtypes:
            for layout in LAYOUTS:
                seed = dist.get_rank(group)
                x = operand((4, 3), dtype, layout, seed, "musa")
                note = f"{name} of {dtype}, {layout}, in {where}"
                try:
                    collective(x, group, reference, note, wait)
                except Exception as error:
                    raise AssertionError(note) from error
                done += 1
    return done
