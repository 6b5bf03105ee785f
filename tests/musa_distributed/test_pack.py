# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack with the runtime alone, without MCCL, at the exit of a process, and under torchrun."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.harness.rank_processes import ROOT, run_ranks
from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code, run_forked, run_module
from tests.musa_distributed import training

JOIN = """
import os
import torch
import torch.distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("musa", rank)
MEETING = os.environ["MEETING"]
"""


def run(code: str, folder: Path, ranks: int = 2, **shared: str) -> list[str]:
    ended = run_ranks(
        JOIN + code,
        ranks,
        kept=("MUSA_EMULATOR_MODE", "MUSA_EMULATOR_MEMORY"),
        MEETING=str(folder / "meeting"),
        **shared,
    )
    assert [one.status for one in ended] == [0] * ranks, "\n".join(one.err for one in ended)
    return [one.err for one in ended]


def start(extra: str = "") -> str:
    return (
        "torch.musa.set_device(rank)\n"
        "store = dist.FileStore(MEETING, size)\n"
        f'dist.init_process_group("mccl", store=store, rank=rank, world_size=size{extra})\n'
        "x = torch.ones(10, device=device)\n"
    )


USE = "dist.all_reduce(x)\nassert (x == size).all()\n"


@pytest.mark.once
def test_the_version():
    assert torch.musa.mccl.version() == (2, 11, 4)
    import torch.musa.mccl as by_name

    assert by_name is torch.musa.mccl


@pytest.mark.once
def test_the_error_without_the_pack():
    code = "import torch\nfrom torch_musa import extras, pack_modules\npack_modules.offered().clear()\n"
    code += "extras.version = lambda dist: None\n"
    text = "torch.musa.mccl needs musa-distributed (the extra torch-musa[mccl]), which is not installed.\n"
    text += "Fix: "
    done = run_forked(code + "import torch.musa.mccl")
    assert done.returncode == 1 and text in done.stderr
    assert (
        run_code(code + "print(hasattr(torch.musa, 'mccl'), torch.ones(2, device='musa').sum().item())")
        == "False 2.0\n"
    )


@pytest.mark.once
@pytest.mark.parametrize("start", ['"mccl"', 'device_id=torch.device("musa", 0)', '"cpu:gloo,musa:mccl"'])
def test_a_group_without_the_pack_names_it(start):
    code = f"""
    import torch, torch.distributed as dist
    from torch_musa import extras, missing_backends, pack_modules
    pack_modules.offered().clear()
    extras.version = lambda dist: None
    del dist.Backend.MCCL, dist.is_mccl_available
    missing_backends.register()
    print(dist.is_mccl_available(), dist.is_backend_available("mccl"))
    try:
        dist.init_process_group({start}, store=dist.HashStore(), rank=0, world_size=1)
    except RuntimeError as error:
        print(error)
    """
    out = run_code(code)
    assert "The backend 'mccl' of torch.distributed needs musa-distributed" in out, out
    assert out.startswith("False False\n") and "Fix: " in out, out


@pytest.fixture
def sdk_without_mccl(tmp_path: Path) -> Path:
    import musa_emulator

    home = tmp_path / "sdk"
    (home / "lib").mkdir(parents=True)
    original = Path(musa_emulator.home())
    for entry in original.iterdir():
        if entry.name != "lib":
            (home / entry.name).symlink_to(entry)
    for library in (original / "lib").iterdir():
        if "mccl" not in library.name:
            (home / "lib" / library.name).symlink_to(library)
    return home


@pytest.mark.once
def test_without_mccl_all_else_works_and_the_group_names_the_missing_library(sdk_without_mccl, tmp_path):
    code = f"""
import torch, torch.distributed as dist
print(torch.ones(3, device="musa").sum().item(), dist.get_default_backend_for_device("musa"))
try:
    dist.init_process_group("mccl", init_method="file://{tmp_path}/meeting", rank=0, world_size=1)
except RuntimeError as error:
    print(error)
"""
    out = run_code(code, MUSA_HOME=str(sdk_without_mccl))
    assert out.startswith("3.0 mccl\n")
    assert f"the MUSA SDK at {sdk_without_mccl} has no lib/libmccl.so" in out
    assert re.search("pip install .*musa-emulator-mccl", out)
    doctor = run_module("torch_musa", "doctor", MUSA_HOME=str(sdk_without_mccl))
    assert re.search(r"MCCL\n +have: .*has no lib/libmccl.so", doctor.stdout), doctor.stdout


@pytest.mark.once
def test_import_of_torch_loads_no_module_of_the_pack():
    code = "import sys, torch\nnames = sorted(sys.modules)\n"
    code += "print(*[name for name in names if name.split('.')[0] == 'musa_distributed'])"
    assert run_code(code).split() == ["musa_distributed", "musa_distributed.registration"]


# ---- exits of processes


@pytest.mark.parametrize(
    "end",
    [
        "dist.destroy_process_group()",
        "",
        "x.sum().item()",
        "dist.all_reduce(x, async_op=True)",
        "del x\nimport gc; gc.collect()",
    ],
    ids=["destroyed", "not destroyed", "not destroyed, idle", "call under way", "collected"],
)
def test_processes_exit_without_messages(tmp_path, end):
    for err in run(start() + USE + end, tmp_path):
        lines = [line for line in err.splitlines() if "destroy_process_group() was not called" not in line]
        assert lines == [], err


def test_groups_are_created_and_destroyed_repeatedly(tmp_path):
    code = """
for turn in range(5):
    torch.musa.set_device(rank)
    store = dist.FileStore(MEETING + str(turn), size)
    dist.init_process_group("mccl", store=store, rank=rank, world_size=size)
    x = torch.ones(10, device=device)
    dist.all_reduce(x)
    assert (x == size).all()
    dist.destroy_process_group()
import threading
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
assert not [name for name in names if name.startswith("mccl_watch")], names
"""
    run(code, tmp_path)


# ---- the device of a barrier


@pytest.mark.parametrize(
    "before, after, device",
    [
        ("", "", "rank"),
        ("torch.musa.set_device(size - 1 - rank)", "", "size - 1 - rank"),
        ("", "torch.musa.set_device(size - 1 - rank)", "size - 1 - rank"),
        ("", "dist.all_reduce(torch.ones(1, device=f'musa:{(rank + 1) % size}'))", "(rank + 1) % size"),
        ("", "with torch.musa.stream(torch.musa.Stream(f'musa:{rank}')): pass", "rank"),
        (
            "",
            "with torch.musa.ops.prefer('aten::neg', 'host-copy'): -torch.ones(1, device=f'musa:{rank}')",
            "rank",
        ),
    ],
    ids=[
        "none chosen",
        "chosen before the group",
        "chosen after",
        "used before",
        "stream of another device",
        "host kernel on another device",
    ],
)
def test_a_barrier_runs_on_the_device_of_the_rank(tmp_path, before, after, device):
    """Else its communicator would be another one than that of the calls on this device."""
    code = f"""
{before}
store = dist.FileStore(MEETING, size)
dist.init_process_group("mccl", store=store, rank=rank, world_size=size)
{after}
dist.barrier()
dist.all_reduce(torch.ones(1, device=f"musa:{{{device}}}"))
assert dist.group.WORLD._get_backend(torch.device("musa")).communicator_count() == 1
"""
    run(code, tmp_path, 3)


# ---- device_id: communicators are created at once


def test_groups_that_are_bound_to_a_device(tmp_path):
    needs_torch("2.13", "split_group() for other devices than cuda")
    code = (
        start(", device_id=device")
        + """
world = dist.group.WORLD._get_backend(device)
assert world.communicator_count() == 1  # before any call
if rank < 2:  # two of four, on the group's communicator
    other = 1 - rank
    dist.send(x, other) if rank == 0 else dist.recv(x, other)
assert world.communicator_count() == 1
assert world.comm_split_count() == 0
half = dist.split_group(split_ranks=[[0, 1], [2, 3]], group_desc="half")
assert half.size() == 2 and half.group_desc == "half"
y = torch.full((3,), float(rank), device=device)
dist.all_reduce(y, group=half)
assert (y == (1 if rank < 2 else 5)).all()
assert world.comm_split_count() == 1
inner = dist.new_group([1, 2])  # ranks 0 and 3 are outside
if rank in (1, 2):
    dist.all_reduce(y, group=inner)
    assert (y == 6).all()
for excluded in (3, 2):  # rank 3 takes part in the second group only
    if rank != excluded:
        z = torch.ones(3, device=device)
        world.shrink([excluded], 0, world.options).allreduce([z]).wait()
        assert (z == 3).all()
if rank != 3:
    smaller = dist.shrink_group([3])
    z = torch.ones(3, device=device)
    dist.all_reduce(z, group=smaller)
    assert (z == 3).all() and smaller.size() == 3
"""
    )
    run(code, tmp_path, 4)


def test_torchs_own_debug_wrapper_recognizes_mismatches(tmp_path):
    code = (
        start()
        + USE
        + """
try:
    dist.all_reduce(torch.ones(10 + rank, device=device))
except RuntimeError as error:
    assert "Detected mismatch between collectives on ranks" in str(error), error
else:
    raise SystemExit("no mismatch was seen")
"""
    )
    run(code, tmp_path, TORCH_DISTRIBUTED_DEBUG="DETAIL")


def test_streams_of_operands_can_be_recorded_instead(tmp_path):
    run(
        start() + USE + "y = x.t()\n" + USE.replace("size", "size * size"),
        tmp_path,
        TORCH_MCCL_AVOID_RECORD_STREAMS="0",
    )


def test_desync_debugging(tmp_path):
    run(start() + USE, tmp_path, TORCH_MCCL_DESYNC_DEBUG="1")


# ---- the example


def torchrun(ranks: int, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=musa",
        "--standalone",
        "--local-addr=127.0.0.1",
        *arguments,
    ]
    environment = {
        **os.environ,
        "MUSA_EMULATOR_DEVICES": str(ranks),
        "MUSA_VISIBLE_DEVICES": ",".join(map(str, range(ranks))),  # a machine with GPUs may have more
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        **variables,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, cwd=ROOT)


@pytest.mark.once
@pytest.mark.slow
def test_the_example_under_torchrun(tmp_path):
    done = torchrun(2, "examples/train_digits_ddp.py", "--epochs", "6", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "train_digits_ddp.json").read_text())
    assert figures["ranks"] == 2 and figures["accuracy"] > 0.96
    assert f"test accuracy on 2 ranks: {figures['accuracy']:.2%}" in done.stdout
    more = torchrun(2, "examples/train_digits_ddp.py", "--epochs", "7", "--out", str(tmp_path))
    assert (
        "going on after epoch 6" in more.stdout
        and "epoch 7:" in more.stdout
        and "epoch 6:" not in more.stdout
    )


@pytest.mark.once
def test_the_example_says_how_it_is_started():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "train_digits_ddp.py"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 2 and "start it with torchrun" in done.stderr


def test_the_digits_network_learns_as_in_one_process(two_ranks):
    two_ranks.run(training.digits)


# ---- restarts


def running(argument: str) -> list[str]:
    """Returns the command lines of processes that contain the text."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # the process has exited
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if argument in line]


@pytest.mark.once
@pytest.mark.slow
def test_restarts_lose_no_completed_step(tmp_path, request):
    """Ranks are killed at random; torchrun restarts all ranks from the last checkpoint."""
    rounds = 20 if request.config.getoption("--full") else 2
    program = ROOT / "tests" / "musa_distributed" / "resume.py"
    done = torchrun(
        2,
        f"--max-restarts={rounds}",
        str(program),
        str(tmp_path),
        str(rounds),
        TORCH_FR_DUMP_TEMP_FILE=f"{tmp_path}/record",
    )
    assert done.returncode == 0, done.stderr
    steps = [int(step) for step in (tmp_path / "steps").read_text().split()]
    assert steps == list(range(len(steps))), "a completed step was lost or done twice"
    assert (tmp_path / "starts").read_text().split() == [str(start) for start in range(rounds + 1)]
    assert "the weights are those of a run without a fault" in done.stdout
    assert running(str(tmp_path)) == [], "a process is still running"


def test_programs_can_query_whether_mccl_is_available():
    code = "import torch; print(torch.distributed.is_mccl_available(), torch.musa.is_initialized())"
    assert run_code(code) == "True False\n"
    assert run_code(code.split(", torch.musa")[0] + ")", MUSA_HOME="/nonexistent/musa") == "False\n"


def test_an_existing_function_of_that_name_is_kept():
    code = """
    import torch.distributed
    torch.distributed.is_mccl_available = mine = lambda: "mine"
    import torch_musa
    print(torch.distributed.is_mccl_available())
    """
    assert run_code(code, fresh=True, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "mine\n"
