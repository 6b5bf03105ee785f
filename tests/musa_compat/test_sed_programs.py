# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Programs for CUDA run on musa after "cuda" was replaced by "musa" in their text, without musa-as-cuda.

The programs are written as PyTorch's tutorials and examples are. Only the lower-case word is replaced, unless
a further replacement is listed with its reason.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_forked, run_python

pytestmark = pytest.mark.once

PROGRAMS = Path(__file__).with_name("sed_programs")

# Replacements that a program needs besides cuda -> musa, and why the name cannot be an alias.
FURTHER = {
    # torch raises for "nccl" in a build without NCCL, before a backend could be chosen.
    "ddp_tutorial": {"nccl": "mccl"},
    "fsdp2_tutorial": {"nccl": "mccl"},
    # ProfilerActivity.CUDA is an activity of torch that records nothing here.
    "profiler_recipe": {"ProfilerActivity.CUDA": "ProfilerActivity.MUSA"},
}
# Programs that do not run, with the error and what users write instead (docs/guide/cuda_programs.md).
REFUSED = {
    # nn.DataParallel calls functions of torch's CUDA builds: docs/upstream/data_parallel.md
    "data_parallel": (r"torch\._C' has no attribute '_scatter'", "torch.musa.parallel.DataParallel"),
}
# They start processes that import the main module.
SPAWNING = {"ddp_tutorial", "fsdp2_tutorial"}


def replaced(name: str) -> str:
    text = (PROGRAMS / f"{name}.py").read_text().replace("cuda", "musa")
    for before, after in FURTHER.get(name, {}).items():
        assert before in text
        text = text.replace(before, after)
    return text


def names() -> list[str]:
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def run(name: str, folder: Path):
    path = folder / f"{name}.py"
    path.write_text(replaced(name))
    if name in SPAWNING:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        return run_python("-W", "ignore", str(path), str(port), TORCH_MUSA_DISABLE_PACKS="as_cuda")
    code = (
        "import runpy, sys, warnings\nwarnings.simplefilter('ignore')\n"
        f"sys.argv = [{str(path)!r}, {str(folder)!r}]\n"
        f"runpy.run_path({str(path)!r}, run_name='__main__')\n"
    )
    return run_forked(code)


@pytest.mark.parametrize(
    "name",
    [
        # Its C++ takes half a minute to compile.
        pytest.param(name, marks=pytest.mark.full) if name == "cpp_extension" else name
        for name in names()
        if name not in REFUSED
    ],
)
def test_it_runs_after_the_replacement(name, tmp_path):
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_until_the_listed_change(name, tmp_path):
    error, instead = REFUSED[name]
    done = run(name, tmp_path)
    assert done.returncode != 0 and re.search(error, done.stderr)
    path = tmp_path / "changed.py"
    path.write_text(replaced(name).replace("nn.DataParallel", instead))
    run_code = f"import runpy\nrunpy.run_path({str(path)!r}, run_name='__main__')\n"
    assert run_forked(run_code).stdout.splitlines()[-1] == "done"


def test_the_programs_say_cuda_and_not_musa():
    texts = {name: (PROGRAMS / f"{name}.py").read_text() for name in names()}
    assert len(texts) >= 26
    assert [
        name for name, text in texts.items() if "cuda" not in text or "musa" in text.partition('"""')[2]
    ] == []
    assert {*FURTHER, *REFUSED, *SPAWNING} <= set(texts)
