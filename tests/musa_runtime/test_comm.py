# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.comm: transfers of tensors between the devices of one process."""

import pytest
import torch

from musa_runtime.errors import InvalidDeviceError


@pytest.fixture
def comm(two_devices):
    return two_devices.comm


def on(tensor, device):
    return tensor.device == torch.device(device)


@pytest.mark.parametrize("source", ["cpu", "musa:0", "musa:1"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64])
def test_broadcast_puts_a_copy_on_every_device(comm, source, dtype):
    values = torch.arange(12).view(3, 4).to(dtype)
    tensor = values.to(source)
    first, second = comm.broadcast(tensor, devices=(0, torch.device("musa:1")))
    assert on(first, "musa:0") and on(second, "musa:1")
    assert torch.equal(first.cpu(), values) and torch.equal(second.cpu(), values)
    if source == "musa:0":
        assert first is tensor and second.data_ptr() != tensor.data_ptr()


def test_broadcast_into_given_tensors(comm):
    tensor = torch.arange(6.0, device="musa:0").view(2, 3)
    out = [torch.zeros(2, 3, device="musa:1"), torch.zeros(3, 2, device="musa:0").t()]
    result = comm.broadcast(tensor, out=out)
    assert [a is b for a, b in zip(result, out, strict=True)] == [True, True]
    assert all(torch.equal(each.cpu(), tensor.cpu()) for each in out)


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({}, ValueError),
        ({"devices": [0], "out": []}, ValueError),
        ({"devices": [7]}, InvalidDeviceError),
        ({"devices": ["cpu"]}, InvalidDeviceError),
    ],
    ids=["neither", "both", "no such device", "host"],
)
def test_broadcast_refuses(comm, arguments, error):
    with pytest.raises(error):
        comm.broadcast(torch.ones(2, device="musa"), **arguments)


def test_broadcast_refuses_targets_of_another_shape_or_device(comm):
    tensor = torch.ones(2, device="musa:0")
    with pytest.raises(ValueError, match=r"out\[1\] has shape \(3,\)"):
        comm.broadcast(tensor, out=[torch.zeros(2, device="musa:1"), torch.zeros(3, device="musa:1")])
    with pytest.raises(InvalidDeviceError, match=r"out\[0\] is on cpu"):
        comm.broadcast(tensor, out=[torch.zeros(2)])


def _assorted(device):
    generator = torch.Generator().manual_seed(5)
    return [
        torch.randn(7, generator=generator).to(device),
        torch.arange(5).to(device),
        torch.randn(3, 4, generator=generator).t().to(device),
        torch.tensor(2.5).to(device),
        torch.empty(0, 3).to(device),
        torch.randn(40, 10, generator=generator).to(device),
        torch.eye(3).to_sparse().to(device),
        torch.randn(2, generator=generator).to(torch.complex64).to(device),
    ]


@pytest.mark.parametrize("buffer_size", [1, 100, 10 << 20])
@pytest.mark.parametrize("source", ["cpu", "musa:0"])
def test_broadcast_coalesced_keeps_order_shape_and_dtype(comm, source, buffer_size):
    tensors = _assorted(source)
    outputs = comm.broadcast_coalesced(tensors, (0, 1), buffer_size)
    assert len(outputs) == 2
    for index, output in enumerate(outputs):
        for tensor, copy in zip(tensors, output, strict=True):
            assert on(copy, f"musa:{index}") and copy.dtype == tensor.dtype and copy.layout == tensor.layout
            assert torch.equal(copy.to_dense().cpu(), tensor.to_dense().cpu())
    if source == "musa:0":
        assert all(a is b for a, b in zip(outputs[0], tensors, strict=True))


def test_copies_of_one_buffer_can_be_changed_independently(comm):
    weight, mean = torch.ones(3, device="musa:0"), torch.zeros(3, device="musa:0")
    _, (far_weight, far_mean) = comm.broadcast_coalesced([weight, mean], (0, 1))
    far_weight.requires_grad_()
    product = far_weight * far_weight  # saves far_weight for its backward pass
    far_mean.add_(1)
    product.sum().backward()
    assert far_weight.grad.cpu().eq(2).all() and mean.cpu().eq(0).all()


def test_broadcast_coalesced_sends_one_buffer(comm):
    tensors = [torch.ones(10, device="musa:0") for _ in range(50)]
    outputs = comm.broadcast_coalesced(tensors, (0, 1))
    assert len({tensor.untyped_storage().data_ptr() for tensor in outputs[1]}) == 1


def test_broadcast_coalesced_refuses_a_mixture_of_devices(comm):
    with pytest.raises(InvalidDeviceError, match="musa:0, musa:1"):
        comm.broadcast_coalesced([torch.ones(1, device="musa:0"), torch.ones(1, device="musa:1")], (0, 1))


@pytest.mark.parametrize("destination", [None, 0, 1])
def test_reduce_add_sums_on_the_destination(comm, destination):
    inputs = [torch.full((4,), 1.0, device="musa:0"), torch.full((4,), 10.0, device="musa:1")]
    total = comm.reduce_add([*inputs, inputs[0]], destination)
    assert on(total, f"musa:{destination or 0}")
    assert total.cpu().eq(12).all()
    assert inputs[0].cpu().eq(1).all() and inputs[1].cpu().eq(10).all()


def test_reduce_add_of_one_is_itself(comm):
    tensor = torch.ones(2, device="musa:1")
    assert comm.reduce_add([tensor], 1) is tensor


def test_reduce_add_refuses(comm):
    with pytest.raises(ValueError, match="input 1 has shape"):
        comm.reduce_add([torch.ones(2, device="musa:0"), torch.ones(3, device="musa:1")])
    with pytest.raises(InvalidDeviceError, match="input 1 is on cpu"):
        comm.reduce_add([torch.ones(2, device="musa:0"), torch.ones(2)])
    with pytest.raises(ValueError, match="at least one"):
        comm.reduce_add([])


@pytest.mark.parametrize("buffer_size", [1, 100, 10 << 20])
def test_reduce_add_coalesced(comm, buffer_size):
    near, far = _assorted("musa:0"), _assorted("musa:1")
    results = comm.reduce_add_coalesced([near, far], 1, buffer_size)
    for tensor, result in zip(near, results, strict=True):
        assert on(result, "musa:1") and result.layout == tensor.layout
        assert torch.equal(result.to_dense().cpu(), (tensor + tensor).to_dense().cpu())


def test_reduce_add_coalesced_of_sparse_and_dense(comm):
    sparse, dense = torch.eye(3).to_sparse().to("musa:0"), torch.ones(3, 3, device="musa:1")
    (result,) = comm.reduce_add_coalesced([[sparse], [dense]], 0)
    assert torch.equal(result.cpu(), torch.eye(3) + 1)


@pytest.mark.parametrize("source", ["cpu", "musa:0", "musa:1"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("chunk_sizes", [None, (1, 4)])
def test_scatter_splits_and_sends(comm, source, dim, chunk_sizes):
    values = torch.randn(5, 5)
    expected = values.chunk(2, dim) if chunk_sizes is None else values.split(chunk_sizes, dim)
    chunks = comm.scatter(values.to(source), (0, 1), chunk_sizes, dim)
    assert [chunk.device.index for chunk in chunks] == [0, 1]
    assert all(torch.equal(chunk.cpu(), want) for chunk, want in zip(chunks, expected, strict=True))


def test_scatter_on_streams_and_from_pinned_memory(comm, two_devices):
    streams = [two_devices.Stream(0), None]
    chunks = comm.scatter(torch.arange(10.0).pin_memory(), (0, 1), streams=streams)
    two_devices.current_stream(0).wait_stream(streams[0])
    assert torch.equal(torch.cat([chunk.cpu() for chunk in chunks]), torch.arange(10.0))


def test_scatter_gives_fewer_chunks_than_devices_if_there_are_fewer_rows(comm):
    assert len(comm.scatter(torch.ones(1, 3), (0, 1))) == 1


def test_scatter_into_given_tensors(comm):
    out = [torch.zeros(1, 2, device="musa:1"), torch.zeros(3, 2, device="musa:0")]
    result = comm.scatter(torch.arange(8.0).view(4, 2), out=out)
    assert result[0] is out[0] and torch.equal(
        torch.cat([each.cpu() for each in out]).view(-1), torch.arange(8.0)
    )
    with pytest.raises(ValueError, match="must add up to 5"):
        comm.scatter(torch.ones(5, 2), out=out)
    with pytest.raises(ValueError, match="not both"):
        comm.scatter(torch.ones(4, 2), (0, 1), out=out)
    with pytest.raises(ValueError, match=r"out\[0\] has shape"):
        comm.scatter(torch.ones(4, 3), out=out)


@pytest.mark.parametrize("destination", [None, 0, "musa:1", "cpu"])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gather_concatenates_on_the_destination(comm, destination, dim):
    parts = [torch.randn(2, 3, device="musa:0"), torch.randn(2, 3, device="musa:1")]
    whole = comm.gather(parts, dim, destination)
    assert on(whole, {None: "musa:0", 0: "musa:0"}.get(destination, destination))
    assert torch.equal(whole.cpu(), torch.cat([part.cpu() for part in parts], dim))


def test_gather_of_scalars_is_a_vector(comm):
    whole = comm.gather([torch.tensor(1.0, device="musa:0"), torch.tensor(2.0, device="musa:1")])
    assert whole.tolist() == [1.0, 2.0]


def test_gather_keeps_channels_last(comm):
    parts = [
        torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last).to(f"musa:{index}")
        for index in range(2)
    ]
    assert comm.gather(parts).is_contiguous(memory_format=torch.channels_last)


def test_gather_into_a_given_tensor(comm):
    parts = [torch.ones(2, device="musa:0"), torch.zeros(1, device="musa:1")]
    for out in (torch.empty(3), torch.empty(3, device="musa:1")):
        assert comm.gather(parts, out=out) is out and out.tolist() == [1, 1, 0]
    with pytest.raises(ValueError, match=r"the result has \(3,\)"):
        comm.gather(parts, out=torch.empty(4))
    with pytest.raises(ValueError, match="one of them"):
        comm.gather(parts, destination=0, out=torch.empty(3))


def test_gather_refuses_and_warns(comm):
    with pytest.raises(InvalidDeviceError, match="input 0 is on cpu"):
        comm.gather([torch.ones(2)])
    with pytest.raises(ValueError, match="input 1 has shape"):
        comm.gather([torch.ones(2, 2, device="musa:0"), torch.ones(2, 3, device="musa:1")])
    with pytest.warns(FutureWarning, match="'cpu'"):
        assert comm.gather([torch.ones(2, device="musa:1")], destination=-1).device.type == "cpu"


def test_scatter_and_gather_are_each_others_inverse(comm):
    values = torch.randn(9, 4)
    assert torch.equal(comm.gather(comm.scatter(values, (1, 0)), destination="cpu"), values)
