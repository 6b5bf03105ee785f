# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The allocator's history in the C++ API: trackers, and stacks that a user's recorder collects."""

import os
import subprocess
from pathlib import Path

import pytest
import torch

from tests.harness.subprocesses import run_code

MIB = 1 << 20
SOURCE = Path(__file__).parent / "cpp" / "trace_tracker.cpp"

# A tracker cannot be detached, so each test runs in a separate process.
pytestmark = pytest.mark.once

PREPARE = """
import ctypes, torch
torch.musa.init()
lib = ctypes.CDLL({path!r})
def counts():
    actions = ("segment_alloc", "alloc", "free_requested", "free_completed", "segment_free", "oom")
    return [lib.count(action.encode()) for action in actions]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The path of trace_tracker.cpp, compiled as a user would."""
    from musa_runtime import _C, config

    packages = Path(torch.__file__).parent
    runtime = Path(_C.__file__).parent
    path = tmp_path_factory.mktemp("trackers") / "libtrace_tracker.so"
    include = [runtime / "include", packages / "include", Path(config.musa_home()) / "include"]
    command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O1", "-shared", "-fPIC", "-o", path, SOURCE]
    command += [f"-I{folder}" for folder in include]
    command += [f"-L{runtime / 'lib'}", "-lmusa_runtime", f"-L{packages / 'lib'}", "-lc10"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(path)


def run(library, code):
    return run_code(PREPARE.format(path=library) + code)


def test_a_tracker_is_notified_of_all_events_without_a_recording(musa, library):
    code = f"""
torch.empty({MIB}, device="musa")
print(counts())
lib.attach()
torch.empty({30 * MIB}, dtype=torch.uint8, device="musa")
torch.musa.empty_cache()
print(counts())
try:
    torch.empty(2 * torch.musa.mem_get_info()[1], dtype=torch.uint8, device="musa")
except torch.OutOfMemoryError:
    print(counts()[-1])
if torch.musa.device_count() > 1:
    before = counts()[1]
    torch.empty(1, device="musa:1")
    print(counts()[1] - before)
else:
    print(1)
"""
    # The cache that is emptied also contains the block of the first line.
    assert run(library, code).splitlines() == ["[0, 0, 0, 0, 0, 0]", "[1, 1, 1, 1, 2, 0]", "1", "1"]


def test_a_custom_recorder_collects_the_stacks(musa, library):
    # alloc has the first stack, free_requested and free_completed the second. The segment existed before.
    code = """
kept = torch.empty(1, device="musa")
print(lib.record_one())
"""
    assert run(library, code) == "3\n"
