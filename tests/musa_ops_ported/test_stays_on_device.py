# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators for which muDNN has no kernel are computed on the device, without a copy to the host."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once

CALLS = """
    import torch

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
        agree(torch.logical_and, x, x)
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
"""


def test_results_are_the_cpus_and_nothing_is_copied_to_the_host() -> None:
    run_code(CALLS, MUSA_EMULATOR_MEMORY="strict", TORCH_MUSA_FALLBACK="error", TORCH_MUSA_OPS=None)


def test_an_operator_without_a_kernel_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="aten::_fft_c2c"):
        run_code(
            "import torch; torch.fft.fft(torch.ones(4, dtype=torch.complex64, device='musa'))",
            MUSA_EMULATOR_MEMORY="strict",
            TORCH_MUSA_FALLBACK="error",
            TORCH_MUSA_OPS=None,
        )
