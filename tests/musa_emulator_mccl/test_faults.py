# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A call that cannot complete logs the reason, waits for an abort, and does not keep its process alive."""

import signal

import pytest

from tests.harness.parts import sample
from tests.musa_emulator_mccl.processes import outputs_of, run_ranks

INVALID_USAGE, REMOTE = 5, 6  # as in binding.py, which loads the library

pytestmark = pytest.mark.once

MODES = sample(("async", "inline", "lazy"), 3)

SUM_OF_ONES = "x = Buffer(torch.ones(1000)); "
SUM_OF_ONES += "fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))"


@pytest.mark.parametrize("mode", MODES)
def test_an_abort_ends_pending_calls_here_and_at_the_peers(tmp_path, mode):
    """Rank 0 aborts its call before rank 1 makes one; rank 1's call then gets the error of a lost peer."""
    code = f"""
        comm, stream = join(), make_stream()
        gone = Path(os.environ["MCCL_TEST_FOLDER"], "gone")
        if RANK == 1:
            wait_until(gone.exists)
        {SUM_OF_ONES}
        if RANK == 0:
            time.sleep(0.3)
            print(finished(stream), async_error(comm))
        else:
            wait_until(lambda: async_error(comm) == REMOTE)
            print(finished(stream))
        fine(mccl.mcclCommAbort(comm))
        ok(rt.musaStreamSynchronize(stream))
        gone.touch()
        print("ended")
    """
    ended = run_ranks(code, tmp_path, MUSA_EMULATOR_MODE=mode)
    assert [one.out.splitlines() for one in ended] == [["False 0", "ended"], ["False", "ended"]]
    assert "rank 1 of 2 on device 1 cannot go on: remote process exited" in ended[1].err


@pytest.mark.parametrize("mode", MODES)
def test_a_peer_that_dies_is_noticed_by_all_others(tmp_path, mode):
    code = f"""
        comm, stream = join(), make_stream()
        for _ in range(3):
            {SUM_OF_ONES}
        wait_until(lambda: async_error(comm) == REMOTE)
        print(finished(stream))
        fine(mccl.mcclCommAbort(comm))
        ok(rt.musaStreamSynchronize(stream))
        print("ended")
    """
    fault = {1: {"MUSA_EMULATOR_MCCL_FAULT": "mcclAllReduce@2=die"}}
    ended = run_ranks(code, tmp_path, 3, fault, MUSA_EMULATOR_MODE=mode)
    assert [one.status for one in ended] == [0, -signal.SIGKILL, 0]
    assert [ended[rank].out.split() for rank in (0, 2)] == [["False", "ended"]] * 2


MISMATCHES = {
    "count": ("mcclAllReduce(x.pointer, x.pointer, size(10 + RANK), 7, SUM, comm, stream)", "of 11 float32"),
    "op": ("mcclAllReduce(x.pointer, x.pointer, size(10), 7, RANK, comm, stream)", "float32, op 1"),
    "data type": ("mcclAllReduce(x.pointer, x.pointer, size(10), 6 + RANK, SUM, comm, stream)", "10 float16"),
    "root": ("mcclBcast(x.pointer, size(10), 7, RANK, comm, stream)", "root 1"),
    "call": (
        "mcclBcast(x.pointer, size(10), 7, 0, comm, stream) if RANK else "
        "mccl.mcclAllReduce(x.pointer, x.pointer, size(10), 7, SUM, comm, stream)",
        "mcclBroadcast of 10 float32",
    ),
    "count of a transfer": (
        "mcclSend(x.pointer, size(20), 7, 1, comm, stream) if RANK == 0 else "
        "mccl.mcclRecv(x.pointer, size(10), 7, 0, comm, stream)",
        "mcclSend of 20 float32 to rank 1",
    ),
}


@pytest.mark.parametrize("what", MISMATCHES)
def test_mismatched_calls_are_named_and_wait_for_an_abort(tmp_path, what):
    """A rank that finds the difference has an asynchronous error at once, the other one on its abort."""
    call, named = MISMATCHES[what]
    code = f"""
        comm, stream, x = join(), make_stream(), Buffer(torch.ones(100))
        fine(mccl.{call})
        wait_until(lambda: async_error(comm) != SUCCESS)
        print(finished(stream), async_error(comm))
        fine(mccl.mcclCommAbort(comm))
        ok(rt.musaStreamSynchronize(stream))
        print("ended")
    """
    ended = run_ranks(code, tmp_path)
    assert [one.status for one in ended] == [0, 0], "".join(one.err for one in ended)
    seen = [one.out.split() for one in ended]
    assert [[one[0], one[2]] for one in seen] == [["False", "ended"]] * 2
    errors = {int(one[1]) for one in seen}
    assert INVALID_USAGE in errors and errors <= {INVALID_USAGE, REMOTE}, errors
    told = "".join(one.err for one in ended)
    assert named in told and "does not end before mcclCommAbort" in told


def test_an_injected_wrong_size_is_named(tmp_path):
    code = f"""
        comm, stream = join(), make_stream()
        {SUM_OF_ONES}
        time.sleep(1)
        print(finished(stream))
        fine(mccl.mcclCommAbort(comm))
    """
    ended = run_ranks(code, tmp_path, settings={1: {"MUSA_EMULATOR_MCCL_FAULT": "@1=size"}})
    assert [one.out.split() for one in ended] == [["False"]] * 2
    assert "of 999 float32" in "".join(one.err for one in ended)


def test_an_injected_delay_delays_the_call(tmp_path):
    code = f"""
        comm, stream = join(), make_stream()
        {SUM_OF_ONES}
        ok(rt.musaStreamSynchronize(stream))
        start = time.monotonic()
        {SUM_OF_ONES}
        ok(rt.musaStreamSynchronize(stream))
        print(time.monotonic() - start > 0.6, x.get().eq(2).all().item())
    """
    fault = {1: {"MUSA_EMULATOR_MCCL_FAULT": "mcclAllReduce@2=delay:700"}}
    assert outputs_of(code, tmp_path, settings=fault) == ["True True"] * 2


def test_a_rank_with_an_injected_drop_takes_no_part(tmp_path):
    code = f"""
        comm, stream = join(), make_stream()
        for _ in range(2):
            {SUM_OF_ONES}
        time.sleep(1)
        print(finished(stream))
        fine(mccl.mcclCommAbort(comm))
    """
    ended = run_ranks(code, tmp_path, settings={0: {"MUSA_EMULATOR_MCCL_FAULT": "mcclAllReduce@2=drop"}})
    assert [one.out.split() for one in ended] == [["False"]] * 2
    assert "takes no part in mcclAllReduce of 1000 float32, op 0, as injected" in ended[0].err


def test_a_process_exits_with_a_call_that_cannot_complete(tmp_path):
    code = f"""
        comm, stream = join(), make_stream()
        if RANK == 0:
            {SUM_OF_ONES}
        print("leaving")
    """
    ended = run_ranks(code, tmp_path)
    assert [one.status for one in ended] == [0, 0]


def test_streams_are_usable_after_an_abort(tmp_path):
    code = f"""
        comm, stream = join(), make_stream()
        if RANK == 0:
            {SUM_OF_ONES}
            fine(mccl.mcclCommAbort(comm))
        else:
            fine(mccl.mcclCommAbort(comm))
        comm = join("second")
        {SUM_OF_ONES}
        print(x.get().eq(2).all().item())
    """
    assert outputs_of(code, tmp_path) == ["True"] * 2
