# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators for which muDNN has no kernel are computed on the device, without a copy to the host."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

CALLS = """
    import torch

    torch.manual_seed(0)

    def numbers(*shape, dtype):
        return torch.randint(-5, 5, shape).to(dtype)

    def agree(f, *arguments):
        expected = f(*arguments)
        result = f(*[each.musa() if isinstance(each, torch.Tensor) else each for each in arguments])
        flat = lambda value: [value] if isinstance(value, torch.Tensor) else list(value)
        torch.testing.assert_close([each.cpu() for each in flat(result)], flat(expected))

    for dtype in (torch.int8, torch.int64, torch.float64, torch.complex64, torch.complex128):
        x, y = numbers(2, 3, 4, dtype=dtype), numbers(2, 4, 5, dtype=dtype)
        row, matrix, batch = (numbers(*shape, dtype=dtype) for shape in ((5,), (3, 5), (2, 3, 5)))
        agree(torch.bmm, x, y)
        agree(torch.bmm, x[:, :, :0], y[:, :0])
        agree(torch.mm, y[0].t(), x[0].t())
        agree(lambda a, b: a.mH @ b, x[0], matrix)
        agree(lambda a, b, c: torch.addmm(a, b, c, beta=2, alpha=3), row, x[0], y[0])
        agree(lambda a, b, c: torch.baddbmm(a, b, c, beta=0), batch, x, y)
        agree(torch.addbmm, matrix, x, y)
        agree(torch.addmv, numbers(3, dtype=dtype), x[0], numbers(4, dtype=dtype))
        agree(torch.mv, x[0], numbers(4, dtype=dtype))
        agree(torch.addr, matrix, numbers(3, dtype=dtype), row)
        agree(lambda a, b, c: a.clone().addr_(b, c), matrix, numbers(3, dtype=dtype), row)
        agree(torch.logical_and, x, x)
        agree(torch.logical_not, x)
        agree(lambda a: torch.logsumexp(a, 1), x)
        agree(lambda a: torch.nn.functional.pad(a, (1, 2)), matrix)
    agree(torch.isnan, torch.tensor([complex("nan"), 1j]))
    image = torch.randn(2, 8, 6, 6)
    agree(torch.pixel_shuffle, image, 2)
    agree(torch.pixel_unshuffle, image, 2)
    agree(torch.channel_shuffle, image, 4)
    agree(torch.narrow_copy, image, 1, -3, 2)
    agree(torch.mode, torch.randint(0, 3, (4, 9)))
    agree(lambda x: torch.mvlgamma(x, 2), torch.rand(5) + 2)
    degrees = torch.arange(6.0)
    for name in ("chebyshev_polynomial_t", "hermite_polynomial_he", "legendre_polynomial_p"):
        agree(getattr(torch.special, name), torch.linspace(-0.9, 0.9, 6), degrees)
    agree(torch.lu_unpack, *torch.linalg.lu_factor(torch.randn(3, 5, 4)))

    data, lengths = torch.randn(7, 3), torch.tensor([2, 0, 5])
    for reduce in ("max", "mean", "min", "sum", "prod"):
        agree(lambda x, n: torch.segment_reduce(x, reduce, lengths=n, initial=1), data, lengths)
    agree(lambda x: torch.histogram(x, 5, range=(-1, 1)), data)
    agree(lambda x, w: torch.histogram(x, 4, weight=w, density=True), data, data.abs())
    agree(lambda x: torch.histogramdd(x, [2, 3, 4])[0], data)
    agree(lambda x: torch.hash_tensor(x), data)
    agree(lambda x: torch.hash_tensor(x, 1), lengths[:, None])
    picked = torch.multinomial(torch.tensor([[0, 1.0, 3], [2, 0, 0]], device="musa"), 4000, replacement=True)
    counts = [picked[row].bincount(minlength=3).tolist() for row in (0, 1)]
    assert counts[1] == [4000, 0, 0] and counts[0][0] == 0 and 850 < counts[0][1] < 1150, counts
    assert sorted(torch.multinomial(torch.ones(5, device="musa"), 5).tolist()) == [0, 1, 2, 3, 4]

    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        square = torch.randn(2, 4, 4, dtype=dtype)
        positive = square @ square.mH + 4 * torch.eye(4, dtype=dtype)
        several, wide, tall = (torch.randn(2, *shape, dtype=dtype) for shape in ((4, 3), (3, 4), (5, 3)))
        agree(torch.linalg.solve, positive, several)
        agree(lambda a, b: torch.linalg.solve(a.mT, b, left=False), positive, wide)
        agree(torch.linalg.inv, positive)
        agree(torch.linalg.det, positive)
        agree(torch.linalg.slogdet, -positive)
        agree(torch.linalg.lu, tall)
        agree(torch.linalg.lu, wide)
        agree(torch.linalg.cholesky, positive)
        agree(lambda a: torch.linalg.cholesky(a, upper=True), positive)
        agree(torch.cholesky_solve, several, torch.linalg.cholesky(positive))
        agree(torch.cholesky_inverse, torch.linalg.cholesky(positive))
        agree(lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True), positive.tril(), several)
        agree(lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, left=False), positive.triu(), wide)
        other = torch.randn(2, 5, 4, dtype=dtype)
        agree(lambda a, t, c: torch.ormqr(a, t, c, transpose=True), *torch.geqrf(tall), other)
"""


def test_results_are_the_cpus_and_nothing_is_copied_to_the_host() -> None:
    run_code(CALLS, MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="error", TORCH_MUSA_OPS=None)


CONVENTIONS = """
    import torch

    torch.manual_seed(0)

    singular = torch.tensor([[[1.0, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 3]]])
    for call in (torch.linalg.lu_factor_ex, torch.linalg.inv_ex, torch.linalg.cholesky_ex):
        infos = call(singular)[-1], call(singular.musa())[-1].cpu()
        assert torch.equal(*infos), (call, infos)
    lu, pivots, info = torch.linalg.lu_factor_ex(singular[:1].musa() + 1, pivot=False)
    assert pivots.tolist() == [[1, 2]] and info.tolist() == [0], (pivots, info)

    a, b = torch.randn(3, 1, 4, 4), torch.randn(2, 4, 5)
    a += 4 * torch.eye(4)  # well-conditioned: results differ by single precision's rounding
    torch.testing.assert_close(torch.linalg.solve(a.musa(), b.musa()).cpu(), torch.linalg.solve(a, b))
    factors = torch.linalg.lu_factor(a.musa())
    solved = torch.linalg.lu_solve(*factors, b.musa(), adjoint=True).cpu()
    torch.testing.assert_close(solved, torch.linalg.solve(a.mH, b))

    # Outputs that are not in LAPACK's order, alias the input, or alias an operand.
    out = torch.empty(4, 4, device="musa")[:, ::2][:, :2].t()
    torch.linalg.inv(torch.eye(2, device="musa") * 2, out=out)
    assert out.tolist() == [[0.5, 0], [0, 0.5]]
    x = (torch.eye(3) * 4).musa()
    torch.linalg.cholesky(x, out=x)
    assert x.tolist() == (torch.eye(3) * 2).tolist()
    whole = torch.arange(9, device="musa").view(3, 3)
    expected = (whole.cpu() @ whole.cpu()).tolist()
    assert torch.mm(whole, whole, out=whole).tolist() == expected
"""


def test_decompositions_have_lapacks_conventions() -> None:
    run_code(CONVENTIONS, MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="error", TORCH_MUSA_OPS=None)


def test_an_operator_without_a_kernel_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="aten::linalg_eig"):
        run_code(
            "import torch; torch.linalg.eig(torch.eye(4, device='musa'))",
            MUSA_EMULATOR_MEMORY="strict",
            TORCH_MUSA_FALLBACK="error",
            TORCH_MUSA_OPS=None,
        )
