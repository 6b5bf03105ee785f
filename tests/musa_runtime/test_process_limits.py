# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Limits and forks of a process that prevent the use of the device are named as the cause."""

from __future__ import annotations

import pytest

from tests.harness.subprocesses import run_forked, run_python


def test_a_limit_on_virtual_memory_is_named(musa):
    # A program that holds torch has mapped a few GiB; the emulated devices need more than the rest.
    done = run_python(
        "-c",
        """
import resource, torch
with open("/proc/self/statm") as file:
    mapped = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (mapped + (256 << 20),) * 2)
print(torch.musa.is_available())
try:
    torch.ones(2, device="musa")
except RuntimeError as error:
    print(type(error).__name__, error)
""",
        MUSA_EMULATOR_MEMORY_LIMIT="8G",
    )
    start = "False\nNoDeviceError no musa device can be used: "
    assert done.stdout.startswith(start), done.stdout + done.stderr
    assert "musaErrorMemoryAllocation" in done.stdout
    assert "ulimit -v" in done.stdout
    assert "driver" not in done.stdout


def test_a_program_without_free_file_descriptors_ends_cleanly(musa):
    done = run_python(
        "-c",
        """
import resource, torch
torch.ones(4, device="musa", requires_grad=True).sum().backward()
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
""",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_limit_on_the_size_of_files_is_named_when_memory_is_shared(musa):
    done = run_forked("""
import resource, signal, torch
import torch.multiprocessing
from multiprocessing.reduction import ForkingPickler
x = torch.ones(1 << 20, device="musa")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    ForkingPickler.dumps(x)
except Exception as error:
    print(type(error).__name__, error)
""")
    assert done.stdout.startswith("SharingError"), done.stdout + done.stderr
    assert "ulimit -f" in done.stdout


COUNTS = ("torch.musa.is_available()", "torch.accelerator.device_count()", "torch.zeros(1, device='musa')")


@pytest.mark.parametrize("count", COUNTS)
def test_a_child_of_a_process_that_counted_its_devices_raises_the_error_of_forks(musa, count):
    done = run_forked(f"""
import os, torch
{count}
child = os.fork()
if child == 0:
    for use in (torch.musa.init, lambda: torch.ones(2, device="musa")):
        try:
            use()
            print("worked", flush=True)
        except RuntimeError as error:
            print(type(error).__name__, "spawn" in str(error), flush=True)
    torch.manual_seed(1)  # seeds no device
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(torch.ones(2, device="musa").tolist())
""")
    assert done.stdout == "ForkError True\nForkError True\n[1.0, 1.0]\n", done.stdout + done.stderr


def test_a_child_of_a_process_that_only_imported_torch_uses_the_device(musa):
    done = run_forked("""
import os, torch
child = os.fork()
if child == 0:
    print(torch.ones(2, device="musa").tolist(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")
    assert done.stdout == "[1.0, 1.0]\n", done.stdout + done.stderr


CHANGED = """
import os, torch, warnings
warnings.simplefilter("always")
{first}
os.environ["MUSA_VISIBLE_DEVICES"] = "0"
with warnings.catch_warnings(record=True) as caught:
    torch.ones(2, device="musa")
print([str(each.message).split(". ")[0] for each in caught], torch.musa.device_count())
"""


def test_visible_devices_that_change_after_the_count_are_reported(two_devices):
    late = run_forked(CHANGED.format(first="torch.musa.device_count()"), MUSA_VISIBLE_DEVICES=None)
    text = "MUSA_VISIBLE_DEVICES='0', but when the devices were counted MUSA_VISIBLE_DEVICES is not set"
    assert late.stdout.startswith(f'["{text}"] '), late.stdout + late.stderr
    early = run_forked(CHANGED.format(first=""), MUSA_VISIBLE_DEVICES=None)
    assert early.stdout == "[] 1\n", early.stdout + early.stderr
