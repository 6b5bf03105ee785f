# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DLPack: memory is passed to and from other libraries through capsules, without a copy."""

import numpy
import pytest
import torch
from torch.utils.dlpack import from_dlpack, to_dlpack


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int64, torch.bfloat16, torch.bool, torch.complex64], ids=str
)
def test_a_capsule_shares_the_memory(musa, dtype):
    x = torch.ones(3, 4, dtype=dtype, device="musa")[:, ::2]
    y = from_dlpack(to_dlpack(x))
    assert (y.device, y.dtype, y.shape, y.stride(), y.data_ptr()) == (
        x.device,
        x.dtype,
        x.shape,
        x.stride(),
        x.data_ptr(),
    )
    y.zero_()
    assert x.cpu().eq(0).all()


def test_the_capsule_keeps_the_memory_alive(musa):
    before = musa.memory_allocated()
    x = torch.full((1000,), 3.0, device="musa")
    capsule = to_dlpack(x)
    del x
    churn = torch.full((1000,), -1.0, device="musa")
    y = from_dlpack(capsule)
    del capsule, churn
    assert y.cpu().eq(3).all()
    del y
    assert musa.memory_allocated() == before


def test_a_capsule_that_is_never_consumed_frees_its_memory(musa):
    before = musa.memory_allocated()
    capsule = torch.ones(1000, device="musa").__dlpack__()
    assert musa.memory_allocated() > before
    del capsule
    assert musa.memory_allocated() == before


def test_a_capsule_can_be_consumed_once(musa):
    capsule = to_dlpack(torch.ones(2, device="musa"))
    from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="already"):
        from_dlpack(capsule)


def test_the_device_index_is_kept(two_devices):
    x = torch.ones(2, device="musa:1")
    assert from_dlpack(x.__dlpack__()).device == x.device


def test_tensors_that_require_grad_are_refused(musa):
    with pytest.raises(BufferError, match="gradient"):
        torch.ones(2, device="musa", requires_grad=True).__dlpack__()


def test_conjugated_tensors_are_refused(musa):
    with pytest.raises(BufferError, match="conj"):
        torch.ones(2, dtype=torch.complex64, device="musa").conj().__dlpack__()


def test_numpy_gets_a_copy_in_host_memory_or_an_error(musa):
    x = torch.arange(6.0, device="musa").view(2, 3).t()
    assert numpy.from_dlpack(x, device="cpu").tolist() == x.tolist()
    with pytest.raises((BufferError, RuntimeError), match=r"[Dd]evice"):
        numpy.from_dlpack(x)
    for convert in (numpy.asarray, lambda tensor: tensor.numpy()):
        with pytest.raises(TypeError, match=r"can't convert musa:0 device type.*Tensor\.cpu\(\)"):
            convert(x)
    # Libraries for CUDA test for this attribute, and must not read the memory.
    assert not hasattr(x, "__cuda_array_interface__")


def test_pinned_memory_is_host_memory_for_numpy(musa):
    x = torch.ones(3).pin_memory()
    assert numpy.from_dlpack(x).ctypes.data == x.data_ptr()


def test_a_copy_and_versioned_capsules(musa):
    x = torch.ones(2, dtype=torch.float8_e4m3fn, device="musa")
    assert from_dlpack(x.__dlpack__(copy=True)).data_ptr() != x.data_ptr()
    assert from_dlpack(x.__dlpack__(max_version=(1, 0))).dtype == x.dtype
    assert from_dlpack(torch.ones(2), device="musa").is_musa


def test_streams_of_the_consumer_are_not_ordered_by_torch(musa):
    """A consumer on another stream waits itself, as the page docs/upstream/dlpack.md says."""
    x, stream = torch.ones(2, device="musa"), musa.Stream()
    for handle in (None, -1, stream.musa_stream):
        y = from_dlpack(x.__dlpack__(stream=handle))
        stream.wait_stream(musa.current_stream())
        with musa.stream(stream):
            assert (y + 1).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="stream must be"):
        x.__dlpack__(stream=stream)


def test_the_device_of_a_tensor_is_unknown_to_torch_alone(musa):
    """If this fails, torch has the change of docs/upstream/dlpack.md: remove the page."""
    x = torch.ones(2, device="musa")
    with pytest.raises(ValueError, match="Unknown device type musa for Dlpack"):
        torch.from_dlpack(x)
    assert torch._C._torchDeviceToDLDevice(x.device) == (12, 0)  # kDLExtDev
    assert torch.from_dlpack(to_dlpack(x)).data_ptr() == x.data_ptr()
