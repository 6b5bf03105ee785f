# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Groups, works and refused calls: see groups.py."""

from __future__ import annotations

import inspect

import pytest

from tests.harness.subprocesses import run_python
from tests.musa_distributed import collectives, groups

CASES = [
    function
    for name, function in vars(groups).items()
    if inspect.isfunction(function)
    and function.__module__ == groups.__name__
    and name not in ("world", "backend")
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_in_ranks(ranks, case):
    ranks.run(case)


def test_a_wrong_result_would_be_noticed():
    import torch

    ours, theirs = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])
    with pytest.raises(AssertionError, match="all_reduce"):
        collectives.check_numbers(ours, theirs, "all_reduce")
    with pytest.raises(AssertionError, match="broadcast"):
        collectives.check_bytes(ours, collectives.as_bytes(theirs), "broadcast")
    invalid, valid = torch.tensor([0, 2], dtype=torch.uint8).view(torch.bool), torch.tensor([False, True])
    assert torch.equal(invalid, valid)
    with pytest.raises(AssertionError, match="all_reduce"):
        collectives.check_numbers(invalid, collectives.as_numbers(valid), "all_reduce")


MESH = """
import os, torch
from torch.distributed.device_mesh import init_device_mesh
assert not torch.musa.is_initialized()
mesh = init_device_mesh("musa", (2,))
x = torch.ones(1, device="musa")
torch.distributed.all_reduce(x)
# One write, because the ranks share standard output.
print(f"{torch.musa.current_device()} {x.item()}\\n", end="", flush=True)
torch.distributed.destroy_process_group()
"""


def test_a_mesh_chooses_the_device_of_each_rank_of_a_launcher(tmp_path):
    # init_device_mesh starts the process group first, and sets no device if the process has used one.
    program = tmp_path / "mesh.py"
    program.write_text(MESH)
    done = run_python("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(program))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "0 2.0", "1 2.0"]


def test_an_exception_of_a_rank_fails_the_test(two_ranks):
    with pytest.raises(AssertionError, match=r"rank 1:\n(.|\n)*ZeroDivisionError"):
        two_ranks.run(fails_on_the_second)


def fails_on_the_second() -> None:
    rank, _, _ = groups.world()
    if rank == 1:
        1 / 0  # noqa: B018
