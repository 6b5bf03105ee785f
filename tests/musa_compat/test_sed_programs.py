# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Programs for CUDA run on musa after the command `sed` of docs/guide/cuda_programs.md, without musa-as-cuda.

The programs are written as PyTorch's tutorials and examples are. The page does not require musa-compat, so
the replaced programs must not need its names.
"""

from __future__ import annotations

import functools
import re
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_forked, run_python
from workspace import ROOT

pytestmark = pytest.mark.once

PROGRAMS = Path(__file__).with_name("sed_programs")

PAGES = [ROOT / "docs" / "guide" / "cuda_programs.md", ROOT / "docs" / "zh" / "guide" / "cuda_programs.md"]
# Names that only musa-compat adds.
OF_COMPAT = re.compile(r"musa_(?:time|memory_usage)|musagraphs|from torch_musa|import torch_musa")
# Programs that do not run, with the error and what users write instead (docs/guide/cuda_programs.md).
REFUSED = {
    # nn.DataParallel calls functions of torch's CUDA builds: docs/upstream/data_parallel.md
    "data_parallel": (r"torch\._C' has no attribute '_scatter'", "torch.musa.parallel.DataParallel"),
}
# They start processes that import the main module.
SPAWNING = {"ddp_tutorial", "fsdp2_tutorial"}


def command(page: Path) -> list[str]:
    """The command of a page, without the names of its files."""
    [found] = re.findall(r"^sed -e (?:.*\\\n)*.*$", page.read_text(), re.MULTILINE)
    words = shlex.split(found.replace("\\\n", ""))
    assert words[-3:] == ["train.py", ">", "train_musa.py"]
    return words[:-3]


@functools.cache
def replaced(name: str) -> str:
    words = [*command(PAGES[0]), str(PROGRAMS / f"{name}.py")]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


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
    assert {*REFUSED, *SPAWNING} <= set(texts)


def test_both_pages_have_the_same_command():
    assert command(PAGES[0]) == command(PAGES[1])


def test_the_replaced_programs_do_not_need_musa_compat():
    assert [name for name in names() if OF_COMPAT.search(replaced(name))] == []
    # Without the second line of the command, they would: the programs use such names.
    plain = "\n".join((PROGRAMS / f"{name}.py").read_text() for name in names()).replace("cuda", "musa")
    assert {"musa_time", "musagraphs"} <= set(OF_COMPAT.findall(plain))
