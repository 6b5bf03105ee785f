# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.musa.FloatTensor, torch.musa.FloatStorage and similar types behave as those of torch.cuda."""

import pickle

import pytest
import torch

from musa_runtime.legacy_types import _STORAGE_DTYPES, _TENSOR_DTYPES

pytestmark = pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")


@pytest.mark.parametrize("name, dtype", _TENSOR_DTYPES.items())
def test_tensor_types_construct_and_recognise(musa, name, dtype):
    made = getattr(musa, name)
    assert made(2, 3).shape == (2, 3) and made().numel() == 0 and made(torch.Size([4])).shape == (4,)
    values = made([1, 0, 1])
    assert values.dtype == made.dtype == dtype and values.device.type == "musa"
    assert values.tolist() == [1, 0, 1]
    assert isinstance(values, made) and values.type() == f"torch.musa.{name}"
    assert not isinstance(values.cpu(), made) and not isinstance(values, musa.sparse.FloatTensor)
    other = torch.int16 if dtype != torch.int16 else torch.int64
    assert not isinstance(values.to(other), made) and not isinstance([1.0], made)


def test_tensor_types_can_be_converted_to(musa):
    x = torch.ones(3).type(musa.DoubleTensor)
    assert x.dtype == torch.float64 and x.device.type == "musa"
    assert torch.ones(3).type("torch.musa.HalfTensor").dtype == torch.float16
    assert musa.FloatTensor.is_musa and not musa.FloatTensor.is_sparse
    assert repr(musa.FloatTensor) == "<class 'torch.musa.FloatTensor'>"
    with pytest.raises(TypeError, match="new"):
        musa.FloatTensor("three")


def test_tensor_types_take_a_device(two_devices):
    assert two_devices.FloatTensor(3, device="musa:1").device == torch.device("musa:1")
    with two_devices.device(1):
        assert two_devices.FloatTensor(3).device == torch.device("musa:1")


def test_sparse_types(musa):
    made = musa.sparse.FloatTensor
    x = made(torch.tensor([[0, 2]], device="musa"), torch.tensor([1.0, 5.0], device="musa"), torch.Size([4]))
    assert isinstance(x, made) and not isinstance(x, musa.FloatTensor)
    assert x.to_dense().tolist() == [1, 0, 5, 0] and x.type() == "torch.musa.sparse.FloatTensor"
    assert made.is_sparse and made().shape == (0,)
    assert not hasattr(musa.sparse, "BoolTensor")  # as in torch.cuda.sparse


@pytest.mark.parametrize("name, dtype", _STORAGE_DTYPES.items())
def test_storage_types_construct_and_recognise(musa, name, dtype):
    made = getattr(musa, name)
    storage = made(3)
    assert isinstance(storage, made) and storage.dtype == dtype and storage.device.type == "musa"
    assert len(storage) == 3
    assert isinstance(torch.zeros(2, dtype=dtype, device="musa").storage(), made)
    assert not isinstance(torch.zeros(2, dtype=dtype).storage(), made)
    assert torch.zeros(2, dtype=dtype, device="musa").storage().type() == f"torch.musa.{name}"
    with pytest.raises(RuntimeError, match=r"torch\.musa\.\w+\.from_buffer: .*\n.*frombuffer"):
        made.from_buffer(b"\0" * 32, "little")


def test_storage_types_hold_values_and_are_pickled_by_name(musa):
    storage = musa.FloatStorage([1.0, 2.0])
    assert storage.tolist() == [1.0, 2.0]
    assert pickle.loads(pickle.dumps(musa.FloatStorage)) is musa.FloatStorage
