# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/debugging.md: its Python blocks run one after the other, and so do its commands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_module

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa")]

PAGE = (Path(__file__).parents[3] / "docs" / "debugging.md").read_text()


def blocks(language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for name, text in fenced if name == language]


def commands():
    """Arguments of each `python -m torch_musa` on the page, in blocks and in the text."""
    lines = [line for block in blocks("") for line in block.splitlines()]
    lines += re.findall(r"`(python [^`]+)`", PAGE)
    return [line.split()[3:] for line in lines if line.startswith("python -m torch_musa ")]


def test_the_programs_and_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "\n".join(blocks("python"))
    assert len(blocks("python")) == 7
    Path("train.py").write_text(blocks("python")[0] + "\nstep()\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "operators compared, 0 differ" in done.stdout
    assert "operators are the same" in done.stdout and "the same as on the CPU" in done.stdout
    assert "<h1>step</h1>" in Path("report.html").read_text()
    assert [words[0] for words in commands()] == ["compare", "replay", "compare"]
    for words in commands():
        files = [str(file) for word in words for file in sorted(tmp_path.glob(word)) if "*" in word]
        arguments = [word for word in words if "*" not in word] + files
        # In a fork, which has this process's working directory.
        ran = run_module("torch_musa", *arguments)
        assert ran.returncode == 0, (words, ran.stderr)
    assert Path("musa_debug/report.html").is_file()


def test_the_defaults_that_the_page_names_exist():
    from torch_musa import debug

    assert len(debug.tolerances.DEFAULTS) > 5
    for name in re.findall(r"`debug\.(\w+)", PAGE):
        assert hasattr(debug, name), name
