# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The number of SDK calls of common operations; a call costs about as much as a small tensor's arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.harness import skips


@pytest.fixture
def count(emulator) -> Callable[[Callable], int]:
    """A function that counts the SDK calls of f() after its kernels are selected and its memory is cached."""

    def calls(f: Callable) -> int:
        for _ in range(3):
            f()
        torch.musa.synchronize()
        before = emulator.calls()
        result = f()
        made = emulator.calls() - before
        del result
        return made

    return calls


@pytest.fixture
def operands() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(32, 32, device="musa"), torch.ones(32, 32, device="musa")


@pytest.mark.parametrize("device", ["musa:0", "musa:1"])
def test_cached_memory_needs_no_call(count, device):
    skips.needs_devices(torch.device(device).index + 1)
    assert count(lambda: torch.empty(64, device=device)) == 0


def test_a_device_without_an_index_is_looked_up(count):
    assert count(lambda: torch.empty(64, device="musa")) == 1  # musaGetDevice


@pytest.mark.parametrize("name", ["add", "relu", "mm", "softmax", "sum"])
def test_an_operator_queries_the_device_and_runs(count, operands, name):
    a, b = operands
    run = {
        "add": lambda: a + b,
        "relu": lambda: torch.relu(a),
        "mm": lambda: a @ b,
        "softmax": lambda: torch.softmax(a, 1),
        "sum": lambda: a.sum(),
    }[name]
    assert count(run) == 2  # musaGetDevice and the operation


def test_an_operator_on_another_device_switches_to_it_and_back(count, emulator):
    skips.needs_devices(2)
    a = torch.ones(32, 32, device="musa:1")
    set_before = emulator.calls("musaSetDevice")
    a + a
    assert emulator.calls("musaSetDevice") - set_before == 2
    assert torch.musa.current_device() == 0
    assert count(lambda: a + a) == 4


def test_reading_a_number_copies_and_waits(count):
    number = torch.ones((), device="musa")
    assert count(number.item) == 3  # musaGetDevice, musaMemcpyAsync, musaStreamSynchronize


def test_a_copy_to_the_host_copies_and_waits(count, operands):
    # musaGetDevice, musaStreamSynchronize, musaMemcpyAsync, musaStreamSynchronize (reason: test_reads.py)
    assert count(operands[0].cpu) == 4
