# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The wheel of a pack over torch's stable ABI, built with this torch, serves calls with another minor.

A complete run only (--full). `MUSA_TEST_OTHER_TORCH` names Pythons of environments in which this tree's
musa-runtime and torch-musa are built for other minors, separated as in PATH; by default those that `dev.py
matrix` made. The result is recorded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.harness import records
from tests.plugins.packs import build_wheel

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "examples" / "stable_op_pack"

pytestmark = [pytest.mark.once, pytest.mark.full]

PROGRAM = """
import json, platform, sys
import torch
x = torch.tensor([[-1.5, 2.0], [0.0, 3.5]])
y = x.to("musa").requires_grad_()
torch.relu(y).sum().backward()
assert torch.equal(torch.relu(y).cpu(), torch.relu(x)) and torch.equal(y.grad.cpu(), (x > 0).float())
assert torch.relu(torch.tensor([-1, 2], device="musa")).tolist() == [0, 2]  # the predicate declines it
assert torch.ops.musa_stable_demo.scale_shift(y.detach(), 2.0, 1.0).tolist() == (x * 2 + 1).tolist()
def calls(op):
    offers = torch.musa.ops.explain(op)["candidates"]
    return {offer["provider"]: offer["calls"] for offer in offers}["stable_demo"]
(loaded,) = {line.split()[-1] for line in open("/proc/self/maps") if "libmusa_stable_demo_pack" in line}
calls = {op: calls(op) for op in ("aten::relu", "musa_stable_demo::scale_shift")}
print(json.dumps(
    {"torch": torch.__version__, "python": platform.python_version(), "calls": calls, "library": loaded}))
"""


def other_pythons() -> list[Path]:
    named = os.environ.get("MUSA_TEST_OTHER_TORCH")
    if named:
        return [Path(path) for path in named.split(os.pathsep)]
    return sorted((ROOT / "build" / "matrix").glob("*/tree/.venv/bin/python"))


def run(python: Path, folder: Path) -> dict:
    """Runs the program with the packages of an environment and the unpacked wheel."""
    # The other environments have no packs, so only this one is loaded in each.
    variables = {"PYTHONPATH": str(folder), "TORCH_MUSA_DISABLE_PACKS": "amp,distributed,mudnn,ported"}
    done = subprocess.run(
        [python, "-c", PROGRAM], env={**os.environ, **variables}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{python}:\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


def minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_one_wheel_serves_two_minors_of_torch(tmp_path: Path) -> None:
    pythons = other_pythons()
    if not pythons:
        pytest.skip("no environment with another torch: python3 tools/dev.py matrix --torch X.Y makes one")
    wheel = build_wheel(SOURCES, tmp_path)
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    library = tmp_path / "unpacked" / "musa_stable_demo_pack" / "lib" / "libmusa_stable_demo_pack.so"
    runs = [run(python, tmp_path / "unpacked") for python in (Path(sys.executable), *pythons)]
    assert len({minor(entry["torch"]) for entry in runs}) > 1, runs
    for entry in runs:
        assert Path(entry.pop("library")).resolve() == library.resolve()
        assert entry["calls"] == {"aten::relu": 2, "musa_stable_demo::scale_shift": 1}, entry
    served = ", ".join(entry["torch"] for entry in runs)
    records.write(
        "stable_pack",
        "pytest --full tests/plugins/test_stable_pack_with_other_torch.py",
        f"a wheel built with torch {runs[0]['torch']} serves calls with {served}",
        runs=runs,
    )
