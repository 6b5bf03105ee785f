# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runner of public scripts refuses wrong runs, and its list of scripts is complete."""

from __future__ import annotations

import subprocess

import pytest

from tests.musa_as_cuda import run_scripts, stand_in_data
from tests.musa_as_cuda.run_scripts import Outcome, Script

pytestmark = pytest.mark.once

GOOD = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.arange(4.0, device=device)
print("loss", (x * 2).sum().item())
"""
PROGRAMS = {
    "good.py": GOOD,
    "other_numbers.py": GOOD.replace("x * 2", "x * (3 if x.is_cuda else 2)"),
    "on_the_host.py": GOOD.replace('"cuda" if', '"cpu" if'),
    "raises.py": GOOD + "raise ValueError('of the script')\n",
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A git clone of a repository with the programs; returns it and its commit."""
    folder = tmp_path_factory.mktemp("clones") / "owner+name"
    (folder / "programs").mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (folder / "programs" / name).write_text(text)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "programs"]):
        subprocess.run([*git, *command], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return folder, done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("good.py", ""),
        ("other_numbers.py", "numbers differ by 0.5, more than 0.01"),
        ("on_the_host.py", "no kernel of musa was called"),
        ("raises.py", "exit status 1: ValueError: of the script (with torch alone on the CPU too)"),
    ],
)
def test_a_script_passes_only_with_like_numbers_from_kernels_of_musa(clone, tmp_path, program, why):
    folder, commit = clone
    script = Script("a", "owner/name", commit, f"programs/{program}", values=r"loss ([\d.]+)", tolerance=0.01)
    outcome = run_scripts.try_script(script, folder, tmp_path)
    assert (outcome.status, outcome.why) == ("failed" if why else "passed", why)
    assert bool(outcome.calls) == (program != "on_the_host.py")
    if not why:
        assert outcome.values == 1 and outcome.last == [12.0, 12.0]


def test_a_script_is_written_as_it_is_in_the_commit(clone, tmp_path):
    folder, commit = clone
    (folder / "programs" / "good.py").write_text("changed since")
    try:
        run_scripts.export(Script("a", "owner/name", commit, "programs/good.py"), folder, tmp_path)
    finally:
        (folder / "programs" / "good.py").write_text(GOOD)
    assert (tmp_path / "programs" / "good.py").read_text() == GOOD


@pytest.mark.parametrize(
    ("cpu", "musa", "complaint"),
    [
        ("loss 1.0", "loss 1.005", ""),
        ("loss 1.0", "loss 1.02", "numbers differ"),
        ("loss 1.0", "loss nan", "numbers differ"),
        ("loss 1.0\nloss 2.0", "loss 1.0", "1 numbers were printed, but 2"),
        ("", "", "0 numbers were printed"),
    ],
)
def test_different_numbers_are_noticed(cpu, musa, complaint):
    script = Script("a", "owner/name", "", "x.py", values=r"loss ([\d.]+|nan)", tolerance=0.01)
    found = run_scripts.compare(script, Outcome("a", "", "", "", [], ""), cpu, musa)
    assert found.startswith(complaint) and bool(found) == bool(complaint)


def complaints(scripts: list[Script]) -> list[str]:
    found = []
    for script in scripts:
        if bool(script.values) == bool(script.no_comparison):
            found.append(f"{script.name}: either values or no_comparison")
        if len(script.commit) != 40:
            found.append(f"{script.name}: no commit")
        found += [f"{script.name}: {data}" for data in script.data if not hasattr(stand_in_data, data)]
    return found


def test_the_list_is_complete():
    scripts = run_scripts.listed()
    assert complaints(scripts) == [] and len({script.name for script in scripts}) == len(scripts) > 20
    assert len(complaints([Script("a", "owner/name", "main", "x.py", data=["absent"])])) == 3
