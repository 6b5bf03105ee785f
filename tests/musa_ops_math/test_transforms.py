# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fourier transforms by muFFT: values equal the CPU's, strides equal those of torch's meta functions, and no
operand is copied to the host."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

REAL = (torch.float32, torch.float64)
COMPLEX = (torch.complex64, torch.complex128)
SHAPES = [(8,), (7,), (1,), (4, 6), (5, 1), (3, 5, 7), (3, 1, 4), (2, 3, 4, 5), (2, 3, 2, 3, 4)]


def layouts(shape: tuple[int, ...], dtype: torch.dtype) -> Iterator[torch.Tensor]:
    """Tensors of a shape, dense and with gaps, in several orders of their dimensions."""
    generator = torch.Generator().manual_seed(len(shape))

    def drawn(*sizes: int) -> torch.Tensor:
        return torch.randn(sizes, dtype=dtype, generator=generator)

    yield drawn(*shape)
    yield drawn(*shape[:-1], 2 * shape[-1])[..., 1::2]
    yield drawn(*reversed(shape)).permute(*reversed(range(len(shape))))
    if len(shape) > 1:
        yield drawn(shape[1], shape[0], *shape[2:]).transpose(0, 1)
        yield drawn(*shape[1:]).expand(shape)


def dims_of(x: torch.Tensor) -> Iterator[tuple[int, ...]]:
    for count in range(1, x.dim() + 1):
        yield from itertools.combinations(range(x.dim()), count)


def agree(call: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> None:
    on_device = x.to("musa")
    got, want = call(on_device), call(x)
    double = x.dtype in (torch.float64, torch.complex128)
    tolerance = {"rtol": 1e-10, "atol": 1e-10} if double else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(got.cpu(), want, **tolerance)
    with FakeTensorMode() as mode:
        fake = call(mode.from_tensor(on_device))
    large = [size > 1 for size in got.shape]  # the strides of one element are arbitrary
    strides = [[s for s, counts in zip(each.stride(), large) if counts] for each in (got, fake)]
    assert strides[0] == strides[1], (x.shape, x.stride())


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transforms_equal_the_cpu(served, shape, norm):
    for dtype in (*REAL, *COMPLEX):
        for x in layouts(shape, dtype):
            for dims in dims_of(x):
                settings = {"dim": dims, "norm": norm}
                if dtype in REAL:
                    agree(lambda x, k=settings: torch.fft.rfftn(x, **k), x)
                    agree(lambda x, d=dims: torch.ops.aten._fft_r2c(x, list(d), 1, False), x)
                else:
                    agree(lambda x, k=settings: torch.fft.fftn(x, **k), x)
                    agree(lambda x, k=settings: torch.fft.ifftn(x, **k), x)
                    size = 2 * x.size(dims[-1]) - 1
                    sizes = [*(x.size(dim) for dim in dims[:-1]), size]
                    agree(lambda x, s=sizes, k=settings: torch.fft.irfftn(x, s=s, **k), x)


def test_expanded_operands(served):
    """Gradients of sums are expanded, also in the dimension that is transformed."""
    x = torch.randn(4, 8, dtype=torch.complex64)
    leaves = [x.clone().requires_grad_(), x.to("musa").requires_grad_()]
    for leaf in leaves:
        torch.fft.irfft2(leaf).sum().backward()
    torch.testing.assert_close(leaves[1].grad.cpu(), leaves[0].grad, rtol=1e-4, atol=1e-4)
    for shape in ((4, 1), (1, 5)):
        row = torch.randn(shape, dtype=torch.complex64)
        found = torch.fft.fft2(row.to("musa").expand(4, 5)).cpu()
        torch.testing.assert_close(found, torch.fft.fft2(row.expand(4, 5)), rtol=1e-4, atol=1e-4)


def test_views_of_a_tensor_on_the_device(served):
    base = torch.randn(6, 5, 8)
    on_device = base.to("musa")
    for view in (
        lambda x: x[::2, :, 1::3],
        lambda x: x.permute(2, 0, 1),
        lambda x: x[:, 1:4].transpose(0, 2),
        lambda x: x[:, :, 3],
    ):
        for dims in dims_of(view(base)):
            found = torch.fft.rfftn(view(on_device), dim=dims).cpu()
            torch.testing.assert_close(found, torch.fft.rfftn(view(base), dim=dims), rtol=1e-4, atol=1e-4)


def test_wrong_dimensions_and_sizes_of_direct_calls_are_refused(musa):
    x = torch.ones(2, 5, dtype=torch.complex64, device="musa")
    with pytest.raises(RuntimeError, match="needs 3 complex ones, but got 5"):
        torch.ops.aten._fft_c2r(x, [1], 0, 4)
    for dim in (7, -1):
        with pytest.raises(IndexError, match="Dimension out of range"):
            torch.ops.aten._fft_c2c(x, [dim], 0, True)
        with pytest.raises(IndexError, match="Dimension out of range"):
            torch.ops.aten._fft_r2c(x.real, [dim], 0, True)


def test_a_batch_without_elements(served):
    """oneMKL refuses it on the CPU."""
    assert torch.fft.fft(torch.empty(0, 8, device="musa")).shape == (0, 8)
    assert torch.fft.rfft(torch.empty(0, 8, device="musa")).shape == (0, 5)
    empty = torch.empty(0, 5, dtype=torch.complex64, device="musa")
    assert torch.fft.irfft(empty).shape == (0, 8) and torch.fft.ifftn(empty, dim=1).dtype == torch.complex64


def test_the_operand_is_unchanged(served):
    for x in (torch.randn(6, 8, dtype=torch.complex64), torch.randn(2, 3, 4, 5, dtype=torch.complex64)):
        on_device = x.to("musa")
        for call in (torch.fft.irfftn, torch.fft.fftn, torch.fft.ifftn):
            call(on_device)
            assert torch.equal(on_device.cpu(), x)


def test_an_operand_in_the_middle_of_a_storage(served):
    """muFFT reads pairs, and the address of this operand is a multiple of one number only."""
    storage = torch.randn(33)
    x, on_device = storage[1:], storage.to("musa")[1:]
    torch.testing.assert_close(torch.fft.rfft(on_device).cpu(), torch.fft.rfft(x), rtol=1e-4, atol=1e-4)


def test_out_is_resized_and_filled(served):
    x = torch.randn(4, 6)
    for out in (torch.empty(0), torch.empty(4, 4), torch.empty(4, 4).t(), torch.empty(8, 4)[::2]):
        target = out.to("musa", torch.complex64)
        returned = torch.fft.rfft(x.to("musa"), out=target)
        assert returned is target
        torch.testing.assert_close(target.cpu(), torch.fft.rfft(x), rtol=1e-4, atol=1e-4)


def test_an_out_in_host_memory_is_refused(musa):
    x = torch.randn(4, 6, device="musa")
    for call in (
        lambda: torch.fft.rfft(x, out=torch.empty(4, 4, dtype=torch.complex64)),
        lambda: torch.ops.aten._fft_c2c.out(
            x + 0j, [1], 0, True, out=torch.empty(4, 6, dtype=torch.complex64)
        ),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_conjugated_and_negated_operands(served):
    x = torch.randn(4, 6, dtype=torch.complex64)
    torch.testing.assert_close(torch.fft.fft(x.to("musa").conj()).cpu(), torch.fft.fft(x.conj()))
    torch.testing.assert_close(torch.fft.rfft(x.to("musa").conj().imag).cpu(), torch.fft.rfft(x.conj().imag))


def test_gradients(served):
    for call, dtype in (
        (torch.fft.rfft2, torch.float64),
        (torch.fft.irfft2, torch.complex128),
        (torch.fft.fft2, torch.complex128),
        (torch.fft.hfft, torch.complex128),
    ):
        x = torch.randn(3, 4, dtype=dtype)
        leaves = [x.clone().requires_grad_(), x.to("musa").requires_grad_()]
        for leaf in leaves:
            call(leaf).abs().square().sum().backward()
        torch.testing.assert_close(leaves[1].grad.cpu(), leaves[0].grad)


def test_half_precision(served):
    x = torch.randn(4, 12).half()
    got = torch.fft.irfft(torch.fft.rfft(x.to("musa")), n=12)
    assert got.dtype == torch.float16
    torch.testing.assert_close(got.cpu(), x, rtol=1e-2, atol=1e-2)


def test_a_spectrogram_and_its_inverse(served):
    signal, window = torch.randn(2, 400), torch.hann_window(64)
    settings = {"n_fft": 64, "hop_length": 16, "return_complex": True}
    got = torch.stft(signal.to("musa"), window=window.to("musa"), **settings)
    torch.testing.assert_close(got.cpu(), torch.stft(signal, window=window, **settings), rtol=1e-4, atol=1e-4)
    back = torch.istft(got, n_fft=64, hop_length=16, window=window.to("musa"), length=400)
    torch.testing.assert_close(back.cpu(), signal, rtol=1e-4, atol=1e-4)


def test_a_transform_on_each_stream_and_device(served, musa):
    x = torch.randn(8, 64)
    want = torch.fft.rfft(x)
    results = []
    for index in range(musa.device_count()):
        with musa.device(index):
            for _ in range(3):
                stream = musa.Stream()
                with musa.stream(stream):
                    results.append(torch.fft.rfft(x.to("musa")))
                stream.synchronize()
    for result in results:
        torch.testing.assert_close(result.cpu(), want, rtol=1e-4, atol=1e-4)
