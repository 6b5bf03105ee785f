# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A CPU kernel that runs on device memory waits for its stream after each allocation: a block that another
thread has freed may be the target of work that is still queued."""

import threading

import pytest
import torch

from tests.harness.subprocesses import run_code, run_module

STEP = 19
ROUNDS = 300


def _report(step: int, **environment: str) -> list[str]:
    done = run_module(
        "tests.musa_runtime.stale_writes", str(step), timeout=3000, TORCH_MUSA_FALLBACK="allow", **environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.once
@pytest.mark.parametrize("mode", ["lazy", "async", "inline"])
@pytest.mark.parametrize("providers", ["host", ""])
def test_operators_beside_writes_to_freed_memory(emulator, full, mode, providers):
    """Lazy mode alone keeps the writes queued until something waits; the others show that nothing hangs."""
    step = 1 if full else STEP if mode == "lazy" else 5 * STEP
    *failures, counted = _report(
        step, MUSA_EMULATOR_MODE=mode, TORCH_MUSA_OPS=providers, MUSA_EMULATOR_MEMORY=""
    )
    assert counted.endswith("operators")
    assert failures == []


@pytest.mark.once
def test_an_allocation_without_a_wait_is_found(emulator):
    code = """
        import ctypes, torch
        from tests.musa_runtime.stale_writes import stale_writes
        torch.empty(1000, device="musa")
        with stale_writes():
            torch.musa.current_stream().query()
            unwaited = torch.empty(1000, device="musa")
            ctypes.memset(unwaited.data_ptr(), 1, unwaited.nbytes)
        print(unwaited.view(torch.uint8).cpu().eq(1).all().item())
    """
    assert run_code(code, MUSA_EMULATOR_MODE="lazy", MUSA_EMULATOR_MEMORY="").strip() == "False"


@pytest.mark.host_addressable("CPU kernels run on device memory only if the host can address it")
def test_threads_that_fill_and_free_on_one_stream(musa):
    done, wrong = threading.Event(), []

    def fill_and_free():
        while not done.is_set():
            torch.ones(1, device="musa")

    threads = [threading.Thread(target=fill_and_free) for _ in range(2)]
    with musa.ops.prefer("aten::add.Tensor", "host"):
        for thread in threads:
            thread.start()
        try:
            for _ in range(ROUNDS):
                x = torch.ones(100, device="musa")
                total = (x + x).sum().item()
                if total != 200:
                    wrong.append(total)
        finally:
            done.set()
            for thread in threads:
                thread.join()
    assert wrong == []
