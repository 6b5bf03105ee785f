# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa top`: devices, processes, and the operators of processes that publish them."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness.subprocesses import run_module, run_python
from torch_musa import live_operators, top

pytestmark = pytest.mark.once

PROGRAM = """
import sys, torch
x = torch.ones(8 << 20, device="musa:1")
for _ in range(7):
    torch.special.airy_ai(torch.ones(4, device="musa"))
print("ready", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def program(code: str = PROGRAM, **variables: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def state(**variables: str) -> dict[str, Any]:
    done = run_module("torch_musa", "top", "--json", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def machine() -> dict[str, str]:
    """The environment of a machine that no other test uses."""
    return {"MUSA_EMULATOR_MACHINE": f"top-{os.getpid()}", "MUSA_EMULATOR_MEMORY_LIMIT": "256M"}


def test_devices_processes_and_operators_of_another_process_are_shown(machine):
    with program(TORCH_MUSA_TOP="1", **machine) as process:
        found = state(**machine)
        assert found["problems"] == [] and found["driver"]
        assert [device["index"] for device in found["devices"]] == [0, 1]
        assert found["devices"][1]["memory_used"] >= 32 << 20
        assert found["devices"][1]["memory_total"] == 256 << 20
        assert found["devices"][1]["temperature"] is None
        rows = {row["device"]: row for row in found["processes"]}
        assert rows[1]["pid"] == process.pid and rows[1]["memory"] >= 32 << 20
        (shown,) = [entry for entry in found["programs"] if entry["pid"] == process.pid]
        calls = {row["op"]: row["calls"] for row in shown["operators"]}
        assert calls["aten::special_airy_ai"] == 7
        assert shown["command"].startswith(sys.executable)
        text = run_module("torch_musa", "top", **machine).stdout
        assert re.search(rf"^{process.pid} +1 +\d+ MiB ", text, re.MULTILINE)
        assert re.search(r"^  aten::special_airy_ai +\S+ +7$", text, re.MULTILINE)
        process.kill()
        process.wait()
        found = state(**machine)
        assert found["processes"] == [] and process.pid not in {entry["pid"] for entry in found["programs"]}
        assert found["devices"][1]["memory_used"] == 0


def test_a_process_without_the_variable_publishes_nothing(machine):
    with program(**machine) as process:
        found = state(**machine)
        assert {row["pid"] for row in found["processes"]} == {process.pid}
        assert process.pid not in {entry["pid"] for entry in found["programs"]}


def test_a_forked_child_does_not_keep_the_name_of_its_parent(machine):
    code = PROGRAM.replace(
        "print(", "import os, time\nif os.fork() == 0:\n    sys.stdout.close(); time.sleep(60)\nprint("
    )
    with program(code, TORCH_MUSA_TOP="1", **machine) as process:
        child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        try:
            process.kill()
            process.wait()
            assert f"torch_musa/{os.getuid()}/{process.pid}" not in Path("/proc/net/unix").read_text()
        finally:
            os.kill(child, 9)


def test_a_setting_that_is_no_switch_is_refused_at_the_first_use():
    code = "import torch; print('imported', flush=True); torch.ones(1, device='musa')"
    done = run_python("-c", code, TORCH_MUSA_TOP="yes")
    assert done.stdout == "imported\n" and "TORCH_MUSA_TOP='yes' is invalid" in done.stderr
    assert "was queued" not in done.stderr


def test_without_an_sdk_the_cause_and_the_fix_are_printed():
    done = run_module("torch_musa", "top", MUSA_HOME="/nonexistent/musa", LD_LIBRARY_PATH=None)
    assert done.returncode == 1
    assert "libmtml.so was not found" in done.stdout and "Fix:" in done.stdout and "no devices" in done.stdout


def test_a_driver_whose_program_lists_no_processes_is_named(machine, tmp_path):
    from musa_runtime import sdk

    home = sdk.resolve().home
    assert home is not None
    (tmp_path / "lib").symlink_to(f"{home}/lib")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mthreads-gmi").write_text("#!/bin/sh\necho not supported\nexit 3\n")
    (tmp_path / "bin" / "mthreads-gmi").chmod(0o755)
    found = state(MUSA_HOME=str(tmp_path), **machine)
    assert len(found["devices"]) == 2
    assert any("lists no processes: not supported" in problem for problem in found["problems"])


def test_a_terminal_is_repainted_until_it_is_interrupted(machine):
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "torch_musa", "top", "--interval", "0.1"]
    with subprocess.Popen(command, env={**os.environ, **machine}, stdout=child, stderr=child) as process:
        os.close(child)
        text = b""
        while text.count(b"\x1b[H\x1b[J") < 3:
            assert select.select([parent], [], [], 60)[0], text
            text += os.read(parent, 1 << 16)
        process.send_signal(2)
        assert process.wait(60) == 0
    os.close(parent)
    assert b"torch_musa top" in text and b"Traceback" not in text


# ---- rates -----------------------------------------------------------------------------------------------


def with_calls(*calls: int) -> dict[str, Any]:
    names = ("aten::mm", "aten::add.Tensor", "aten::relu")
    operators = [
        {"op": name, "provider": "one", "calls": number} for name, number in zip(names, calls, strict=True)
    ]
    return {
        "driver": "4.3.1",
        "devices": [],
        "processes": [],
        "problems": [],
        "programs": [{"pid": 7, "command": "python x.py", "operators": operators}],
    }


def test_operators_are_in_the_order_of_their_calls_per_second():
    lines = top.render(with_calls(100, 50, 10), with_calls(100, 10, 0), 2.0).splitlines()
    rows = [line.split() for line in lines if line.startswith("  aten::")]
    assert rows == [
        ["aten::add.Tensor", "one", "50", "20"],
        ["aten::relu", "one", "10", "5"],
        ["aten::mm", "one", "100", "0"],
    ]
    assert "calls/s" not in top.render(with_calls(1, 1, 1), None, 0.0)


def test_a_long_list_of_operators_is_cut_with_their_number():
    many = with_calls(0, 0, 0)
    many["programs"][0]["operators"] = [
        {"op": f"aten::op{index:02d}", "provider": "one", "calls": 99 - index} for index in range(30)
    ]
    text = top.render(many, None, 0.0)
    assert "aten::op11" in text and "aten::op12" not in text and "  and 18 more" in text


def test_a_process_that_does_not_answer_is_named():
    silent = {**with_calls(0, 0, 0), "programs": [{"pid": 9, "problem": "no answer in 2 s"}]}
    assert "process 9: no answer in 2 s" in top.render(silent, None, 0.0)


# ---- the socket ------------------------------------------------------------------------------------------


_numbers = itertools.count(1 << 30)


@contextlib.contextmanager
def served(monkeypatch, user: int) -> Iterator[int]:
    """A listener under the number of no process, whose peers appear to be of `user`."""
    number = next(_numbers)  # the name of the last listener is in use until its thread ends
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0torch_musa/{os.getuid()}/{number}")
    listener.listen()
    monkeypatch.setattr(live_operators, "_counts", lambda: {"pid": number})
    monkeypatch.setattr(live_operators, "_peer", lambda connection: (number, user))

    def serve() -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            live_operators._serve(listener)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield number
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def received(number: int) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(f"\0torch_musa/{os.getuid()}/{number}")
        return b"".join(iter(lambda: connection.recv(4096), b""))


def test_only_the_same_user_and_root_get_an_answer(monkeypatch):
    for user, answer in ((os.getuid(), True), (0, True), (os.getuid() + 1, False)):
        with served(monkeypatch, user) as number:
            assert bool(received(number)) == answer


def test_a_socket_with_the_name_of_another_process_is_not_believed():
    name = f"\0torch_musa/{os.getuid()}/{1 << 29}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        assert (1 << 29) not in {answer["pid"] for answer in live_operators.query()}


def test_a_stopped_process_is_reported(monkeypatch):
    monkeypatch.setattr(live_operators, "_SECONDS", 0.05)
    name = f"\0torch_musa/{os.getuid()}/{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        (answer,) = [answer for answer in live_operators.query() if answer["pid"] == os.getpid()]
        assert "may be stopped" in answer["problem"]
