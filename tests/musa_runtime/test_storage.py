# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Storages: sharing, resizing (to zero and back, as FSDP does), set_ and resize_."""

import copy
import io

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


def _gradient(x):
    leaf = x.clone().requires_grad_()
    (leaf * leaf).sum().backward()
    return leaf.grad


def _loaded(x):
    buffer = io.BytesIO()
    torch.save(x, buffer)
    buffer.seek(0)
    return torch.load(buffer)


# Functions that allocate, of a tensor of 30 x 40 numbers. Those which resize do so in place, of a copy.
ALLOCATIONS = {
    "resize_": lambda x: x.clone().resize_(100, 100),
    "resize_ of a view": lambda x: x.clone()[2:].resize_(100, 100),
    "resize_ with a format": lambda x: x.clone().resize_(4, 8, 8, 8, memory_format=torch.channels_last),
    "resize_ of an empty tensor": lambda x: x.new_empty(0).resize_(5000),
    "resize_as_": lambda x: x.clone().resize_as_(x.new_empty(100, 100)),
    "storage.resize_": lambda x: x.new_empty(0).set_(x.clone().untyped_storage().resize_(50_000)),
    "storage.resize_ from nothing": lambda x: x.new_empty(0).set_(
        x.clone().untyped_storage().resize_(0).resize_(50_000)
    ),
    "storage.resize_ to less": lambda x: x.new_empty(0).set_(x.clone().untyped_storage().resize_(2000)),
    "set_ beyond a storage": lambda x: x.new_empty(0).set_(x.clone().untyped_storage(), 0, (100, 100)),
    "set_ then resize_": lambda x: x.clone().set_().resize_(5000),
    "write to a lazy clone": lambda x: torch._lazy_clone(x).add_(1),
    "out=": lambda x: torch.add(x, 1, out=x.new_empty(0)),
    "out= of a copy": lambda x: torch.cat((x, x), out=x.new_empty(0)),
    "out= of another dtype": lambda x: torch.add(x, 1, out=x.new_empty(0, dtype=torch.float64)),
    "out= of two": lambda x: torch.sort(x, out=(x.new_empty(0), x.new_empty(0, dtype=torch.int64)))[1],
    "storage": lambda x: x.new_empty(0).set_(torch.UntypedStorage(50_000, device=x.device)),
    "clone": lambda x: x.clone(),
    "clone of a storage": lambda x: x.new_empty(0).set_(x.untyped_storage().clone()),
    "contiguous": lambda x: x.t().contiguous(),
    "deepcopy": lambda x: copy.deepcopy(x),
    "to another dtype": lambda x: x.to(torch.float64),
    "from the cpu": lambda x: x.cpu().to(x.device),
    "from the cpu, strided": lambda x: x.cpu().t()[::2].to(x.device),
    "from pinned memory": lambda x: x.cpu().pin_memory().to(x.device, non_blocking=True),
    "like": lambda x: torch.zeros_like(x),
    "new": lambda x: x.new_full((50, 50), 2),
    "factory": lambda x: torch.arange(2000, device=x.device),
    "tensor": lambda x: torch.tensor([1.0] * 2000, device=x.device),
    "strided factory": lambda x: torch.empty_strided((50, 50), (1, 50), device=x.device),
    "random factory": lambda x: torch.randn(50, 50, device=x.device),
    "permutation": lambda x: torch.randperm(2000, device=x.device),
    "elementwise": lambda x: x * 2 + x,
    "matrix product": lambda x: x @ x.t(),
    "reduction": lambda x: x.sum(0),
    "scan": lambda x: x.cumsum(0),
    "size that depends on values": lambda x: x.nonzero(),
    "selection": lambda x: x[x > 3],
    "indices": lambda x: x[torch.arange(20, device=x.device)],
    "indices on the cpu": lambda x: x[torch.arange(20)],
    "put": lambda x: x.clone().index_put_((torch.arange(5),), x.new_zeros(())),
    "unique": lambda x: x.unique(),
    "dropout": lambda x: torch.nn.functional.dropout(x, 0.5),
    "gradient": _gradient,
    "dense of sparse": lambda x: x.to_sparse().to_dense(),
    "loaded": _loaded,
}


def test_memory_belongs_to_the_device_of_the_tensor(two_devices):
    """Also the memory for intermediate results, while another device is current."""
    musa = two_devices
    x = torch.arange(1200.0, device="musa:1").view(30, 40)
    elsewhere = []
    for name, allocate in ALLOCATIONS.items():
        for device in (0, 1):
            musa.reset_peak_memory_stats(device)
        before = [musa.memory_allocated(device) for device in (0, 1)]
        try:
            result = allocate(x)
        except RuntimeError as error:  # torch refuses a tensor whose storage is on another device
            elsewhere.append(f"{name}: {error}")
            continue
        memory = result.untyped_storage()
        on_other = musa.max_memory_allocated(0) - before[0]
        grown = musa.memory_allocated(1) - before[1]
        if on_other or grown < memory.nbytes() or result.device != x.device or musa.current_device():
            elsewhere.append(f"{name}: {on_other} bytes on musa:0, {grown} on {result.device}")
        del result, memory
    assert not elsewhere
