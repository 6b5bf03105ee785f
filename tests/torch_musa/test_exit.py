# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A process ends cleanly, also while work on the device is pending."""

import os
import subprocess
import sys

import pytest

from tests.harness.forkserver import ForkServer

pytestmark = pytest.mark.once

BACKWARD = "x = torch.ones(4, device={device!r}, requires_grad=True); (x * 2).sum().backward()"
PROGRAMS = {
    "backward of musa tensors": BACKWARD.format(device="musa"),
    "backward of cpu tensors": BACKWARD.format(device="cpu"),
    "work in flight": """
s = torch.musa.Stream()
with torch.musa.stream(s):
    x = torch.ones(1 << 20, device="musa") * 2
""",
    "a live event and a pinned block": """
e = torch.musa.Event()
e.record()
p = torch.empty(8, pin_memory=True)
""",
}


@pytest.fixture(scope="module")
def server():
    server = ForkServer()
    yield server
    server.close()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_short_program_exits_with_status_zero(program, server):
    # Together, so that the machine is busy, because a late start of an engine thread aborts an exit.
    program = f"import torch\n{program}"
    kept = {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"}
    command = [sys.executable, "-c", program]
    interpreter = subprocess.Popen(command, env=kept, stderr=subprocess.PIPE, text=True)
    for process in [server.start(f"hide_torch()\n{program}", kept) for _ in range(3)]:
        done = process.wait(120)
        assert done.returncode == 0, done.stderr
    _, stderr = interpreter.communicate(timeout=120)
    assert interpreter.returncode == 0, stderr
