# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Indices of any dimensions, whose sizes all differ, select the elements that they select on the CPU."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

SIZES = (3, 5, 7, 4)
READ, WRITE = "aten::index.Tensor", "aten::_index_put_impl_"

# Sets of dimensions; muDNN handles adjacent ones.
SETS = [dims for count in range(1, 5) for dims in itertools.combinations(range(4), count)]


def adjacent(dims: tuple[int, ...]) -> bool:
    return dims[-1] - dims[0] == len(dims) - 1


def tensor() -> torch.Tensor:
    return torch.arange(float(math.prod(SIZES))).view(SIZES)


def points(sizes: list[int]) -> list[torch.Tensor]:
    """Returns the coordinates of distinct points, one vector per dimension, with some from the end."""
    places = torch.randperm(math.prod(sizes))[: min(6, *sizes)]
    vectors = torch.unravel_index(places, sizes)
    return [torch.where(places % 2 == 0, vector - size, vector) for vector, size in zip(vectors, sizes)]


def grid(sizes: list[int]) -> list[torch.Tensor]:
    """Returns indices whose shapes are broadcast to a grid."""
    return list(torch.meshgrid(*(torch.randperm(size)[: size - 1] for size in sizes), indexing="ij"))


def rows_of_grid(sizes: list[int]) -> list[torch.Tensor]:
    """Returns the grid's indices before they are broadcast."""
    return [
        torch.randperm(size)[: size - 1].view([-1 if i == k else 1 for i in range(len(sizes))])
        for k, size in enumerate(sizes)
    ]


def one_point(sizes: list[int]) -> list[torch.Tensor]:
    """Returns indices of no dimensions."""
    return [torch.tensor(size - 2) for size in sizes]


def mask(sizes: list[int]) -> list[torch.Tensor]:
    """Returns one mask of all dimensions."""
    return [torch.rand(sizes) < 0.4]


KINDS = (points, grid, rows_of_grid, one_point, mask)
CASES = [(dims, make) for make in KINDS for dims in SETS if make is not mask or adjacent(dims)]


@pytest.mark.parametrize(("dims", "make"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_reading_and_writing_through_indices(musa, calls_of, dims, make):
    x, made = tensor(), iter(make([SIZES[dim] for dim in dims]))
    first = range(dims[0], dims[0] + 1) if make is mask else dims
    indices = [next(made) if dim in first else None for dim in range(first[-1] + 1)]
    there = [None if index is None else index.to("musa") for index in indices]
    read, write = torch.ops.aten.index, torch.ops.aten.index_put
    before = calls_of(READ), calls_of(WRITE)
    expected = read(x, indices)
    assert torch.equal(read(x.to("musa"), there).cpu(), expected)
    values = -torch.arange(1.0, expected.numel() + 1).view(expected.shape)
    for accumulate in (False, True):
        for given in (values, torch.tensor(-3.0)):
            found = write(x.to("musa"), there, given.to("musa"), accumulate)
            assert torch.equal(found.cpu(), write(x, indices, given, accumulate))
    served = (1, 4) if adjacent(dims) else (0, 0)
    assert (calls_of(READ) - before[0], calls_of(WRITE) - before[1]) == served


@pytest.mark.parametrize("dims", SETS, ids=str)
def test_the_gradient_of_repeated_indices(musa, dims):
    vectors = [torch.randint(-SIZES[dim], SIZES[dim], (40,)) for dim in dims]

    def gradient(device):
        x = tensor().to(device).requires_grad_()
        given = iter(vectors)
        picked = x[tuple(next(given).to(device) if dim in dims else slice(None) for dim in range(4))]
        return torch.autograd.grad(picked, x, torch.ones_like(picked))[0]

    assert torch.equal(gradient("musa").cpu(), gradient("cpu"))


def along(dim: int, count: int) -> torch.Tensor:
    """Returns an index for gather and scatter, without repetitions along a dimension."""
    order = torch.rand(SIZES).argsort(dim)
    return order.narrow(dim, 0, count)


# Each function takes x, a dimension, an index of x's number of dimensions, a vector of indices, and values of
# the index's shape.
BY_DIMENSION = {
    "aten::gather": lambda x, dim, index, vector, values: x.gather(dim, index),
    "aten::scatter.src": lambda x, dim, index, vector, values: x.scatter(dim, index, values),
    "aten::scatter.value": lambda x, dim, index, vector, values: x.scatter(dim, index, 0.5),
    "aten::scatter_add": lambda x, dim, index, vector, values: x.scatter_add(dim, index, values),
    "aten::scatter.reduce": lambda x, dim, index, vector, values: x.scatter(
        dim, index, values, reduce="multiply"
    ),
    "aten::scatter_reduce.two": lambda x, dim, index, vector, values: x.scatter_reduce(
        dim, index, values, "sum"
    ),
    "aten::index_select": lambda x, dim, index, vector, values: x.index_select(dim, vector),
    "aten::index_copy": lambda x, dim, index, vector, values: x.index_copy(dim, vector, values),
    "aten::index_add": lambda x, dim, index, vector, values: x.index_add(dim, vector, values, alpha=-1),
    "aten::index_fill_.int_Scalar": lambda x, dim, index, vector, values: x.index_fill(dim, vector, 0.5),
}


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter:UserWarning")
@pytest.mark.parametrize("dim", range(-1, 3))
@pytest.mark.parametrize("op", BY_DIMENSION)
def test_indices_along_one_dimension(musa, served_by_mudnn, op, dim):
    size = SIZES[dim]
    index, vector = along(dim, size - 1), torch.randperm(size)[: size - 1]
    operands = (tensor(), dim, index, vector, -torch.arange(1.0, index.numel() + 1).view(index.shape))
    for view in (torch.Tensor.contiguous, lambda x: x.mT.contiguous().mT):
        here = [
            view(part) if isinstance(part, torch.Tensor) and part.dim() > 1 else part for part in operands
        ]
        there = [part.to("musa") if isinstance(part, torch.Tensor) else part for part in here]
        found, served = served_by_mudnn(op, lambda there=there: BY_DIMENSION[op](*there))
        assert served
        assert torch.equal(found.cpu(), BY_DIMENSION[op](*here))


@pytest.mark.parametrize(
    "view", [torch.Tensor.contiguous, lambda x: x.permute(2, 0, 3, 1)], ids=["plain", "permuted"]
)
def test_indices_of_the_flattened_tensor(musa, calls_of, view):
    x, index = view(tensor()), torch.randperm(math.prod(SIZES))[:50].view(5, 10)
    values = -torch.arange(1.0, 51).view(5, 10)
    before = calls_of("aten::take"), calls_of("aten::put_")
    assert torch.equal(view(tensor().to("musa")).take(index.to("musa")).cpu(), x.take(index))
    for accumulate in (False, True):
        there = view(tensor().to("musa")).put_(index.to("musa"), values.to("musa"), accumulate)
        assert torch.equal(there.cpu(), view(tensor()).put_(index, values, accumulate))
    assert (calls_of("aten::take") - before[0], calls_of("aten::put_") - before[1]) == (1, 2)


@pytest.mark.parametrize("count", range(1, 5))
def test_masks_that_are_broadcast(musa, calls_of, count):
    x, chosen = tensor(), torch.rand(SIZES[4 - count :]) < 0.4
    there, source = x.to("musa"), -torch.arange(1.0, x.numel() + 1)
    before = calls_of("aten::masked_select"), calls_of("aten::masked_scatter_")
    assert torch.equal(there.masked_select(chosen.to("musa")).cpu(), x.masked_select(chosen))
    filled = there.masked_scatter(chosen.to("musa"), source.to("musa"))
    assert torch.equal(filled.cpu(), x.masked_scatter(chosen, source))
    assert calls_of("aten::masked_select") > before[0] and calls_of("aten::masked_scatter_") > before[1]
