# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators of sparse tensors: values, layouts and gradients equal the CPU's, and no operand is copied to the
host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.harness.skips import needs_devices

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)


def drawn(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def thinned(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """A dense tensor of which about a third of the elements are not 0; the first row is."""
    generator = torch.Generator().manual_seed(100 + seed)
    dense = drawn(*shape, dtype=dtype, seed=seed) * (torch.rand(shape, generator=generator) < 0.35).to(dtype)
    dense[0] = 0
    return dense


def repeated(dtype: torch.dtype = torch.float32, dense: tuple[int, ...] = ()) -> torch.Tensor:
    """A tensor in COO format with elements at equal places, in no order."""
    indices = torch.tensor([[2, 0, 2, 1, 0, 2], [1, 3, 1, 0, 3, 0]])
    return torch.sparse_coo_tensor(indices, drawn(6, *dense, dtype=dtype, seed=1), (3, 4, *dense))


def parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor]


def agree(call: Callable[..., torch.Tensor], *operands: Any) -> None:
    """Operands on the device give a result with the parts of the CPU's."""
    on_device = [x.to("musa") if isinstance(x, torch.Tensor) else x for x in operands]
    got, want = call(*on_device), call(*operands)
    assert (got.device.type, got.layout, got.dtype, got.shape) == (
        "musa",
        want.layout,
        want.dtype,
        want.shape,
    )
    if want.layout is torch.sparse_coo:
        assert got.is_coalesced() == want.is_coalesced()
        got, want = got.coalesce(), want.coalesce()
    half = want.dtype in (torch.float16, torch.bfloat16)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if half else {"rtol": 1e-5, "atol": 1e-5}
    for one, other in zip(parts(got), parts(want), strict=True):
        torch.testing.assert_close(one.cpu(), other, **tolerance)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [1, 3, 40, 130])
def test_products_with_a_dense_matrix(served, dtype, columns):
    # Long rows with few columns are shared by threads.
    for shape in ((5, 7), (3, 300), (40, 9)):
        dense, other = thinned(*shape, dtype=dtype), drawn(shape[1], columns, dtype=dtype, seed=3)
        added = drawn(shape[0], columns, dtype=dtype, seed=4)
        device = [x.to("musa") for x in (dense, other, added)]
        want = dense.to(torch.complex128 if dtype.is_complex else torch.float64)
        want = want @ other.to(want.dtype)
        half = dtype in (torch.float16, torch.bfloat16)
        tolerance = {"rtol": 2e-2, "atol": 5e-2} if half else {"rtol": 1e-4, "atol": 1e-4}
        for convert in (
            lambda x: x.to_sparse(),
            lambda x: x.to_sparse_csr(),
            lambda x: x.to_sparse_csc(),
        ):
            matrix = convert(device[0])
            torch.testing.assert_close((matrix @ device[1]).cpu(), want.to(dtype), **tolerance)
            turned = device[1].t().contiguous().t()
            torch.testing.assert_close((matrix @ turned).cpu(), want.to(dtype), **tolerance)
            scaled = torch.addmm(device[2], matrix, device[1], beta=0.5, alpha=-2)
            torch.testing.assert_close(
                scaled.cpu(), (0.5 * added.to(want.dtype) - 2 * want).to(dtype), **tolerance
            )
        if columns == 1:
            vector = device[1][:, 0]
            torch.testing.assert_close(
                (device[0].to_sparse_csr() @ vector).cpu(), want[:, 0].to(dtype), **tolerance
            )


def test_indices_of_32_bits(served):
    dense, other = thinned(6, 8), drawn(8, 5)
    csr = dense.to("musa").to_sparse_csr()
    narrow = torch.sparse_csr_tensor(
        csr.crow_indices().int(), csr.col_indices().int(), csr.values(), csr.shape
    )
    torch.testing.assert_close((narrow @ other.to("musa")).cpu(), dense @ other)
    torch.testing.assert_close(narrow.to_dense().cpu(), dense)
    torch.testing.assert_close(narrow.to_sparse_csc().to_dense().cpu(), dense)


def test_a_product_into_its_operand(served):
    square, other = thinned(6, 6), drawn(6, 6)
    expected = square @ other
    matrix, target = square.to("musa").to_sparse_csr(), other.to("musa")
    torch.addmm(target, matrix, target, beta=0, out=target)
    torch.testing.assert_close(target.cpu(), expected)
    added = drawn(6, 6, seed=5).to("musa")
    torch.sparse.addmm(added, square.to("musa").to_sparse(), other.to("musa"))
    added.addmm_(square.to("musa").to_sparse(), other.to("musa"), beta=2)
    torch.testing.assert_close(added.cpu(), 2 * drawn(6, 6, seed=5) + expected)


def test_products_without_elements(served):
    for shape in ((0, 4), (4, 0), (3, 4)):
        empty = torch.zeros(shape, device="musa")
        other = torch.ones(shape[1], 2, device="musa")
        for matrix in (empty.to_sparse(), empty.to_sparse_csr()):
            assert torch.equal((matrix @ other).cpu(), torch.zeros(shape[0], 2))


def test_a_batch_of_products(served):
    batch = torch.stack([thinned(4, 5, seed=seed) for seed in range(3)])
    agree(lambda x, y: torch.bmm(x.to_sparse(), y), batch, drawn(3, 5, 6))


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.complex64), ids=str)
def test_products_at_the_elements_of_a_matrix(served, dtype):
    pattern = thinned(6, 7, dtype=dtype).to_sparse_csr()
    for inner in (1, 5, 70):
        operands = drawn(6, inner, dtype=dtype, seed=1), drawn(inner, 7, dtype=dtype, seed=2)
        agree(lambda s, a, b: torch.sparse.sampled_addmm(s, a, b, beta=0.5, alpha=2), pattern, *operands)
        agree(lambda s, a, b: torch.sparse.sampled_addmm(s, a, b, beta=0), pattern, *operands)


@pytest.mark.parametrize("dtype", (*DTYPES, torch.int64, torch.bool), ids=str)
@pytest.mark.parametrize("dense", [(), (2,)], ids=str)
def test_equal_places_are_added(served, dtype, dense):
    agree(lambda x: x.coalesce(), repeated(dtype, dense))


CONVERSIONS = {
    "to_sparse": lambda x: x.to_sparse(),
    "to_sparse of one dimension": lambda x: x.to_sparse(1),
    "to_dense": lambda x: x.to_sparse().to_dense(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
    "coo to csr": lambda x: x.to_sparse().to_sparse_csr(),
    "csr to coo": lambda x: x.to_sparse_csr().to_sparse(),
    "csr to csc": lambda x: x.to_sparse_csr().to_sparse_csc(),
    "csc to csr": lambda x: x.to_sparse_csc().to_sparse_csr(),
    "csr to dense": lambda x: x.to_sparse_csr().to_dense(),
    "bsr to dense": lambda x: x.to_sparse_bsr((2, 2)).to_dense(),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(served, name):
    agree(CONVERSIONS[name], thinned(6, 8))


OPERATORS = {
    "sum of two": lambda x, y: x.to_sparse() + y.to_sparse(),
    "sum of two with a factor": lambda x, y: x.to_sparse().add(y.to_sparse(), alpha=-2),
    "dense and sparse": lambda x, y: x + y.to_sparse(),
    "csr and csr": lambda x, y: x.to_sparse_csr() + y.to_sparse_csr(),
    "product of two": lambda x, y: x.to_sparse() * y.to_sparse(),
    "product with a dense tensor": lambda x, y: x.to_sparse() * y,
    "product with a row": lambda x, y: x.to_sparse() * y[1],
    "product with a number": lambda x, y: x.to_sparse() * 2.5,
    "quotient": lambda x, y: x.to_sparse() / 2,
    "csr and a number": lambda x, y: x.to_sparse_csr() * 2,
    "relu": lambda x, y: x.to_sparse().relu(),
    "sin of csr": lambda x, y: x.to_sparse_csr().sin(),
    "sum": lambda x, y: torch.sparse.sum(x.to_sparse()),
    "sum over a dimension": lambda x, y: torch.sparse.sum(x.to_sparse(), 0),
    "softmax": lambda x, y: torch.sparse.softmax(x.to_sparse(), 1),
    "log_softmax": lambda x, y: torch.sparse.log_softmax(x.to_sparse(), 0),
    "mask": lambda x, y: x.sparse_mask(y.to_sparse().coalesce()),
    "mask of sparse": lambda x, y: x.to_sparse().sparse_mask(y.to_sparse().coalesce()),
    "matrix product": lambda x, y: torch.sparse.mm(x.to_sparse(), y.t().to_sparse()),
    "cat": lambda x, y: torch.cat([x.to_sparse(), y.to_sparse()]),
    "index_select": lambda x, y: x.to_sparse().index_select(1, torch.tensor([3, 1, 3, 0]).to(x.device)),
    "transposed": lambda x, y: x.to_sparse().t(),
    "clone": lambda x, y: x.to_sparse().clone(),
    "to float64": lambda x, y: x.to_sparse().to(torch.float64),
    "norm": lambda x, y: x.to_sparse().norm(),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(served, name):
    for first, second in ((thinned(6, 8), thinned(6, 8, seed=7)), (torch.zeros(6, 8), thinned(6, 8))):
        if name == "softmax" or name == "log_softmax" or name == "index_select":
            first = thinned(6, 8)  # elements are needed
        agree(OPERATORS[name], first, second)


def test_gradients(served):
    def gradients(device: str) -> list[torch.Tensor]:
        x = thinned(6, 8).to(device).requires_grad_()
        y = drawn(8, 5).to(device).requires_grad_()
        torch.sparse.mm(x.to_sparse(), y).square().sum().backward()
        return [x.grad.cpu(), y.grad.cpu()]

    for one, other in zip(gradients("musa"), gradients("cpu"), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_an_embedding_with_a_sparse_gradient_learns(served):
    def weights(device: str) -> torch.Tensor:
        torch.manual_seed(0)
        table = torch.nn.Embedding(20, 4, sparse=True).to(device)
        optimizer = torch.optim.SGD(table.parameters(), 0.5)
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 5, 1, 7]).to(device)).square().sum().backward()
            optimizer.step()
        return table.weight.detach().cpu()

    torch.testing.assert_close(weights("musa"), weights("cpu"))


def test_a_product_in_a_graph_is_replayed(served, musa):
    dense = thinned(6, 8)
    matrix, other = dense.to("musa").to_sparse_csr(), torch.zeros(8, 5, device="musa")
    target = torch.empty(6, 5, device="musa")
    graph = musa.MUSAGraph()
    with musa.graph(graph):
        torch.addmm(target, matrix, other, beta=0, out=target)
    for seed in range(2):
        values = drawn(8, 5, seed=seed)
        other.copy_(values)
        graph.replay()
        torch.testing.assert_close(target.cpu(), dense @ values)


def test_a_broadcast_operand_is_the_result(served):
    dense, other = thinned(4, 6), drawn(6, 2)
    for convert in (lambda x: x.to_sparse(), lambda x: x.to_sparse_csr()):
        target = torch.arange(2.0).to("musa")
        torch.addmm(target, convert(dense.to("musa")), other.to("musa"), out=target)
        torch.testing.assert_close(target.cpu(), torch.arange(2.0) + dense @ other)


def test_elements_are_added_in_place(served, musa):
    table = torch.zeros(1 << 16, 4, device="musa")
    update = torch.sparse_coo_tensor(
        torch.tensor([[1, 5]]).to("musa"), torch.ones(2, 4).to("musa"), table.shape
    )
    musa.reset_peak_memory_stats()
    before = musa.memory_allocated()
    table.add_(update)
    assert musa.max_memory_allocated() - before < table.nbytes // 2
    assert table.sum().item() == 8


def test_wrong_operands_are_refused_as_on_the_cpu(musa):
    for call in (
        lambda device: torch.eye(3).to(device).to_sparse().index_select(0, torch.tensor([7]).to(device)),
        lambda device: torch.addmm(
            torch.zeros(3, 2).to(device),
            thinned(3, 4).to(device).to_sparse_csr(),
            torch.ones(4, 2).to(device),
            alpha=1 + 1j,
        ),
        lambda device: thinned(3, 4).to(device).to_sparse() @ torch.ones(5, 2, device=device),
        lambda device: thinned(3, 4).to(device).to_sparse_csr() @ torch.ones(5, 2, device=device),
        lambda device: thinned(3, 4).to(device).to_sparse() + torch.ones(5, device=device).to_sparse(),
    ):
        for device in ("cpu", "musa"):
            with pytest.raises((RuntimeError, IndexError)):
                call(device)


def test_tensors_of_another_device_than_the_current_one(served, musa):
    if musa.device_count() < 2:
        needs_devices(2)
    dense, other = thinned(6, 8), drawn(8, 5)
    place = torch.device("musa", 1)
    for convert in (lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc()):
        matrix = convert(dense.to(place))
        copies = [matrix, convert(dense.to("musa:0")).to(place), convert(dense).to(place), matrix.clone()]
        for copy in (*copies, torch.zeros_like(matrix) + matrix if matrix.is_sparse else matrix):
            assert all(part.device == place for part in parts(copy))
            assert torch.equal(copy.to_dense().cpu(), dense)
            torch.testing.assert_close((copy @ other.to(place)).cpu(), dense @ other)
    empty = torch.sparse_coo_tensor(size=(3, 4), device=place)
    assert empty._values().device == place and (empty + empty).coalesce()._indices().device == place


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("shape", [(5, 4, 3), (30, 20, 7), (6, 1, 3), (3, 4, 2)], ids=str)
def test_products_that_are_reduced_by_row(served, shape, reduce):
    rows, columns, width = shape
    dense = thinned(rows, columns)
    dense[1] = 0  # a row without elements
    if shape == (3, 4, 2):
        dense.zero_()
    here = [dense.to_sparse_csr().requires_grad_(), drawn(columns, width, seed=1).requires_grad_()]
    there = [each.detach().to("musa").requires_grad_() for each in here]
    expected, result = (torch.sparse.mm(*operands, reduce) for operands in (here, there))
    torch.testing.assert_close(result.cpu(), expected)
    cotangent = drawn(rows, width, seed=2)
    expected.backward(cotangent)
    result.backward(cotangent.to("musa"))
    torch.testing.assert_close(there[0].grad.cpu().values(), here[0].grad.values())
    torch.testing.assert_close(there[1].grad.cpu(), here[1].grad)


def test_reductions_by_row_refuse_what_they_do_not_take(musa):
    matrix, dense = thinned(4, 4).to_sparse_csr(), drawn(4, 2)
    for call in (
        lambda place: torch.sparse.mm(matrix.to(place), dense.to(place), "prod"),
        lambda place: torch.sparse.mm(matrix.to(place), dense[:3].to(place), "sum"),
        lambda place: torch.sparse.mm(matrix.to(place), dense.double().to(place), "sum"),
    ):
        for place in ("cpu", "musa"):
            with pytest.raises(RuntimeError):
                call(place)


def test_reductions_by_row_do_not_change_what_autocast_caches(served, musa):
    matrix, weight = thinned(4, 4).to_sparse_csr().to("musa"), drawn(4, 2).to("musa").requires_grad_()
    with torch.autocast("musa", dtype=torch.float16):
        product = torch.sparse.mm(matrix, weight * 1e5, "sum")
        torch.sparse.mm(matrix, weight, "mean")
        assert (drawn(3, 4).to("musa") @ weight).requires_grad
    assert product.dtype is torch.float32 and product.isfinite().all()


def test_sums_of_half_elements_are_kept_in_single_precision(served, musa):
    ones = torch.ones(1, 5000).half().to_sparse_csr().to("musa")
    assert torch.ops.aten._sparse_csr_sum.dim_dtype(ones, (1,), True).values().tolist() == [5000]
    column = torch.ones(5000, 1).half().to_sparse_csr().to("musa").requires_grad_()
    weight = torch.ones(1, 1, dtype=torch.float16, device="musa", requires_grad=True)
    torch.sparse.mm(column, weight, "sum").sum().backward()
    assert weight.grad.tolist() == [[5000]] and column.grad.dtype is torch.float16


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("dims", [(0,), (1,), (-1,), (0, 1), ()], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.complex64], ids=str)
def test_sums_and_products_of_elements(served, dtype, dims, name):
    if name == "prod" and dtype is torch.complex64:
        return  # computed on a copy: scatter_reduce takes real numbers, as for torch.cuda
    call = getattr(torch.ops.aten, f"_sparse_csr_{name}").dim_dtype
    matrix = (thinned(6, 5) * 4).to(dtype).to_sparse_csr()
    agree(lambda x: call(x, dims, True), matrix)
    with pytest.raises(RuntimeError):
        call(matrix.to("musa"), (0, 0), True)
    with pytest.raises(RuntimeError):
        call(matrix.to("musa"), (0,), False)


def test_a_row_without_elements_has_no_gradient(served):
    matrix = torch.tensor([[1.0, 2, 0], [0, 3, 4], [0, 0, 0]]).to_sparse_csr()
    for place in ("cpu", "musa"):
        weight = drawn(3, 2).to(place).requires_grad_()
        result = torch.sparse.mm(matrix.to(place), weight, "amax")
        result.backward(torch.tensor([[1.0, 1], [1, 1], [float("inf")] * 2], device=place))
        assert weight.grad.isfinite().all()
