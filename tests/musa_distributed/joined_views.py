# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_joined_views.py: lists of tensors that are views of one buffer, compared with lists
of separate tensors.

Neighbours in a buffer are passed to MCCL without a copy if each is contiguous and begins where the one before
it ends.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

SHAPE = (4, 3)
EACH = 12  # elements of a tensor

Views = list[torch.Tensor]


def adjacent(buffer: torch.Tensor, count: int) -> Views:
    return list(buffer[: count * EACH].view(count, *SHAPE).unbind())


def transposed(buffer: torch.Tensor, count: int) -> Views:
    """Each tensor has the bytes of one of `adjacent`."""
    return list(buffer[: count * EACH].view(count, *SHAPE[::-1]).mT.unbind())


# Layouts of `count` tensors of SHAPE in a buffer of 2 * count * EACH elements. No two elements share memory.
DISJOINT: dict[str, Callable[[torch.Tensor, int], Views]] = {
    "adjacent": adjacent,
    "adjacent, from an offset": lambda buffer, count: adjacent(buffer[5:], count),
    "adjacent, in reverse order": lambda buffer, count: adjacent(buffer, count)[::-1],
    "adjacent, the first one last": lambda buffer, count: [
        *adjacent(buffer, count)[1:],
        adjacent(buffer, count)[0],
    ],
    "transposed": transposed,
    "only the first transposed": lambda buffer, count: [
        transposed(buffer, count)[0],
        *adjacent(buffer, count)[1:],
    ],
    "only the last transposed": lambda buffer, count: [
        *adjacent(buffer, count)[:-1],
        transposed(buffer, count)[-1],
    ],
    "with gaps": lambda buffer, count: list(
        buffer[: count * (EACH + 1)].view(count, EACH + 1)[:, :EACH].unflatten(1, SHAPE).unbind()
    ),
    "every other column": lambda buffer, count: list(
        buffer[: count * 2 * EACH].view(count, SHAPE[0], SHAPE[1] * 2)[..., ::2].unbind()
    ),
    "interleaved rows": lambda buffer, count: list(
        buffer[: count * EACH].view(SHAPE[0], count, SHAPE[1]).unbind(1)
    ),
    "interleaved columns": lambda buffer, count: list(buffer[: count * EACH].view(*SHAPE, count).unbind(2)),
    "in another buffer": lambda buffer, count: [
        *adjacent(buffer, count)[:-1],
        torch.zeros_like(adjacent(buffer, count)[-1]),
    ],
}
# Layouts of tensors that are only read.
SHARED: dict[str, Callable[[torch.Tensor, int], Views]] = {
    "one tensor": lambda buffer, count: adjacent(buffer, 1) * count,
    "overlapping": lambda buffer, count: list(
        buffer.as_strided((count, *SHAPE), (EACH // 2, SHAPE[1], 1)).unbind()
    ),
    "overlapping rows": lambda buffer, count: list(
        buffer.as_strided((count, *SHAPE), (EACH, SHAPE[1] - 1, 1)).unbind()
    ),
    "expanded": lambda buffer, count: list(
        buffer[: count * EACH].view(count, EACH)[:, :1, None].expand(count, *SHAPE).unbind()
    ),
}


def numbers(count: int, dtype: torch.dtype) -> torch.Tensor:
    """Integers that differ between the ranks, and between the elements as far as the dtype has values."""
    whole = torch.arange(count) + 5 * dist.get_rank()
    return (torch.complex(whole.double(), -whole.double()) if dtype.is_complex else whole).to(dtype).musa()


def differences(found: Views, expected: Views) -> list[str]:
    pairs = [(one.cpu(), other.cpu()) for one, other in zip(found, expected, strict=True)]
    return [f"{one} instead of {other}" for one, other in pairs if not torch.equal(one, other)]


def check_reads(call: Callable[[Views], Views], dtype: torch.dtype) -> dict[str, list[str]]:
    """`call` passes tensors to a collective that reads them, and returns the results.

    Returns the differences for each layout, and does not fail, because the other ranks would wait for this
    one.
    """
    size = dist.get_world_size()
    wrong = {}
    for layout, views in (DISJOINT | SHARED).items():
        buffer = numbers(2 * size * EACH, dtype)
        before = buffer.clone()
        expected = call([view.clone(memory_format=torch.contiguous_format) for view in views(buffer, size)])
        found = call(views(buffer, size))
        wrong[layout] = differences([*found, buffer], [*expected, before])
    return wrong


def check_writes(
    call: Callable[[Views], None], dtype: torch.dtype, here: bool = True
) -> dict[str, list[str]]:
    """`call` passes tensors to a collective that writes them, if `here` is True. The rest of the buffer stays
    as it is. Returns the differences for each layout.
    """
    size = dist.get_world_size()
    separate = outputs(size, dtype)
    call(separate)
    wrong = {}
    for layout, views in DISJOINT.items():
        buffer = numbers(2 * size * EACH, dtype)
        whole = buffer.clone()
        expected, found = views(whole, size), views(buffer, size)
        for view, value in zip(expected, separate if here else (), strict=here):
            view.copy_(value)
        call(found)
        wrong[layout] = differences([*found, buffer], [*expected, whole])
    return wrong


def outputs(count: int, dtype: torch.dtype) -> Views:
    return [torch.zeros(SHAPE, dtype=dtype, device="musa") for _ in range(count)]


def all_gather(dtype: torch.dtype) -> dict[str, list[str]]:
    x = numbers(EACH, dtype).view(SHAPE)
    return check_writes(lambda tensors: dist.all_gather(tensors, x), dtype)


def gather(dtype: torch.dtype) -> dict[str, list[str]]:
    x = numbers(EACH, dtype).view(SHAPE)
    root = dist.get_world_size() - 1
    mine = dist.get_rank() == root
    return check_writes(lambda tensors: dist.gather(x, tensors if mine else None, dst=root), dtype, mine)


def scatter(dtype: torch.dtype) -> dict[str, list[str]]:
    root = dist.get_world_size() - 1
    mine = dist.get_rank() == root

    def call(tensors: Views) -> Views:
        [received] = outputs(1, dtype)
        dist.scatter(received, tensors if mine else None, src=root)
        return [received]

    return check_reads(call, dtype)


def reduce_scatter(dtype: torch.dtype) -> dict[str, list[str]]:
    def call(tensors: Views) -> Views:
        [received] = outputs(1, dtype)
        dist.reduce_scatter(received, tensors)
        return [received]

    return check_reads(call, dtype)


def all_to_all_received(dtype: torch.dtype) -> dict[str, list[str]]:
    sent = list(numbers(dist.get_world_size() * EACH, dtype).view(-1, *SHAPE).unbind())
    return check_writes(lambda tensors: dist.all_to_all(tensors, sent), dtype)


def all_to_all_sent(dtype: torch.dtype) -> dict[str, list[str]]:
    def call(tensors: Views) -> Views:
        received = outputs(len(tensors), dtype)
        dist.all_to_all(received, tensors)
        return received

    return check_reads(call, dtype)


FUNCTIONS = (all_gather, gather, scatter, reduce_scatter, all_to_all_received, all_to_all_sent)
COLLECTIVES = {function.__name__: function for function in FUNCTIONS}


def run(name: str) -> list[str]:
    """Runs a collective with every layout; returns a description of each difference."""
    # MCCL has no complex numbers, so that views of real numbers are passed to it.
    dtypes = (torch.float32, torch.uint8, torch.complex64)
    return [
        f"{dtype}, {layout}: {text}"
        for dtype in dtypes
        for layout, texts in COLLECTIVES[name](dtype).items()
        for text in texts
    ]
