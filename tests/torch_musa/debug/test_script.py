# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa compare`: unmodified scripts, their exit status, and programs of two ranks."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import skips
from tests.harness.subprocesses import run_module

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa")]

ROOT = Path(__file__).resolve().parents[3]

SCRIPT = """
import sys
import torch
from beside import scale

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU()).to("musa")
(model(torch.randn(2, 4, device="musa")) * scale).sum().backward()
print("arguments", sys.argv[1:], __name__)
"""
DEFECT = """
import torch
from tests.torch_musa.debug.planted import {kind}, planted
defect = planted("gelu", {kind}("gelu"))
defect.__enter__()
"""


@pytest.fixture
def compare(tmp_path):
    """Runs `compare` on a script in a folder of its own."""

    def run(code, *options, before=(), **environment):
        (tmp_path / "beside.py").write_text("scale = 2\n")
        (tmp_path / "script.py").write_text(code)
        arguments = ["--folder", str(tmp_path / "found"), *before, str(tmp_path / "script.py"), *options]
        return run_module("torch_musa", "compare", *arguments, **environment)

    return run


def test_a_right_script_runs_as_without_the_tool(compare, tmp_path):
    done = compare(SCRIPT, "--epochs", "3")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "arguments ['--epochs', '3'] __main__\n"
    assert "operators compared with the CPU, 0 differ" in done.stderr
    assert [path.name for path in (tmp_path / "found").iterdir()] == ["report.html"]


def test_a_difference_is_named_and_the_status_is_1(compare, tmp_path):
    done = compare(DEFECT.format(kind="wrong") + SCRIPT)
    assert done.returncode == 1 and done.stdout.startswith("arguments"), done.stderr
    assert "first: aten::gelu in Sequential.1 (forward" in done.stderr
    script = re.search(r"python (\S+reproduce\.py)", done.stderr)[1]
    assert Path(script).is_file() and str(tmp_path) in script
    assert "Sequential.1" in (tmp_path / "found" / "report.html").read_text()


def test_it_stops_on_request(compare):
    done = compare(DEFECT.format(kind="wrong") + SCRIPT, before=["--stop"])
    assert done.returncode == 1 and done.stdout == "" and "aten::gelu in Sequential.1" in done.stderr


def test_nan_is_searched_for_on_request(compare):
    done = compare(
        DEFECT.format(kind="with_nan") + SCRIPT, before=["--nonfinite", "nan", "--operators", "mm"]
    )
    assert done.returncode == 1
    assert "aten::gelu in Sequential.1 (forward" in done.stderr and "has nan in 1 of 16" in done.stderr


@pytest.mark.parametrize(
    ("code", "status"),
    [("import sys; sys.exit(7)", 7), ("raise SystemExit('why')", 1), ("raise KeyError('lost')", 1)],
)
def test_the_status_of_the_script_is_kept(compare, tmp_path, code, status):
    done = compare(code)
    assert done.returncode == status
    assert "why" in done.stderr or "KeyError: 'lost'" in done.stderr or status == 7
    assert (tmp_path / "found" / "report.html").is_file()


def test_a_module_and_a_missing_file(tmp_path):
    done = run_module("torch_musa", "compare", "--folder", str(tmp_path), "-m", "platform", "--terse")
    assert done.returncode == 0 and done.stdout.startswith("Linux"), done.stderr
    done = run_module("torch_musa", "compare", str(tmp_path / "nowhere.py"))
    assert done.returncode == 2 and "there is no file" in done.stderr and "Fix:" in done.stderr


# ---- two ranks

RANKS = """
import json, os, sys
import torch
import torch.distributed as dist
import torch.distributed.fsdp
from tests.torch_musa.debug.planted import planted, varying, with_nan, wrong
from tests.torch_musa.debug.programs import GPT, Training
from torch_musa import debug

rank = int(os.environ["RANK"])
torch.musa.set_device(rank)
dist.init_process_group("mccl")
model = torch.nn.parallel.DistributedDataParallel(GPT().to("musa"), bucket_cap_mb=0.01)
step = Training(model)
if len(sys.argv) == 1:  # under `compare`: rank 1 has the defect
    defect = planted("gelu_backward", wrong("gelu_backward"))
    if rank == 1:
        defect.__enter__()
    step()
else:
    found = {}
    with debug.compare(None) as comparison:
        step()
    found["right"] = len(comparison.differences)
    found["collectives"] = sorted({op for op, reason in comparison.not_compared if "collective" in reason})
    with planted("native_layer_norm", with_nan("native_layer_norm")), debug.track_nonfinite() as tracker:
        step()
    found["nan"] = tracker.first.operator, tracker.first.module
    step = Training(torch.nn.parallel.DistributedDataParallel(GPT().to("musa")))
    with planted("gelu_backward", varying("gelu_backward")):
        first = debug.check_determinism(step, restore=[step.model, step.optimizer]).first
    found["varying"] = first.cause, first.operator, first.module
    step = Training(torch.distributed.fsdp.fully_shard(GPT().to("musa")))
    with debug.compare(None) as comparison:
        step()
    found["right with FSDP2"] = len(comparison.differences)
    with planted("gelu", wrong("gelu")), debug.compare(None) as comparison:
        step()
    found["wrong with FSDP2"] = comparison.first.operator, comparison.first.module
    with open(f"{sys.argv[1]}/{rank}.json", "w") as file:
        json.dump(found, file)
dist.destroy_process_group()
"""


def torchrun(*arguments):
    skips.needs_devices(2)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    environment = {
        **os.environ,
        "MUSA_EMULATOR_DEVICES": "2",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [*command, "--local-addr=127.0.0.1", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        cwd=ROOT,
    )


@pytest.mark.slow
def test_ranks_of_torchrun_have_folders_of_their_own(tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    done = torchrun(
        "-m", "torch_musa", "compare", "--folder", str(tmp_path / "found"), str(tmp_path / "train.py")
    )
    assert done.returncode == 1, done.stderr
    name = "DistributedDataParallel.module.layers.1.mlp.1"
    assert f"first: aten::gelu_backward in {name} (backward" in done.stderr
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == ["rank0", "rank1"]
    saved = {rank: list((tmp_path / "found" / f"rank{rank}").glob("*/reproduce.py")) for rank in (0, 1)}
    assert saved[0] == [] and len(saved[1]) == 2
    assert all((tmp_path / "found" / f"rank{rank}" / "report.html").is_file() for rank in (0, 1))


@pytest.mark.slow
def test_nan_and_nondeterminism_are_found_in_two_ranks(tmp_path):
    (tmp_path / "train.py").write_text(RANKS)
    done = torchrun(str(tmp_path / "train.py"), str(tmp_path))
    assert done.returncode == 0, done.stderr
    name = "DistributedDataParallel.module.layers"
    for rank in (0, 1):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found["right"] == 0 and "c10d::allreduce_" in found["collectives"]
        assert found["nan"] == ["aten::native_layer_norm", f"{name}.0.ln1"]
        assert found["right with FSDP2"] == 0
        assert found["wrong with FSDP2"] == ["aten::gelu", "FSDPGPT.layers.0.mlp.1"]
        assert found["varying"] == ["operator", "aten::gelu_backward", f"{name}.1.mlp.1"]
