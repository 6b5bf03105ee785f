# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Reads of the device's memory that wait."""

import threading

import pytest
import torch

from tests.harness import emulator as emulator_api
from tests.harness.subprocesses import run_code


@pytest.mark.emulator
def test_a_read_to_pageable_memory_has_waited_before_it_copies(device, emulator):
    """Or it would wait within the driver, and the watchdog of a process group for the driver."""
    x = torch.ones(5, device=device)
    torch.musa.synchronize()
    copies = emulator.calls("musaMemcpyAsync")
    emulator.fail_next("musaStreamSynchronize", emulator_api.INVALID_VALUE)
    with pytest.raises(RuntimeError, match="musaStreamSynchronize"):
        x.cpu()
    assert emulator.calls("musaMemcpyAsync") == copies
    assert x.cpu().tolist() == [1.0] * 5


def test_item_without_pinned_memory():
    code = "import torch; x = torch.full((), 2.5, device='musa'); print(x.item(), x.item(), x.long().item())"
    fault = "musaHostAlloc@1=musaErrorMemoryAllocation"
    assert run_code(code, MUSA_EMULATOR_FAIL=fault).split() == ["2.5", "2.5", "2"]


def test_threads_that_end_leave_their_pinned_number_to_others(device, emulator):
    x = torch.ones((), device=device)

    def read():
        assert x.item() == 1

    def run():
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()

    run()
    made = emulator.calls("musaHostAlloc")
    for _ in range(5):
        run()
    assert emulator.calls("musaHostAlloc") == made
