# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A process ends cleanly, whatever the device was doing."""

import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_short_program_exits_with_status_zero(program):
    # Together, so that the machine is busy: an engine thread that is late to start is what aborts an exit.
    command = [sys.executable, "-c", f"import torch\n{program}"]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in running:
        _, stderr = process.communicate(timeout=120)
        assert process.returncode == 0, stderr
