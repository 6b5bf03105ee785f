# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The names that the driver of the vendor's Triton reads: of `torch_musa`, and of a device's properties."""

import pytest

import torch_musa
from tests.harness.subprocesses import run_code

NAMES = ("current_device", "current_stream", "get_device_capability", "set_device")


@pytest.mark.parametrize("name", NAMES)
def test_the_package_has_the_functions_of_torch_musa(musa, name):
    assert getattr(torch_musa, name) is getattr(musa, name)


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'memory_sumary'"):
        torch_musa.memory_sumary  # noqa: B018


def test_the_handle_of_the_current_stream(two_devices):
    musa = two_devices
    for index in (0, 1):
        side = musa.Stream(device=index)
        assert torch_musa._MUSAC._musa_getCurrentRawStream(index) == musa.current_stream(index).musa_stream
        with musa.stream(side):
            assert torch_musa._MUSAC._musa_getCurrentRawStream(index) == side.musa_stream
        assert torch_musa._MUSAC._musa_getCurrentRawStream(index) != side.musa_stream


FIRST_USE = """
import torch_musa
print(torch_musa._MUSAC._musa_getCurrentRawStream(0), torch_musa.current_device())
from torch_musa._MUSAC import _musa_getCurrentRawStream
print(_musa_getCurrentRawStream is torch_musa._MUSAC._musa_getCurrentRawStream)
"""


@pytest.mark.once
def test_the_handle_exists_before_any_other_use_of_the_device():
    assert run_code(FIRST_USE).splitlines() == ["0 0", "True"]


@pytest.mark.parametrize(
    "name",
    [
        "major",
        "max_threads_per_multi_processor",
        "multi_processor_count",
        "regs_per_multiprocessor",
        "warp_size",
    ],
)
def test_the_properties_that_inductor_chooses_configurations_by(musa, name):
    assert getattr(musa.get_device_properties(0), name) > 0
