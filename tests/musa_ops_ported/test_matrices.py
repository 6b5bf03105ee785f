# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Decompositions of small and large matrices. Errors are relative to the norm, in units of the precision.

Several parts, panels or blocks of the device work on a large matrix. Nothing is computed on copies.
"""

from __future__ import annotations

import pytest
import torch
from torch import linalg

from tests.harness.device import computes_float64
from tests.harness.skips import skip_permanently

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.complex128]
# Panels of reflectors have 32 columns, parts of triangles 128, and one block rotates at most 64 columns.
SHAPES = [(1, 1), (5, 2), (2, 5), (33, 70), (70, 33), (2, 3, 7, 4), (300, 40), (2, 67, 67)]
SQUARE = [(1, 1), (2, 5, 5), (64, 64), (2, 65, 65), (130, 130)]

pytestmark = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def nothing_is_copied(musa, dtype):
    def copies():
        return sum(row["count"] for row in musa.ops.fallback_report())

    torch.manual_seed(0)
    before = copies()
    with musa.ops.prefer("*", "mudnn", "ported", "runtime", "host-copy"):
        yield
    if computes_float64() or dtype in (torch.float32, torch.complex64):
        assert copies() == before


def randn(*shape, dtype):
    return torch.randn(*shape, dtype=dtype)


def require(error, size, dtype, factor=20.0):
    """The largest error must be a small multiple of the precision, relative to the largest magnitude."""
    if error.numel():
        limit = factor * torch.finfo(dtype).eps * float(size.abs().max()) * max(error.shape[-2:])
        assert float(error.abs().max()) <= limit


def require_orthogonal(vectors, dtype):
    identity = torch.eye(vectors.shape[-1], dtype=vectors.dtype)
    require(vectors.mH @ vectors - identity, identity, dtype)


def on_cpu(results):
    return [each.cpu() for each in results]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_values_and_vectors(dtype, shape, full):
    a = randn(*shape, dtype=dtype)
    u, s, vh = on_cpu(linalg.svd(a.to("musa"), full_matrices=full))
    k = s.shape[-1]
    require((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :] - a, s, dtype)
    require_orthogonal(u, dtype)
    require_orthogonal(vh.mH, dtype)
    expected = linalg.svdvals(a)
    for values in (s, linalg.svdvals(a.to("musa")).cpu()):
        require((values - expected).unsqueeze(-1), expected, dtype)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(4, 4),
        lambda: torch.ones(5, 5),
        lambda: torch.ones(90, 70),
        lambda: torch.zeros(2, 80, 80),
        lambda: torch.full((4, 4), 1e-30),
        lambda: torch.diag(torch.tensor([1e-30, 1.0, 1e30])),
        lambda: torch.eye(66),
        lambda: torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
        lambda: torch.randn(50, 2).repeat(1, 15),
        lambda: torch.randn(1, 9).expand(40, 9),
        lambda: torch.randint(-3, 4, (40, 2)) @ torch.randint(-3, 4, (2, 40)),
        lambda: torch.full((3, 3), 1e-44),
    ],
    ids=[
        *("zeros", "ones", "many ones", "many zeros", "tiny", "tiny and huge", "identity", "exchange"),
        *("repeated", "equal rows", "integers", "denormal"),
    ],
)
def test_matrices_without_full_rank_or_with_equal_values(dtype, make):
    a = make().to(dtype)
    size = a.abs().max().clamp_min(1e-37)  # of which denormal numbers have fewer digits
    u, s, vh = on_cpu(linalg.svd(a.to("musa")))
    k = s.shape[-1]
    require((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :] - a, size, dtype, 40)
    require_orthogonal(u, dtype)
    require_orthogonal(vh.mH, dtype)
    q, r = on_cpu(linalg.qr(a.to("musa")))
    require(q @ r - a, size, dtype)
    require_orthogonal(q, dtype)
    if a.shape[-1] == a.shape[-2] and torch.equal(a, a.mH):
        values, vectors = on_cpu(linalg.eigh(a.to("musa")))
        require(a @ vectors - vectors * values.unsqueeze(-2), size, dtype)
        require_orthogonal(vectors, dtype)


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigenvalues_of_hermitian_matrices(dtype, shape, uplo):
    a = randn(*shape, dtype=dtype)
    hermitian = a + a.mH
    half = hermitian.tril() if uplo == "L" else hermitian.triu()  # the other triangle is not read
    values, vectors = on_cpu(linalg.eigh(half.to("musa"), UPLO=uplo))
    require((values - linalg.eigvalsh(hermitian)).unsqueeze(-1), values, dtype)
    require(hermitian @ vectors - vectors * values.unsqueeze(-2), values, dtype)
    require_orthogonal(vectors, dtype)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("size", [4, 70])
def test_values_that_are_not_finite_are_refused(dtype, size, value):
    a = torch.eye(size, dtype=dtype, device="musa")
    a[1, 2] = a[2, 1] = value
    for call in (linalg.svd, linalg.eigh):
        with pytest.raises(linalg.LinAlgError, match="failed to converge"):
            call(a)
    with pytest.raises(linalg.LinAlgError, match="failed to converge"):
        linalg.svdvals(torch.tensor([[value], [1]], dtype=dtype, device="musa"))


def test_errors_do_not_grow_with_the_number_of_rotations(dtype):
    a = randn(120, 120, dtype=dtype)
    unit = torch.finfo(dtype).eps
    u, s, vh = on_cpu(linalg.svd(a.to("musa")))
    identity = torch.eye(120, dtype=dtype)
    assert (u.mH @ u - identity).abs().max() < 40 * unit and (vh @ vh.mH - identity).abs().max() < 40 * unit
    assert (s - linalg.svdvals(a)).abs().max() < 20 * unit * s[0]
    values, vectors = on_cpu(linalg.eigh((a + a.mH).to("musa")))
    assert (vectors.mH @ vectors - identity).abs().max() < 40 * unit
    assert ((a + a.mH) @ vectors - vectors * values).abs().max() < 60 * unit * values.abs().max()


def test_autocast_and_tf32_do_not_change_decompositions(dtype):
    a = randn(70, 70, dtype=dtype)
    a = a @ a.mH + torch.eye(70)
    calls = (linalg.qr, linalg.cholesky, linalg.inv, linalg.eigvalsh, lambda x: linalg.matrix_exp(x / 100))
    precision = torch.get_float32_matmul_precision()
    for call in calls:
        plain = call(a.to("musa"))
        torch.set_float32_matmul_precision("high")
        try:
            with torch.autocast("musa", dtype=torch.float16):
                assert all(map(torch.equal, tensors(call(a.to("musa"))), tensors(plain)))
        finally:
            torch.set_float32_matmul_precision(precision)


def tensors(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def test_a_driver_is_one_of_torch_cudas(dtype):
    a = randn(4, 3, dtype=dtype).to("musa")
    for driver in ("gesvd", "gesvdj", "gesvda"):
        torch.testing.assert_close(linalg.svdvals(a, driver=driver), linalg.svdvals(a))
    with pytest.raises(RuntimeError, match="gesvd, gesvdj and gesvda"):
        linalg.svd(a, driver="gesdd")


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(dtype, shape, mode):
    a = randn(*shape, dtype=dtype)
    q, r = on_cpu(linalg.qr(a.to("musa"), mode=mode))
    assert not r.tril(-1).any()
    if mode == "r":
        require(r.mH @ r - a.mH @ a, a.mH @ a, dtype)
        return
    require(q @ r - a, a, dtype)
    require_orthogonal(q, dtype)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("adjoint", [False, True])
def test_products_with_the_reflectors_of_qr(dtype, left, adjoint):
    for rows, columns in ((70, 40), (40, 40), (9, 4)):
        reflectors, tau = torch.geqrf(randn(2, rows, columns, dtype=dtype))
        other = randn(*((2, rows, 6) if left else (2, 6, rows)), dtype=dtype)
        result = torch.ormqr(reflectors.to("musa"), tau.to("musa"), other.to("musa"), left, adjoint)
        expected = torch.ormqr(reflectors, tau, other, left, adjoint)
        require(result.cpu() - expected, expected, dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_least_squares(dtype, shape):
    a, b = randn(*shape, dtype=dtype), randn(*shape[:-1], 3, dtype=dtype)
    expected = linalg.lstsq(a, b, driver="gels")
    for arguments in ({}, {"driver": "gels"}):
        found = linalg.lstsq(a.to("musa"), b.to("musa"), **arguments)
        require(found.solution.cpu() - expected.solution, expected.solution, dtype, 2000)
        require(found.residuals.cpu() - expected.residuals, b.abs().square().sum(), dtype)


def test_least_squares_of_fewer_matrices_than_right_hand_sides(dtype):
    for shape in ((3, 1, 4, 2), (3, 1, 2, 4)):
        a, b = randn(*shape, dtype=dtype), randn(3, 4, shape[2], 3, dtype=dtype)
        expected = linalg.lstsq(a, b, driver="gels").solution
        require(linalg.lstsq(a.to("musa"), b.to("musa")).solution.cpu() - expected, expected, dtype, 2000)


@pytest.mark.parametrize("shape", [*SHAPES, (130, 40), (40, 130)], ids=str)
def test_lu(dtype, shape):
    a = randn(*shape, dtype=dtype)
    p, lower, upper = on_cpu(linalg.lu(a.to("musa")))
    require(p @ lower @ upper - a, a, dtype, 5)
    # The largest element of a column is the pivot; LAPACK compares the sum of the parts of a complex number.
    assert lower.abs().max() <= 1.5
    assert torch.equal(linalg.lu_factor(a.to("musa"))[1].cpu(), linalg.lu_factor(a)[1])


@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_solutions_of_linear_systems(dtype, shape):
    n = shape[-1]
    a = randn(*shape, dtype=dtype) / n**0.5 + 2 * torch.eye(n)
    b = randn(*shape[:-1], 5, dtype=dtype)
    there = a.to("musa")
    require(a @ linalg.solve(there, b.to("musa")).cpu() - b, b, dtype, 200)
    require(a @ linalg.inv(there).cpu() - torch.eye(n), torch.ones(1), dtype, 200)
    expected = linalg.slogdet(a)[1]
    require((linalg.slogdet(there)[1].cpu() - expected).reshape(-1, 1), expected, dtype, 200)
    factors = linalg.lu_factor(there)
    for adjoint in (False, True):
        matrix = a.mH if adjoint else a
        x = linalg.lu_solve(*factors, b.to("musa"), adjoint=adjoint).cpu()
        require(matrix @ x - b, b, dtype, 200)
        y = linalg.lu_solve(*factors, b.mT.to("musa"), adjoint=adjoint, left=False).cpu()
        require(y @ matrix - b.mT, b, dtype, 200)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_cholesky(dtype, shape, upper):
    n = shape[-1]
    a = randn(*shape, dtype=dtype)
    positive = a @ a.mH / n + torch.eye(n)
    factor = linalg.cholesky(positive.to("musa"), upper=upper)
    expected = linalg.cholesky(positive, upper=upper)
    require(factor.cpu() - expected, expected, dtype)
    b = randn(*shape[:-1], 3, dtype=dtype)
    require(positive @ torch.cholesky_solve(b.to("musa"), factor, upper=upper).cpu() - b, b, dtype, 200)
    inverse = torch.cholesky_inverse(factor, upper=upper).cpu()
    require(positive @ inverse - torch.eye(n), torch.ones(1), dtype, 200)


def test_the_first_failure_of_a_large_matrix_is_reported(dtype):
    n = 150
    identity = torch.eye(n, dtype=dtype).expand(2, n, n)
    for place in (3, 70, 149):
        broken = identity.clone()
        broken[1, place, place] = 0
        for call in (linalg.cholesky_ex, linalg.lu_factor_ex, linalg.inv_ex):
            assert call(broken.to("musa"))[-1].tolist() == [0, place + 1]


@pytest.mark.parametrize("kind", ["plain", "transposed", "adjoint"])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems(dtype, kind, upper, left, unit):
    for n in (4, 130):
        triangle = randn(2, n, n, dtype=dtype) / n
        triangle.diagonal(0, -2, -1).fill_(2)
        b = randn(*((2, n, 3) if left else (2, 3, n)), dtype=dtype)
        view = {"plain": lambda t: t, "transposed": lambda t: t.mT, "adjoint": lambda t: t.mH}[kind]
        settings = {"upper": upper, "left": left, "unitriangular": unit}
        result = linalg.solve_triangular(view(triangle.to("musa")), b.to("musa"), **settings).cpu()
        expected = linalg.solve_triangular(view(triangle), b, **settings)
        require(result - expected, expected, dtype)


@pytest.mark.parametrize("lazy", ["a", "out", "both"])
def test_lazily_conjugated_operands(dtype, lazy):
    if not dtype.is_complex:
        return  # .conj() of a real tensor is the tensor
    for n in (4, 65, 129):
        a, b = randn(n, n, dtype=dtype).tril() + 4 * n**0.5 * torch.eye(n), randn(n, 3, dtype=dtype)
        results = []
        for device in ("cpu", "musa"):
            triangle = a.to(device).conj() if lazy != "out" else a.to(device)
            out = torch.zeros(3, n, dtype=dtype, device=device).mT
            out = out.conj() if lazy != "a" else out
            results.append(linalg.solve_triangular(triangle, b.to(device), upper=False, out=out).cpu())
        require(results[1].resolve_conj() - results[0].resolve_conj(), results[0], dtype)


def test_lazily_negated_triangles(dtype):
    numbers = torch.randn(150, 150, dtype=torch.complex64) + 30j * torch.eye(150)
    b = torch.randn(150, 3)
    triangle, there = numbers.conj().imag, numbers.to("musa").conj().imag
    assert triangle.is_neg() and there.is_neg()
    result = linalg.solve_triangular(there, b.to("musa"), upper=True).cpu()
    torch.testing.assert_close(result, linalg.solve_triangular(triangle, b, upper=True))


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 40])
def test_bunch_kaufman(dtype, n, hermitian):
    a = randn(4, n, n, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    a[0].diagonal().zero_()  # needs blocks of two rows
    ld, pivots, infos = linalg.ldl_factor_ex(a.to("musa"), hermitian=hermitian)
    expected = linalg.ldl_factor_ex(a, hermitian=hermitian)
    assert torch.equal(pivots.cpu(), expected.pivots) and torch.equal(infos.cpu(), expected.info)
    assert n == 1 or pivots[0, 0] < 0
    b = randn(4, n, 3, dtype=dtype)
    x = linalg.ldl_solve(ld, pivots.long(), b.to("musa"), hermitian=hermitian).cpu()
    require(a @ x - b, a.abs().max() * x.abs().max(), dtype, 200) if n > 1 else None


@pytest.mark.parametrize("scale", [0.01, 1.0, 8.0])
def test_exponentials(dtype, scale):
    for shape in ((1, 1), (3, 5, 5), (40, 40)):
        a = randn(*shape, dtype=dtype) * scale / shape[-1] ** 0.5
        wide = a.to(torch.complex128 if dtype.is_complex else torch.float64)
        expected = linalg.matrix_exp(wide)
        require(linalg.matrix_exp(a.to("musa")).cpu().to(wide.dtype) - expected, expected, dtype, 50)


def test_decompositions_of_no_elements(dtype):
    for shape in ((0, 3, 3), (2, 0, 0), (2, 3, 0), (2, 0, 3)):
        a = torch.empty(*shape, dtype=dtype)
        for call in (linalg.qr, linalg.svd, torch.geqrf):
            shapes = [[each.shape for each in call(x)] for x in (a, a.to("musa"))]
            assert shapes[0] == shapes[1]
    u = linalg.svd(torch.empty(3, 0, dtype=dtype, device="musa"))[0]
    assert torch.equal(u.cpu(), torch.eye(3, dtype=dtype))


def test_qr_in_a_graph(musa, dtype):
    a = randn(2, 70, 40, dtype=dtype).to("musa")
    graph = musa.MUSAGraph()
    if not computes_float64() and dtype in (torch.float64, torch.complex128):
        skip_permanently("float64")
    with musa.graph(graph):
        q, r = linalg.qr(a)
    a.copy_(randn(2, 70, 40, dtype=dtype))
    graph.replay()
    require((q @ r - a).cpu(), a.cpu(), dtype)
