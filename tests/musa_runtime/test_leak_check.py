# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The leak check around every test of the device, tested with leaks that it must detect."""

import ctypes
import gc
import types

import pytest
import torch

from tests.harness import leaks, skips
from tests.harness.emulator import loaded_sdk

MIB = 1 << 20


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(leaks, "_PATIENCE", 0.05)


def test_a_tensor_that_stays_is_a_leak(musa):
    kept = []
    with pytest.raises(leaks.Leak, match=r"still allocated, by device: \{0: 512\}"), leaks.no_leak():
        kept.append(torch.empty(1, device="musa"))


def test_a_tensor_of_another_device_is_a_leak(two_devices):
    kept = []
    with pytest.raises(leaks.Leak, match=r"\{1: 512\}"), leaks.no_leak():
        kept.append(torch.empty(1, device="musa:1"))


@pytest.fixture(params=["counters of the SDK", "free memory of the device"])
def figures(request, musa, monkeypatch):
    """The two sources of the check's figures: the emulator's counters, and functions that every SDK has."""
    if request.param == "free memory of the device":
        monkeypatch.setattr(leaks, "_sdk_counters", lambda: None)
    elif leaks._sdk_counters() is None:
        skips.skip_permanently("emulator")
    return request.param


@pytest.mark.parametrize("size", [512, 4 * MIB])
def test_memory_taken_of_the_driver_is_a_leak(figures, size):
    if figures == "free memory of the device" and size < leaks._DRIVERS_OWN:
        size = leaks._DRIVERS_OWN + 512
    sdk = loaded_sdk()
    pointer = ctypes.c_void_p()
    with pytest.raises(leaks.Leak, match=r"beside the caching allocator.*\{0: "), leaks.no_leak():
        assert sdk.musaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    assert sdk.musaFree(pointer) == 0


def test_memory_that_another_process_takes_is_no_leak(musa, emulator, monkeypatch):
    """The other process reduces the device's free memory, which all processes share."""
    free, total = musa.mem_get_info(0)
    monkeypatch.setattr(musa, "mem_get_info", lambda device=None: (free, total))
    with leaks.no_leak():
        monkeypatch.setattr(musa, "mem_get_info", lambda device=None: (free - 64 * MIB, total))
    with pytest.raises(leaks.Leak), leaks.no_leak():  # if only the device's free memory is compared
        monkeypatch.setattr(leaks, "_sdk_counters", lambda: None)


def test_a_graph_that_stays_is_a_leak(musa, emulator):
    kept = []
    with pytest.raises(leaks.Leak, match="graphs that were not destroyed: "), leaks.no_leak():
        x = torch.ones(4, device="musa")
        graph = musa.MUSAGraph()
        with musa.graph(graph):
            x.add_(1)
        kept.append(graph)


def test_cached_memory_and_garbage_are_no_leak(musa):
    with leaks.no_leak():
        tensor = torch.empty(50 * MIB, dtype=torch.uint8, device="musa")
        del tensor
    with leaks.no_leak():
        gc.disable()  # so that only the check collects the garbage
        try:
            cycle = types.SimpleNamespace(tensor=torch.empty(MIB, device="musa"))
            cycle.self = cycle
            del cycle
        finally:
            gc.enable()


def test_a_failed_test_is_not_checked(musa):
    kept = []
    with leaks.no_leak(unless=lambda: True):
        kept.append(torch.empty(1, device="musa"))
    kept.clear()
