# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Copies between the device, the host and other devices, for every dtype, layout, and lazy bit."""

import pytest
import torch

from tests.harness.naming import expression

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex32,
]


def _bits(tensor):
    return tensor.clone(memory_format=torch.contiguous_format).view(-1).view(torch.uint8)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_survives_a_round_trip_to_the_device(device, dtype):
    source = torch.arange(60).remainder(2 if dtype is torch.bool else 7).to(dtype).view(3, 4, 5)
    moved = source.to(device)
    assert moved.dtype is dtype
    assert moved.device.type == device
    assert torch.equal(_bits(moved.cpu()), _bits(source))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversion_on_the_device_equals_conversion_on_the_cpu(device, dtype):
    source = torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert torch.equal(_bits(source.to(device).to(dtype).cpu()), _bits(source.to(dtype)))
    assert torch.equal(_bits(source.to(device, dtype).cpu()), _bits(source.to(dtype)))
    assert torch.equal(
        source.to(dtype).to(device).to(torch.float64).cpu(), source.to(dtype).to(torch.float64)
    )


@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[:, :0],
        lambda x: x[0],
        lambda x: x[0, 0],
        lambda x: x[:, :1].expand(6, 8),
        lambda x: x.as_strided((4, 4), (1, 1)),
        lambda x: x.flip(0),
    ],
    ids=expression,
)
def test_sources_may_be_strided_in_both_directions(device, arrange):
    host = torch.randn(6, 8)
    assert torch.equal(arrange(host).to(device).cpu(), arrange(host))
    assert torch.equal(arrange(host.to(device)).cpu(), arrange(host))


@pytest.mark.parametrize(
    "arrange",
    [
        lambda x: x,
        lambda x: x.t(),
        lambda x: x[1:, ::2],
        lambda x: x[:, :0],
        lambda x: x[0],
        lambda x: x[0, 0],
    ],
    ids=["whole", "transposed", "with gaps", "empty", "row", "element"],
)
@pytest.mark.parametrize("source", ["from the cpu", "from the device"])
def test_destinations_may_be_strided(device, arrange, source):
    expected = torch.randn(6, 8)
    actual = expected.to(device, copy=True)
    replacement = torch.randn(arrange(expected).shape)
    arrange(expected).copy_(replacement)
    arrange(actual).copy_(replacement.to(device) if source == "from the device" else replacement)
    assert torch.equal(actual.cpu(), expected)


def test_memory_format_is_preserved(device):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    moved = x.to(device)
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved.cpu(), x)
    assert moved.contiguous().is_contiguous()
    assert torch.equal(moved.contiguous().cpu(), x)


def test_a_copy_broadcasts(device):
    x = torch.zeros(3, 4, device=device)
    x.copy_(torch.arange(4.0))
    assert torch.equal(x.cpu(), torch.arange(4.0).expand(3, 4))
    with pytest.raises(RuntimeError, match="must match"):
        x.copy_(torch.arange(5.0))


@pytest.mark.parametrize("lazy", ["conj", "neg"])
@pytest.mark.parametrize("direction", ["to device", "to cpu", "on device"])
def test_lazy_bits_are_applied_by_copies(device, lazy, direction):
    z = torch.randn(7, dtype=torch.complex64)
    expected = (z.conj() if lazy == "conj" else z.conj().imag).clone().resolve_conj().resolve_neg()

    def lazily(x):
        return x.conj() if lazy == "conj" else x.conj().imag

    source = lazily(z) if direction == "to device" else lazily(z.to(device))
    destination = torch.empty_like(expected, device="cpu" if direction == "to cpu" else device)
    destination.copy_(source)
    assert torch.equal(destination.cpu(), expected)
    if lazy == "conj":
        # The destination is a conjugated view.
        destination = torch.empty_like(expected, device=destination.device)
        destination.conj().copy_(source)
        assert torch.equal(destination.cpu(), expected.conj().resolve_conj())


def test_fft_results_reach_the_cpu(device):
    z = torch.randn(8, dtype=torch.complex64)
    torch.testing.assert_close(torch.fft.ifft(z.to(device)).cpu(), torch.fft.ifft(z))


def test_non_blocking_copies_through_pinned_memory(musa):
    source = torch.arange(10_000.0).pin_memory()
    moved = source.to("musa", non_blocking=True)
    doubled = moved * 2
    back = torch.empty(10_000, pin_memory=True)
    back.copy_(doubled, non_blocking=True)
    torch.musa.synchronize()
    assert torch.equal(back, source * 2)


def test_a_non_blocking_copy_to_the_cpu_is_complete_after_synchronisation(musa):
    x = torch.arange(1000.0, device="musa")
    back = x.to("cpu", non_blocking=True)
    torch.musa.synchronize()
    assert torch.equal(back, torch.arange(1000.0))


def test_a_blocking_copy_needs_no_synchronisation(musa):
    with torch.musa.stream(torch.musa.Stream()):
        x = torch.ones(1000, device="musa")
        for _ in range(20):
            x += 1
        assert x.cpu().eq(21).all()
        assert x.sum().item() == 21_000


def test_memory_of_a_pinned_source_is_not_reused_before_the_copy_has_run(musa):
    results = []
    for value in range(30):
        source = torch.full((4096,), float(value)).pin_memory()
        results.append(source.to("musa", non_blocking=True))
        del source
    for value, result in enumerate(results):
        assert result.cpu().eq(value).all()


@pytest.mark.parametrize("non_blocking", [False, True])
def test_copies_between_devices(two_devices, non_blocking):
    x = torch.randn(5, 7, device="musa:0")
    y = x.to("musa:1", non_blocking=non_blocking)
    assert y.device == torch.device("musa", 1)
    assert torch.equal(y.cpu(), x.cpu())
    z = torch.empty(7, 5, device="musa:1", dtype=torch.float64).t()
    z.copy_(x, non_blocking=non_blocking)
    assert torch.equal(z.cpu(), x.cpu().double())
    x[1:, ::2].copy_(y[1:, ::2] * 2)
    assert torch.equal(x.cpu()[1:, ::2], y.cpu()[1:, ::2] * 2)


def test_cross_device_copies_are_ordered_with_the_work_on_both_devices(two_devices):
    x = torch.zeros(1 << 14, device="musa:0")
    y = torch.zeros(1 << 14, device="musa:1")
    for value in range(10):
        x.fill_(value)
        y.copy_(x, non_blocking=True)
        x.fill_(-1)
        assert y.cpu().eq(value).all()


def test_item_and_tolist_wait_for_the_value(device):
    x = torch.zeros((), device=device)
    for _ in range(50):
        x += 1
    assert x.item() == 50
    assert (x.view(1) + 1).tolist() == [51]
    assert bool(x == 50)
    assert int(x) == 50


def test_clone_and_contiguous_own_their_memory(device):
    x = torch.zeros(4, 4, device=device)
    for copy in (x.clone(), x.t().contiguous(), torch.clone(x[:2])):
        copy.fill_(3)
    assert x.cpu().eq(0).all()


def test_a_tensor_on_the_target_device_is_not_copied(device):
    x = torch.zeros(3, device=device)
    assert x.to(device) is x
    assert x.to(x.device) is x
    assert x.to(device, copy=True) is not x


def test_zero_sized_copies(device):
    for shape in ((0,), (3, 0), (0, 4, 2)):
        x = torch.empty(shape).to(device)
        assert x.shape == shape
        assert x.cpu().shape == shape
        x.copy_(torch.empty(shape))


def test_a_copy_of_overlapping_parts_of_one_tensor(device):
    x = torch.arange(10.0)
    y = x.to(device)
    x[2:] = x[:-2].clone()
    y[2:] = y[:-2].clone()
    assert torch.equal(x, y.cpu())


def test_numpy_needs_a_host_tensor(musa):
    with pytest.raises(TypeError, match=r"cpu|host"):
        torch.zeros(2, device="musa").numpy()
    assert torch.from_numpy(torch.ones(2).numpy()).to("musa").cpu().tolist() == [1, 1]
