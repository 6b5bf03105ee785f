# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ranks that exit, stall, or make a different call: the others raise in time, with the cause in the error."""

from __future__ import annotations

import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.rank_processes import Ended, run_ranks

# The timeout of a call in seconds, once all ranks have joined; the start has no such limit.
TIMEOUT = 3
# Seconds until the last rank reports the error. Before that, ranks query the others and write records, which
# makes torch import many modules.
PATIENCE = 90

JOIN = f"""
import datetime, os, signal, time
import torch
import torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.musa.set_device(rank)
dist.init_process_group("mccl", init_method="file://" + os.environ["MEETING"], rank=rank, world_size=size)
x = torch.ones(100, device="musa")
dist.all_reduce(x)
x.cpu()
dist.group.WORLD.set_timeout(datetime.timedelta(seconds={TIMEOUT}))
start = time.monotonic()
told = [os.environ["MEETING"] + str(one) for one in range(size)]
def tell():
    open(told[rank], "w").write("told")
def stall(*until):  # until the others have reported the error and the files of `until` are written
    for path in (*told[:rank], *told[rank + 1:], *until):
        while not (os.path.exists(path) and os.path.getsize(path)):
            time.sleep(0.05)
    os._exit(7)
"""
REPORT = """
except dist.DistBackendError as error:
    print(error)
    print("after", time.monotonic() - start)
tell()
"""


def run(code: str, folder: Path, ranks: int = 2, settings=None, **shared: str) -> list[Ended]:
    return run_ranks(
        JOIN + code,
        ranks,
        settings,
        kept=("MUSA_EMULATOR_MODE", "MUSA_EMULATOR_MEMORY"),
        MEETING=str(folder / "meeting"),
        TORCH_FR_DUMP_TEMP_FILE=str(folder / "record" / "rank"),
        **{"TORCH_MCCL_WAIT_TIMEOUT_DUMP_MILSEC": str(1000 * PATIENCE), **shared},
        timeout=3 * PATIENCE,
    )


def step(what: str) -> str:
    return f"try:\n    {what}\n    x.cpu()\n    print('went on')" + REPORT


def told(ended: Ended) -> str:
    """Returns the text of the error that a surviving rank raised in time."""
    assert ended.status == 0, f"{ended.status}\n{ended.out}\n{ended.err}"
    assert "went on" not in ended.out, ended.out
    found = re.search(r"^after (.*)$", ended.out, re.MULTILINE)
    assert found and float(found[1]) < PATIENCE, ended.out
    return ended.out


def records(folder: Path, ranks: list[int]) -> dict[int, list[dict]]:
    """Returns the flight records that the ranks wrote; fr_trace reads them too."""
    found = {}
    for rank in ranks:
        record = pickle.loads((folder / "record" / f"rank{rank}").read_bytes())
        assert record["pg_config"]["0"]["desc"] == "default_pg"
        found[rank] = record["entries"]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "record").mkdir()
    return tmp_path


def trace(folder: Path) -> str:
    """Returns the output of torch's flight record analyzer."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.flight_recorder.fr_trace",
        "--prefix",
        "rank",
        str(folder / "record"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_rank_that_is_killed(folder):
    ended = run(
        "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\n" + step("dist.all_reduce(x)"), folder, 3
    )
    assert ended[1].status == -signal.SIGKILL
    for rank in (0, 2):
        text = told(ended[rank])
        assert (
            f"[rank {rank} of 3, group default_pg] mccl:all_reduce #2 (in: Float[100]; out: Float[100])"
            in text
        )
        assert "rank 1: does not answer" in text
    entries = records(folder, [0, 2])
    for calls in entries.values():
        assert calls[0]["profiling_name"] == "mccl:all_reduce" and calls[0]["state"] == "completed"
        assert calls[1]["state"] != "completed" and calls[1]["input_sizes"] == [[100]]
        assert any("<string>" in frame["filename"] for frame in calls[1]["frames"])


def test_a_rank_that_stalls(folder):
    ended = run(
        # The watchdog of the stalled rank still runs, and writes a record.
        "if rank == 1: stall(os.environ['TORCH_FR_DUMP_TEMP_FILE'] + '1')\n" + step("dist.all_reduce(x)"),
        folder,
        3,
    )
    assert ended[1].status == 7
    for rank in (0, 2):
        text = told(ended[rank])
        assert "mccl:all_reduce #2" in text
        assert re.search(r"rank 1: last called mccl:all_reduce #1 .*; all calls have finished", text)
    assert any(f"did not finish within {TIMEOUT}000 ms" in ended[rank].out for rank in (0, 2))
    entries = records(folder, [0, 1, 2])
    assert [len(calls) for calls in entries.values()] == [2, 1, 2]
    assert "rank" in trace(folder).lower()


MISMATCHES = {
    "shape": ("dist.all_reduce(torch.ones(100 + rank, device='musa'))", r"Float\[101\]"),
    "dtype": (
        "dist.all_reduce(torch.ones(100, device='musa', dtype=(torch.float, torch.int)[rank]))",
        r"Int\[100\]",
    ),
    "collective": ("dist.broadcast(x, 0) if rank else dist.all_reduce(x)", r"mccl:broadcast #2"),
    "order": (
        "[dist.all_reduce(t) for t in (x, torch.ones(7, device='musa'))[::1 - 2 * rank]]",
        r"Float\[7\]",
    ),
}


@pytest.mark.once
@pytest.mark.parametrize("mismatch", MISMATCHES)
def test_ranks_that_call_different_things(folder, mismatch):
    """MCCL detects it, so the ranks raise long before the timeout."""
    call, other = MISMATCHES[mismatch]
    longer = "dist.group.WORLD.set_timeout(datetime.timedelta(hours=1))\n"
    for ended in run(longer + step(call), folder):
        text = told(ended)
        assert re.search(other, text), text
        assert re.search(r"rank 0: last called .*\n  rank 1: last called ", text), text
    entries = records(folder, [0, 1])
    first, second = (
        (call["profiling_name"], call["input_sizes"], call["input_dtypes"])
        for call in (entries[0][1], entries[1][1])
    )
    assert first != second
    trace(folder)


def test_the_error_is_raised_before_the_record_is_written(folder):
    """Resolving the stacks of a record takes seconds. Here the writer waits for the program to read."""
    code = """
record = os.environ["TORCH_FR_DUMP_TEMP_FILE"] + str(rank)
if rank == 1:
    stall()
os.mkfifo(record)
signal.alarm(60)
dist.all_reduce(x)
try:
    torch.musa.synchronize()
except dist.DistBackendError:
    entries = __import__("pickle").load(open(record, "rb"))["entries"]
    print([entry["state"] == "completed" for entry in entries])
tell()
"""
    ended = run(code, folder)[0]
    assert (ended.status, ended.out) == (0, "[True, False]\n"), ended.err


@pytest.mark.once
def test_a_rank_that_never_joins(folder):
    """The error is raised before a call hangs: communicators are created when all ranks have joined."""
    code = "if rank == 2: stall()\n" + step(
        f"g = dist.new_group(timeout=datetime.timedelta(seconds={TIMEOUT})); dist.all_reduce(x, group=g)"
    )
    for ended in run(code, folder, 3)[:2]:
        text = told(ended)
        assert re.search(
            r"rank [01] on .* waited 3000 ms in .*, but these ranks did not arrive: rank 2\.", text
        )


@pytest.mark.once
def test_waiting_for_the_call_raises_too(folder):
    call = "work = dist.all_reduce(x, async_op=True); work.wait()"
    code = "if rank == 1: stall()\n" + step(call)
    text = told(run(code, folder, TORCH_MCCL_BLOCKING_WAIT="1")[0])
    assert "mccl:all_reduce #2" in text and "did not finish within 3000 ms" in text


@pytest.mark.once
def test_a_timeout_of_one_wait(folder):
    call = "work = dist.all_reduce(x, async_op=True); work.wait(datetime.timedelta(milliseconds=500))"
    code = "if rank == 1: stall()\n" + step(call)
    assert "did not finish within 500 ms, the timeout passed to wait()" in told(run(code, folder)[0])


def test_the_error_is_raised_at_the_programs_next_wait_and_only_once(folder):
    code = (
        "if rank == 1: stall()\n"
        + """
work = dist.all_reduce(x, async_op=True)
try:
    torch.musa.synchronize()
except dist.DistBackendError as error:
    print("synchronize raised")
torch.musa.synchronize()
assert not work.is_success() and work.is_completed()
for attempt in (work.wait, lambda: dist.all_reduce(x)):
    try:
        attempt()
    except dist.DistBackendError as error:
        print("again:", "mccl:all_reduce #2" in str(error))
print((torch.ones(3, device="musa") + 1).tolist())
tell()
dist.destroy_process_group()
"""
    )
    ended = run(code, folder)[0]
    assert ended.out.splitlines() == [
        "synchronize raised",
        "again: True",
        "again: True",
        "[2.0, 2.0, 2.0]",
    ], ended.err


@pytest.mark.once
@pytest.mark.parametrize("handling", ["1", "3"])
def test_the_process_can_be_aborted_instead(folder, handling):
    # The process is aborted before it reports the error, but it writes a record.
    code = "if rank == 1: stall(os.environ['TORCH_FR_DUMP_TEMP_FILE'] + '0')\n" + step(
        f"tell(); dist.all_reduce(x); time.sleep({PATIENCE})"
    )
    ended = run(code, folder, TORCH_MCCL_ASYNC_ERROR_HANDLING=handling)[0]
    assert ended.status == -signal.SIGABRT
    assert "mccl:all_reduce #2" in ended.err and "TORCH_MCCL_ASYNC_ERROR_HANDLING" in ended.err


@pytest.mark.once
def test_a_program_that_exits_while_records_are_written_exits_normally(folder):
    """The exit does not wait for a record's stacks, for which torch imports its compiler (some seconds)."""
    code = "if rank == 1: stall()\n" + step("dist.all_reduce(x)")
    ended = run(code, folder, TORCH_MCCL_WAIT_TIMEOUT_DUMP_MILSEC="0")[0]
    assert "mccl:all_reduce #2" in told(ended) and "FATAL" not in ended.err


@pytest.mark.once
def test_a_program_that_exits_during_a_hook_waits_for_it(folder):
    code = """
def hook(info):
    print("hook")
    tell()
    time.sleep(1)
    print("ended", flush=True)
dist.group.WORLD._register_on_completion_hook(hook)
dist.all_reduce(x)
while not os.path.exists(told[rank]):
    time.sleep(0.01)
"""
    for ended in run(code, folder):
        assert (ended.status, ended.out.split()) == (0, ["hook", "ended"]), ended.err


@pytest.mark.once
def test_a_new_group_after_a_failure(folder):
    """The same processes destroy the failed group and create another one."""
    code = """
try:
    dist.broadcast(x, 0) if rank else dist.all_reduce(x)
    torch.musa.synchronize()
except dist.DistBackendError:
    print("failed")
dist.destroy_process_group()
again = "file://" + os.environ["MEETING"] + "2"
dist.init_process_group("mccl", init_method=again, rank=rank, world_size=size)
x = torch.ones(3, device="musa")
dist.all_reduce(x)
print(x.tolist())
dist.destroy_process_group()
"""
    for ended in run(code, folder):
        assert ended.out.splitlines() == ["failed", "[2.0, 2.0, 2.0]"], ended.err


@pytest.mark.once
def test_a_nan_is_found_before_it_is_sent(folder):
    code = """
try:
    dist.all_reduce(torch.tensor([1.0, float("nan") if rank else 2.0], device="musa"))
except ValueError as error:
    print(error)
    os._exit(0)
os._exit(5)
"""
    ended = run(code, folder, TORCH_MCCL_NAN_CHECK="1")
    assert ended[0].status == 5
    assert (
        "[rank 1 of 2, group default_pg] mccl:all_reduce: a tensor of [2] to be sent contains NaN"
        in ended[1].out
    )


@pytest.mark.once
@pytest.mark.parametrize(
    "name, value",
    [("ASYNC_ERROR_HANDLING", "4"), ("BLOCKING_WAIT", "perhaps"), ("HEARTBEAT_TIMEOUT_SEC", "0")],
)
def test_invalid_settings_are_refused(folder, name, value):
    for ended in run("", folder, **{f"TORCH_MCCL_{name}": value}):
        assert ended.status == 1 and f"TORCH_MCCL_{name}" in ended.err
