# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""mcclCommDestroy returns when all ranks have called it, as NCCL's does. It does not wait for a rank that
has exited."""

from __future__ import annotations

import signal

from .processes import outputs_of, run_ranks


def test_it_waits_for_the_other_rank(tmp_path):
    code = """
        comm = join()
        start = time.monotonic()
        if RANK == 1:
            time.sleep(1.5)
        ok(mccl.mcclCommDestroy(comm))
        print(time.monotonic() - start > 1)
    """
    assert outputs_of(code, tmp_path) == ["True"] * 2


def test_ranks_that_destroy_two_communicators_in_different_orders_wait_for_each_other(tmp_path):
    """mcclCommDestroy waits so that such a program hangs as it does with NCCL."""
    code = """
        import threading
        pair = [join("first"), join("second")]
        waits = [Path(os.environ["MCCL_TEST_FOLDER"], f"waits{rank}") for rank in range(2)]
        def report():
            print("waits", flush=True)
            waits[RANK].touch()
            # The exit of a rank ends the other's wait.
            wait_until(waits[1 - RANK].exists)
            os._exit(0)
        threading.Timer(3, report).start()
        for comm in pair[::1 - 2 * RANK]:
            ok(mccl.mcclCommDestroy(comm))
        if not waits[RANK].exists():
            print("done", flush=True)
        os._exit(0)
    """
    assert outputs_of(code, tmp_path) == ["waits"] * 2


def test_a_rank_that_was_killed_is_not_waited_for(tmp_path):
    code = """
        comm = join()
        if RANK == 1:
            os.kill(os.getpid(), 9)
        ok(mccl.mcclCommDestroy(comm))
        print("done")
    """
    first, second = run_ranks(code, tmp_path)
    assert (first.status, first.out.strip(), second.status) == (0, "done", -signal.SIGKILL), first.err


def test_a_process_with_both_ranks_destroys_them_one_after_the_other(tmp_path):
    code = """
        comms = (ctypes.c_void_p * 2)()
        ok(mccl.mcclCommInitAll(comms, 2, None))
        for comm in comms:
            ok(mccl.mcclCommDestroy(ctypes.c_void_p(comm)))
        print("done")
    """
    ended = run_ranks(code, tmp_path, 1, MUSA_EMULATOR_DEVICES="2")
    assert ended[0].out.strip() == "done", ended[0].err
