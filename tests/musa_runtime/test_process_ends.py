# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Forks, exits and kills of processes: clear errors, no messages at a normal exit, and no remaining files."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
import torch

from tests.harness.subprocesses import run_code, run_forked, run_python

# ---- the exit of a process -------------------------------------------------------------------------------

ENDS = {
    "work in flight": """
        import torch
        streams = [torch.musa.Stream() for _ in range(4)]
        x = torch.ones(1 << 20, device="musa")
        pinned = torch.empty(1 << 20, pin_memory=True)
        for stream in streams:
            with torch.musa.stream(stream):
                y = x * 2
                pinned.copy_(x, non_blocking=True)
        event = torch.musa.Event(interprocess=True)
        event.record(streams[0])
    """,
    "tensors in globals, cycles and threads": """
        import threading
        import torch
        x = torch.ones(100, device="musa")
        cycle = [torch.ones(100, device="musa")]
        cycle.append(cycle)
        local = threading.local()
        local.tensor = torch.ones(100, device="musa")
        computed = threading.Event()
        def work():
            local.tensor = torch.ones(100, device="musa") * 2
            computed.set()
            threading.Event().wait(30)
        threading.Thread(target=work, daemon=True).start()
        # Python ends a thread that is within an operator of torch with a crash, on any device.
        assert computed.wait(30)
        generator = torch.Generator(device="musa")
    """,
    "after backward": """
        import torch
        x = torch.ones(4, device="musa", requires_grad=True)
        (x * 2).sum().backward()
        torch.nn.Linear(4, 4).to("musa")(torch.ones(2, 4, device="musa")).sum().backward()
    """,
    "shared tensors in queues": """
        import torch
        from torch import multiprocessing
        context = multiprocessing.get_context("spawn")
        queue, simple = context.Queue(), context.SimpleQueue()
        x = torch.ones(100, device="musa")
        queue.put(x)
        queue.put(x + 1)
        simple.put(x)
        reader, writer = context.Pipe()
        writer.send(torch.ones(3, device="musa"))
        y = reader.recv()
    """,
}


@pytest.mark.parametrize("memory", ["shared", "strict"])
@pytest.mark.parametrize("end", ENDS)
def test_a_process_exits_without_messages(musa, end, memory):
    code = "\n".join(line.removeprefix("        ") for line in ENDS[end].splitlines())
    # In strict memory, the replacement of torch's CPU kernels would warn that it is slow.
    settings = {"MUSA_EMULATOR_MEMORY": memory, "TORCH_MUSA_FALLBACK": "allow"}
    # New interpreters for one memory mode are enough to cover the differences from a fork.
    done = run_python("-c", code, **settings) if memory == "shared" else run_forked(code, **settings)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_message_at_the_exit_would_be_detected(musa):
    done = run_forked("import torch; x = torch.ones(1, device='musa'); raise SystemExit('noise')")
    assert done.returncode == 1
    assert done.stderr != ""


_SENDER = """
import sys
import torch
from torch import multiprocessing


def keep(queue, kept, end):
    tensor = queue.get()
    kept.set()
    end.wait(60)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue, kept, end = context.Queue(), context.Event(), context.Event()
    receiver = context.Process(target=keep, args=(queue, kept, end), daemon=False)
    receiver.start()
    queue.put(torch.ones(4, device="musa"))
    assert kept.wait(60)
    if sys.argv[1] == "orderly":
        end.set()
        receiver.join()
    else:
        import atexit
        atexit.register(end.set)  # runs after the report, which was registered later
        import musa_runtime.processes as processes
        atexit.unregister(processes._report_at_exit)
        atexit.register(processes._report_at_exit)
"""


def test_an_exit_that_takes_memory_from_receivers_gives_a_warning(musa, tmp_path):
    script = tmp_path / "sender.py"
    script.write_text(_SENDER)
    done = run_python(str(script), "early")
    assert done.returncode == 0, done.stderr
    assert "others still hold 1 shared musa tensor(s)" in done.stderr
    assert "clone()" in done.stderr
    # If operands are copied, the first use of an operator would warn.
    done = run_python(str(script), "orderly", TORCH_MUSA_FALLBACK="allow")
    assert (done.returncode, done.stderr) == (0, "")


# ---- forks -----------------------------------------------------------------------------------------------

_FORK = """
import os, sys, torch
from torch import multiprocessing
x = torch.ones(4, device="musa")
storage = x.untyped_storage()
event = torch.musa.Event(interprocess=True)
event.record()
handle = event.ipc_handle()
from multiprocessing.reduction import ForkingPickler
message = bytes(ForkingPickler.dumps(x))
import pickle, musa_runtime.errors as errors
ENTRIES = {
    "a new tensor": lambda: torch.ones(1, device="musa"),
    "a copy to the device": lambda: torch.ones(1).to("musa"),
    "init": lambda: torch.musa.init(),
    "set_device": lambda: torch.musa.set_device(0),
    "current_device": lambda: torch.musa.current_device(),
    "synchronize": lambda: torch.musa.synchronize(),
    "a stream": lambda: torch.musa.Stream(),
    "current_stream": lambda: torch.musa.current_stream(),
    "an event": lambda: torch.musa.Event(),
    "an interprocess event": lambda: torch.musa.Event(interprocess=True),
    "an event's handle": lambda: torch.musa.Event.from_ipc_handle(0, handle),
    "properties": lambda: torch.musa.get_device_properties(0),
    "random state": lambda: torch.musa.get_rng_state(),
    "memory": lambda: torch.musa.mem_get_info(),
    "sharing": lambda: ForkingPickler.dumps(x),
    "sharing a storage": lambda: ForkingPickler.dumps(storage),
    "receiving": lambda: pickle.loads(message),
    "unpickling": lambda: pickle.loads(pickle.dumps(torch.ones(1))).to("musa"),
}
child = os.fork()
if child == 0:
    bad = 0
    for name, entry in ENTRIES.items():
        try:
            entry()
            print("worked:", name)
        except Exception as error:
            named = isinstance(error, errors.ForkError) or type(error) is RuntimeError
            if not named or "fork" not in str(error) or "spawn" not in str(error):
                print(name, type(error).__name__, error)
    assert torch.musa._is_in_bad_fork()
    torch.manual_seed(1)
    print(float((torch.ones(100, 100) @ torch.ones(100, 100)).sum()), torch.rand(1).shape)
    y = torch.ones(3, requires_grad=True)
    (y * 2).sum().backward()
    print(y.grad.tolist())
    torch.musa.ipc_collect()
    torch.musa.empty_cache()
    del x, storage, event
    sys.stdout.flush()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0
assert pickle.loads(message).tolist() == [1, 1, 1, 1]
"""


def test_every_use_after_a_fork_names_the_fix_and_the_cpu_still_works(musa):
    assert run_code(_FORK).splitlines() == ["1000000.0 torch.Size([1])", "[2.0, 2.0, 2.0]"]


_FORKED_RECEIVER = """
import torch
from torch import multiprocessing


def receive(queue, answers):
    try:
        queue.get()
        answers.put("worked")
    except Exception as error:
        answers.put(f"{type(error).__name__} {'spawn' in str(error)}")
    answers.put(queue.get().tolist())


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue, answers = context.Queue(), context.Queue()
    x = torch.ones(2, device="musa")
    process = context.Process(target=receive, args=(queue, answers))
    process.start()
    queue.put(x)
    queue.put(torch.arange(3.0))
    print(answers.get(timeout=60))
    print(answers.get(timeout=60))
    process.join()
    print(process.exitcode, x.tolist())
"""


def test_a_forked_receiver_gets_an_error_about_spawn_and_receives_cpu_tensors(musa):
    assert run_code(_FORKED_RECEIVER).splitlines() == ["ForkError True", "[0.0, 1.0, 2.0]", "0 [1.0, 1.0]"]


_FORKED_BEFORE_USE = """
import os, pickle, torch
from multiprocessing.reduction import ForkingPickler
if os.fork() == 0:
    x = torch.ones(2, device="musa")
    print(pickle.loads(bytes(ForkingPickler.dumps(x))).tolist(), flush=True)
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_a_process_forked_before_the_first_use_can_share(musa):
    assert run_code(_FORKED_BEFORE_USE).split() == ["[1.0,", "1.0]"]


def test_the_exit_of_a_forked_child_releases_nothing_of_its_parent(musa):
    code = """
        import os, pickle, torch
        from multiprocessing.reduction import ForkingPickler
        from musa_runtime._load import extension
        x = torch.ones(4, device="musa")
        message = bytes(ForkingPickler.dumps(x))
        del x
        if os.fork() == 0:
            raise SystemExit(0)
        assert os.wait()[1] == 0
        torch.musa.ipc_collect()
        assert extension().ipc_usage()["limbo"] == 1
        print(pickle.loads(message).tolist())
    """
    assert run_code(code).strip() == "[1.0, 1.0, 1.0, 1.0]"


# ---- kills -----------------------------------------------------------------------------------------------

_SHARERS = """
import sys, time
import torch
from torch import multiprocessing
from tests.harness import peers


if __name__ == "__main__":
    peer = peers.Peer()
    x = torch.ones(1 << 20, device="musa")
    event = torch.musa.Event(interprocess=True)
    event.record()
    peer.call(peers.keep, "x", [x, event])
    {extra}
    print(peer.pid, flush=True)
    time.sleep(100)
"""


def _left_behind(temporary, pids):
    """Returns our remaining temporary files, and the processes' remaining shared memory."""
    marks = ("musa", "torch")
    files = [path for path in temporary.iterdir() if any(mark in path.name for mark in marks)]
    # Other tests use this folder at the same time. Names of Python's own semaphores contain no process id.
    shared = pathlib.Path("/dev/shm").iterdir()
    left = files + [path for path in shared if any(str(pid) in path.name for pid in pids)]
    return {path.name for path in left}


def _kill_sharers(tmp_path, victims, extra=""):
    """Starts a sender and a receiver, kills `victims`, waits for the rest; returns the remaining names."""
    script = tmp_path / "sharers.py"
    script.write_text(_SHARERS.replace("{extra}", extra))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]),
        TMPDIR=str(temporary),
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment) as sender:
        receiver = int(sender.stdout.readline())
        descriptors = pathlib.Path(f"/proc/{sender.pid}/fd").iterdir()
        assert any("torch_musa-shared" in os.readlink(path) for path in descriptors), "nothing was shared"
        for victim in victims:
            os.kill({"sender": sender.pid, "receiver": receiver}[victim], signal.SIGKILL)
        if "sender" not in victims:
            sender.kill()
    _await_end(receiver)
    # multiprocessing's resource tracker unlinks its files a moment later.
    deadline = time.monotonic() + 5
    while (left := _left_behind(temporary, (sender.pid, receiver))) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def _await_end(pid):
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{pid}"), "the receiver did not end"


@pytest.mark.parametrize(
    "victims",
    [("sender",), ("receiver", "sender"), ("sender", "receiver")],
    ids=lambda names: " then ".join(names),
)
def test_killed_processes_leave_nothing_behind(musa, tmp_path, victims):
    assert _kill_sharers(tmp_path, victims) == set()


def test_remaining_files_would_be_detected(musa, tmp_path):
    extra = (
        "import os, tempfile; shared = open(f'/dev/shm/known-bad-{os.getpid()}', 'w')\n"
        "    tempfile.mkdtemp(prefix='musa-known-bad-')"
    )
    try:
        left = sorted(_kill_sharers(tmp_path, ("sender",), extra))
        assert [name.rpartition("-")[0] for name in left] == ["known-bad", "musa-known-bad"]
    finally:
        for name in left:
            pathlib.Path("/dev/shm", name).unlink(missing_ok=True)


def test_the_device_works_after_all_that(musa):
    assert torch.ones(2, device="musa").sum().item() == 2
