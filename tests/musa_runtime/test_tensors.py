# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Factories, dtype promotion, mixed devices, indexing and printing."""

import pytest
import torch

from tests.harness.naming import expression


@pytest.mark.parametrize(
    "make",
    [
        lambda **kw: torch.zeros(2, 3, **kw),
        lambda **kw: torch.ones(2, 3, **kw),
        lambda **kw: torch.full((2, 3), 7.5, **kw),
        lambda **kw: torch.arange(10, **kw),
        lambda **kw: torch.arange(1, 2, 0.25, **kw),
        lambda **kw: torch.linspace(0, 1, 7, **kw),
        lambda **kw: torch.logspace(0, 2, 5, **kw),
        lambda **kw: torch.eye(4, 3, **kw),
        lambda **kw: torch.tril_indices(4, 4, **kw),
        lambda **kw: torch.triu_indices(4, 4, **kw),
        lambda **kw: torch.tensor([[1, 2], [3, 4]], **kw),
        lambda **kw: torch.tensor(3.5, **kw),
        lambda **kw: torch.as_tensor([1.0, 2.0], **kw),
        lambda **kw: torch.asarray([1, 2], **kw),
        lambda **kw: torch.hann_window(8, **kw),
        lambda **kw: torch.scalar_tensor(4, **kw),
        lambda **kw: torch.complex(torch.ones(2, **kw), torch.zeros(2, **kw)),
        lambda **kw: torch.zeros(3, **kw).new_tensor([1, 2]),
        lambda **kw: torch.zeros(3, **kw).new_full((2,), 9),
        lambda **kw: torch.ones_like(torch.empty(2, 2, **kw)),
        lambda **kw: torch.block_diag(torch.ones(2, 2, **kw), torch.ones(1, 1, **kw)),
        lambda **kw: torch.cartesian_prod(torch.arange(2, **kw), torch.arange(3, **kw)),
        lambda **kw: torch.vander(torch.arange(3, **kw)),
        lambda **kw: torch.empty_strided((2, 3), (1, 2), **kw).zero_(),
        lambda **kw: torch.empty_permuted((2, 3), (1, 0), **kw).zero_(),
        lambda **kw: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last, **kw).zero_(),
    ],
    ids=expression,
)
def test_factories_give_the_cpus_results(device, make):
    expected, actual = make(device="cpu"), make(device=device)
    assert actual.device.type == device
    assert (actual.dtype, actual.stride()) == (expected.dtype, expected.stride())
    torch.testing.assert_close(actual.cpu(), expected)


def test_the_default_device_is_used(device):
    with torch.device(device):
        assert torch.zeros(2).device.type == device
        assert torch.nn.Linear(2, 2).weight.device.type == device


def test_the_default_device_can_be_set(device):
    torch.set_default_device(device)
    try:
        assert torch.arange(3).device.type == device
    finally:
        torch.set_default_device(None)


def test_a_new_tensor_lives_on_the_current_device(two_devices):
    with torch.musa.device(1):
        assert torch.zeros(2, device="musa").device.index == 1
        assert torch.tensor([1.0], device="musa").device.index == 1
    assert torch.zeros(2, device="musa").device.index == 0


def test_operators_run_on_the_device_of_their_arguments(two_devices):
    x = torch.ones(3, device="musa:1")
    for y in (x + 1, x @ x, torch.cat([x, x]), x.sum(), torch.ones_like(x), x.nonzero()):
        assert y.device == x.device
    assert torch.musa.current_device() == 0


@pytest.mark.parametrize(
    "left", [torch.bool, torch.int32, torch.int64, torch.bfloat16, torch.float32, torch.complex64]
)
@pytest.mark.parametrize("right", [torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex128])
def test_dtype_promotion_equals_cpu(device, left, right):
    a, b = torch.ones(3, dtype=left), torch.full((3,), 2, dtype=right)
    expected = a + b
    actual = a.to(device) + b.to(device)
    assert actual.dtype is expected.dtype
    assert torch.equal(actual.cpu(), expected)
    assert torch.equal((a.to(device) * 2.5).cpu(), a * 2.5)
    try:
        expected = b.sum() + a
    except NotImplementedError:
        # torch 2.14 promotes bfloat16 and a complex scalar to BComplex32, which the CPU cannot add either.
        with pytest.raises(NotImplementedError, match="BComplex32"):
            b.to(device).sum() + a.to(device)
        return
    assert torch.equal((b.to(device).sum() + a.to(device)).cpu(), expected)


def test_host_scalars_mix_with_device_tensors(device):
    x = torch.arange(4.0, device=device)
    scalar = torch.tensor(3.0)
    for result in (
        x + scalar,
        scalar + x,
        torch.where(x > scalar, x, scalar),
        torch.maximum(x, scalar.to(device)),
    ):
        assert result.device.type == device
    assert (x * scalar).cpu().tolist() == [0, 3, 6, 9]
    assert torch.lerp(x, x + 1, 0.5).cpu().tolist() == [0.5, 1.5, 2.5, 3.5]
    x[1] = scalar
    assert x.cpu().tolist() == [0, 3, 2, 3]
    x[x == scalar] = torch.tensor(9.0)
    assert x.cpu().tolist() == [0, 9, 2, 9]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x, y: x + y,
        lambda x, y: y + x,
        lambda x, y: x.add_(y),
        lambda x, y: x @ y.t(),
        lambda x, y: torch.cat([x, y]),
        lambda x, y: torch.where(x > 0, x, y),
        lambda x, y: torch.nn.functional.linear(x, y),
        lambda x, y: torch.addmm(x, y, y.t()),
        lambda x, y: torch.add(x, x, out=y),
        lambda x, y: x.masked_fill_(y > 0, 1),
        lambda x, y: x.gather(0, y.long()),
    ],
    ids=expression,
)
def test_host_tensors_do_not_mix_with_device_tensors(musa, mix):
    with pytest.raises(RuntimeError, match=r"(?i)same device|on cpu|device"):
        mix(torch.ones(3, 3, device="musa"), torch.ones(3, 3))
    assert (torch.ones(2, device="musa") + 1).cpu().tolist() == [2, 2]


def test_tensors_of_two_devices_do_not_mix(two_devices):
    with pytest.raises(RuntimeError, match=r"(?i)same device|musa:1"):
        torch.ones(3, device="musa:0") + torch.ones(3, device="musa:1")


@pytest.mark.parametrize("index_device", ["cpu", "device"])
def test_indexing_with_tensors(device, index_device):
    where = device if index_device == "device" else "cpu"
    reference = torch.arange(24.0).view(4, 6)
    x = reference.to(device)
    rows, columns = torch.tensor([3, 0, 2]), torch.tensor([5, 5, 1])
    mask = reference > 11
    assert torch.equal(x[rows.to(where)].cpu(), reference[rows])
    assert torch.equal(x[rows.to(where), columns.to(where)].cpu(), reference[rows, columns])
    assert torch.equal(x[mask.to(where)].cpu(), reference[mask])
    assert torch.equal(x[:, columns.to(where)].cpu(), reference[:, columns])
    x[rows.to(where), columns.to(where)] = torch.tensor([-1.0, -2.0, -3.0], device=device)
    reference[rows, columns] = torch.tensor([-1.0, -2.0, -3.0])
    x[mask.to(where)] += 1
    reference[mask] += 1
    assert torch.equal(x.cpu(), reference)


@pytest.mark.host_addressable("a kernel on a device detects it and the device is lost, as with torch.cuda")
def test_an_index_out_of_range_is_refused_and_the_next_operation_works(device):
    x = torch.arange(4.0, device=device)
    with pytest.raises((IndexError, RuntimeError)):
        x[torch.tensor([7], device=device)].cpu()
    with pytest.raises(IndexError):
        x[9]
    assert (x + 1).cpu().tolist() == [1, 2, 3, 4]


def test_printing_shows_values_and_device(musa):
    text = repr(torch.tensor([1.5, 2.5], device="musa"))
    assert text == "tensor([1.5000, 2.5000], device='musa:0')"
    assert "dtype=torch.int32" in repr(torch.ones(2, dtype=torch.int32, device="musa"))
    assert "..." in repr(torch.arange(10_000, device="musa"))
    assert "grad_fn" in repr(torch.ones(2, device="musa", requires_grad=True) * 2)
    assert repr(torch.empty(0, device="musa")) == "tensor([], device='musa:0')"


def test_properties_name_the_device(musa):
    x = torch.ones(2, device="musa")
    assert x.is_musa
    assert not x.is_cpu
    assert x.device.type == "musa"
    assert x.type() == "torch.musa.FloatTensor"
    assert x.get_device() == 0
    assert torch.ones(2).musa().is_musa
    assert not torch.ones(2).is_musa


def test_sizes_beyond_the_memory_of_any_device_are_refused(musa):
    with pytest.raises((RuntimeError, torch.OutOfMemoryError)):
        torch.empty(1 << 50, device="musa")
    assert torch.ones(1, device="musa").item() == 1
