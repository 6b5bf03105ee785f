# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Blocking reads of device memory."""

import os
import threading
import time

import pytest
import torch

from tests.harness import emulator as emulator_api
from tests.harness.subprocesses import run_code


@pytest.mark.emulator
def test_a_read_to_pageable_memory_waits_before_it_copies(device, emulator):
    """Otherwise it would wait within the driver, and a process group's watchdog would wait for the driver."""
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


def test_pinned_memory_for_item_is_reused_when_a_thread_ends(device, emulator):
    x = torch.ones((), device=device)

    def read():
        assert x.item() == 1

    def run():
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        # Before Python 3.13, join() may return before the thread's C++ objects are destroyed.
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            time.sleep(0.001)

    run()
    made = emulator.calls("musaHostAlloc")
    for _ in range(5):
        run()
    assert emulator.calls("musaHostAlloc") == made
