# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Apache TVM FFI: its functions take and return musa tensors without copies, on torch's current stream."""

from __future__ import annotations

import pytest
import torch
import tvm_ffi

EXT_DEV = tvm_ffi.device("ext_dev", 0)


@pytest.fixture
def echo():
    """A function that returns its argument, and the streams on which it was called."""
    streams = []

    def function(tensor):
        streams.append(tvm_ffi.get_raw_stream(EXT_DEV))
        return tensor

    return tvm_ffi.convert(function), streams


def test_a_function_shares_the_memory(echo):
    function, _ = echo
    x = torch.arange(6.0, device="musa").view(2, 3)
    y = function(x)
    assert isinstance(y, torch.Tensor) and y.device == x.device and y.data_ptr() == x.data_ptr()
    assert function(torch.ones(1, device="musa:1")).device.index == 1


def test_a_function_is_called_on_the_current_stream(echo):
    function, streams = echo
    x, stream = torch.ones(2, device="musa"), torch.musa.Stream()
    function(x)
    with torch.musa.stream(stream):
        function(x)
    assert streams == [torch.musa.current_stream().musa_stream, stream.musa_stream]


def test_tensors_are_exchanged_by_dlpack():
    x = torch.ones(2, 3, dtype=torch.bfloat16, device="musa")
    exchanged = tvm_ffi.from_dlpack(x)
    assert exchanged.device == EXT_DEV and exchanged.shape == (2, 3) and str(exchanged.dtype) == "bfloat16"
    assert torch.from_dlpack(exchanged).data_ptr() == x.data_ptr()


def test_the_context_of_torch_s_stream_is_for_cuda_only():
    """Known failure of the package: docs/packages.md has the line that takes its place."""
    with pytest.raises(AssertionError, match="CUDA"), tvm_ffi.use_torch_stream():
        pass
    stream = torch.musa.Stream()
    with tvm_ffi.use_raw_stream(EXT_DEV, stream.musa_stream):
        assert tvm_ffi.get_raw_stream(EXT_DEV) == stream.musa_stream
