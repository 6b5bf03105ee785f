# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DLPack: memory is passed to and from other libraries through capsules, without a copy."""

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
