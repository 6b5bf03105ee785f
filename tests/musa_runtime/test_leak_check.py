# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The leak check around every test of the device, fed with leaks that it must notice."""

import ctypes
import gc
import types

import pytest
import torch

from tests.harness import leaks
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


def test_memory_taken_of_the_driver_is_a_leak(musa):
    sdk = loaded_sdk()
    pointer = ctypes.c_void_p()
    with pytest.raises(leaks.Leak, match=r"beside the caching allocator.*\{0: "), leaks.no_leak():
        assert sdk.musaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4 * MIB)) == 0
    assert sdk.musaFree(pointer) == 0


def test_cached_memory_and_garbage_are_no_leak(musa):
    with leaks.no_leak():
        tensor = torch.empty(50 * MIB, dtype=torch.uint8, device="musa")
        del tensor
    with leaks.no_leak():
        gc.disable()  # so that the check itself must collect it
        try:
            cycle = types.SimpleNamespace(tensor=torch.empty(MIB, device="musa"))
            cycle.self = cycle
            del cycle
        finally:
            gc.enable()


def test_a_test_that_failed_is_not_judged(musa):
    kept = []
    with leaks.no_leak(unless=lambda: True):
        kept.append(torch.empty(1, device="musa"))
    kept.clear()
