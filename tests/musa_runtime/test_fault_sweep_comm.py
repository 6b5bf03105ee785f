# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The fault sweep of transfers between devices, and of direct SDK calls."""

from __future__ import annotations

import ctypes
import warnings

import pytest
import torch

from tests.harness.emulator import MEMORY_ALLOCATION
from tests.musa_runtime.test_fault_sweep import _full_stream_pools as _full_stream_pools
from tests.musa_runtime.test_fault_sweep import test_any_sdk_call_may_fail as sweep


def _broadcast():
    first, second = torch.musa.comm.broadcast(torch.arange(100.0), (0, 1))
    assert torch.equal(first.cpu(), second.cpu())


def _broadcast_and_reduce_many():
    tensors = [torch.full((size,), 2.0, device="musa:0") for size in (1, 50, 3000)]
    copies = torch.musa.comm.broadcast_coalesced(tensors, (0, 1))
    for total in torch.musa.comm.reduce_add_coalesced(copies, 1):
        assert total.device.index == 1 and total.cpu().eq(4).all()


def _scatter_and_gather():
    whole = torch.arange(1000.0)
    parts = torch.musa.comm.scatter(whole, (0, 1))
    assert torch.equal(torch.musa.comm.gather(parts, destination=1).cpu(), whole)


def _data_parallel_step():
    layer = torch.nn.Linear(3, 2).to("musa:0")
    torch.musa.parallel.DataParallel(layer, [0, 1])(torch.ones(4, 3)).sum().backward()
    assert layer.bias.grad.cpu().eq(4).all()


def _memory_pinned_by_hand():
    musart, host = torch.musa.musart(), torch.ones(4096)
    torch.musa.check_error(musart.musaHostRegister(host.data_ptr(), 4 * 4096, 0))
    try:
        assert host.to("musa").cpu().eq(1).all()
    finally:
        if musart.musaHostUnregister(host.data_ptr()) != musart.musaError.success:
            torch.musa.check_error(musart.musaHostUnregister(host.data_ptr()))


def _stream_made_by_hand():
    musart, handle = torch.musa.musart(), ctypes.c_void_p()
    torch.musa.check_error(musart.musaStreamCreate(ctypes.addressof(handle)))
    try:
        musart.musaMemGetInfo(0)
    finally:
        if musart.musaStreamDestroy(handle.value) != musart.musaError.success:
            torch.musa.check_error(musart.musaStreamDestroy(handle.value))


def _sleeping():
    torch.musa._sleep(1000)
    torch.musa.synchronize()


def _telling_of_waits():
    torch.musa.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert torch.ones(3, device="musa").sum().item() == 3
        assert any("synchronizing" in str(warning.message) for warning in told)
    finally:
        torch.musa.set_sync_debug_mode("default")


SCENARIOS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)]
SCENARIOS.remove(_full_stream_pools)


# Training on two devices makes a few hundred calls, most of which the other scenarios make too.
LONG = {_data_parallel_step}


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario,
            id=scenario.__name__.strip("_"),
            marks=[pytest.mark.full] if scenario in LONG else [],
        )
        for scenario in SCENARIOS
    ],
)
def test_any_sdk_call_may_fail_between_devices(two_devices, emulator, scenario):
    sweep(two_devices, emulator, scenario, MEMORY_ALLOCATION)
