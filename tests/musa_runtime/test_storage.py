# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Storages: sharing, resizing (to zero and back, as FSDP does), set_ and resize_."""

import pytest
import torch


def test_a_storage_can_be_resized_to_zero_and_back(device):
    x = torch.arange(1000.0, device=device)
    storage = x.untyped_storage()
    storage.resize_(0)
    assert storage.size() == 0
    storage.resize_(4000)
    assert storage.size() == 4000
    x.fill_(2)
    assert x.cpu().eq(2).all()


def test_shrinking_a_storage_frees_its_memory(musa):
    x = torch.zeros(1 << 20, device="musa")
    before = torch.musa.memory_allocated()
    x.untyped_storage().resize_(0)
    assert torch.musa.memory_allocated() <= before - (4 << 20)
    x.untyped_storage().resize_(4 << 20)
    assert torch.musa.memory_allocated() == before


def test_growing_a_storage_keeps_its_contents(device):
    x = torch.arange(10.0, device=device)
    x.untyped_storage().resize_(400)
    assert x.cpu().tolist() == list(range(10))
    assert x.untyped_storage().nbytes() == 400


def test_resize_grows_in_place_and_keeps_the_front(device):
    x = torch.arange(6.0, device=device)
    y = x.resize_(2, 2)
    assert y is x
    assert x.cpu().tolist() == [[0, 1], [2, 3]]
    x.resize_(4, 4)
    assert x.shape == (4, 4)
    assert x.cpu().flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    x.zero_()
    assert x.cpu().eq(0).all()


def test_resize_of_a_view_keeps_its_offset(device):
    base = torch.arange(8.0, device=device)
    view = base[4:]
    view.resize_(2)
    assert view.cpu().tolist() == [4, 5]
    view.resize_(10)
    assert view.storage_offset() == 4
    assert view.cpu()[:4].tolist() == [4, 5, 6, 7]


def test_resize_accepts_a_memory_format(device):
    x = torch.zeros(1, device=device).resize_(2, 3, 4, 5, memory_format=torch.channels_last)
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_resize_as(device):
    x = torch.zeros(2, device=device).resize_as_(torch.zeros(3, 5, device=device))
    assert x.shape == (3, 5)


def test_an_out_argument_of_another_shape_is_resized(device):
    out = torch.empty(0, device=device)
    pointer_before = out.data_ptr()
    result = torch.add(torch.ones(300, 300, device=device), 1, out=out)
    assert result is out
    assert out.cpu().eq(2).all()
    assert out.data_ptr() != pointer_before


def test_set_shares_the_storage(device):
    source = torch.arange(12.0, device=device)
    x = torch.empty(0, device=device).set_(source.untyped_storage(), 2, (2, 3), (3, 1))
    assert x.cpu().tolist() == [[2, 3, 4], [5, 6, 7]]
    x.fill_(0)
    assert source.cpu()[2:8].eq(0).all()
    y = torch.empty(0, device=device).set_(source)
    assert y.data_ptr() == source.data_ptr()
    assert torch.empty(0, device=device).set_(source.untyped_storage()).data_ptr() == source.data_ptr()
    assert source.set_().numel() == 0


def test_storages_copy_fill_and_index(device):
    storage = torch.arange(4, dtype=torch.uint8, device=device).untyped_storage()
    assert list(storage) == [0, 1, 2, 3]
    assert storage[2] == 2
    assert storage.device.type == device
    storage.fill_(9)
    assert list(storage.cpu()) == [9, 9, 9, 9]
    other = torch.zeros(4, dtype=torch.uint8).untyped_storage()
    other.copy_(storage)
    assert list(other) == [9, 9, 9, 9]
    assert list(storage.clone()) == [9, 9, 9, 9]
    assert list(torch.arange(3, dtype=torch.uint8).untyped_storage().to(device=device)) == [0, 1, 2]


def test_a_storage_of_a_given_size_on_the_device(device):
    storage = torch.UntypedStorage(64, device=device)
    assert storage.nbytes() == 64
    assert storage.device.type == device


def test_moving_a_storage_between_tensors_keeps_identity(musa):
    x, y = torch.ones(3, device="musa"), torch.zeros(3, device="musa")
    x.data = y
    assert x.data_ptr() == y.data_ptr()


def test_swapping_tensors(device):
    x, y = torch.ones(3, device=device), torch.zeros(5, device=device)
    torch.utils.swap_tensors(x, y)
    assert x.cpu().tolist() == [0] * 5
    assert y.cpu().tolist() == [1] * 3


def test_a_storage_of_a_host_tensor_is_refused(musa):
    with pytest.raises(RuntimeError):
        torch.empty(0, device="musa").set_(torch.ones(3).untyped_storage())


def test_lazy_clones_copy_on_write(device):
    x = torch.arange(4.0, device=device)
    y = torch._lazy_clone(x)
    y.add_(1)
    assert x.cpu().tolist() == [0, 1, 2, 3]
    assert y.cpu().tolist() == [1, 2, 3, 4]
    z = torch._lazy_clone(x)
    x.mul_(10)
    assert z.cpu().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((1 << 44,), {}),
        ((-1,), {}),
        ((1 << 62, 1 << 62), {}),
        ((2, 3), {"memory_format": torch.channels_last}),
    ],
    ids=["more than the memory", "negative", "overflow", "rank of the format"],
)
def test_a_resize_that_fails_keeps_the_shape(device, size, options):
    x = torch.arange(4.0, device=device)
    with pytest.raises(RuntimeError):
        x.resize_(*size, **options)
    assert (x.shape, x.stride()) == ((4,), (1,))
    assert x.cpu().tolist() == [0, 1, 2, 3]
