# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/packs/tutorial.md works as written: each file is written and each command runs in a clean environment
with wheels only.

A complete run only (--full). `MUSA_TEST_WHEELS` names the folder of the wheels, by default `dist` of this
tree, where `python3 tools/dev.py wheels --local` writes them. Commands and outputs are recorded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness import pages, records

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "packs" / "tutorial.md"
# Seconds that one block may take: one of them installs torch.
LIMIT = 900
# Variables of the tests that a reader does not set.
SETTINGS = re.compile(r"(MUSA|MUDNN|TORCH|PYTORCH|PYTHON|VIRTUAL_ENV)")

pytestmark = pytest.mark.once


def steps() -> list[tuple[str, str]]:
    """The files and commands of the page in order: the name of the file, or "" for commands, and the text."""
    found = []
    for block in pages.code_blocks(PAGE.read_text(encoding="utf-8")):
        file = pages.FILE.fullmatch(block.comment)
        assert file or (block.language == "bash" and not block.comment), f"{block.text} is neither"
        found.append((file[1] if file else "", block.text))
    return found


class Shell:
    """Runs blocks of commands in order, each with the directory and the variables of the previous one."""

    def __init__(self, directory: Path, state: Path) -> None:
        self.directory = directory
        self._state = state
        self._variables = {name: value for name, value in os.environ.items() if not SETTINGS.match(name)}
        # The reader's python3 is not that of the environment that runs the tests.
        own = str(Path(sys.executable).parent)
        path = [folder for folder in self._variables["PATH"].split(os.pathsep) if folder != own]
        self._variables["PATH"] = os.pathsep.join(path)

    def run(self, commands: str) -> tuple[int, str]:
        """The exit status and the output of the commands."""
        script = f"{commands}\nenv -0 >'{self._state}'\n"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.directory,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
        )
        if done.returncode == 0:
            lines = self._state.read_text().split("\0")
            self._variables = dict(line.split("=", 1) for line in lines if "=" in line)
            self.directory = Path(self._variables["PWD"])
        return done.returncode, done.stdout


def shortened(output: str, replaced: dict[str, str]) -> list[str]:
    """The lines of an output, without directories of this machine and without the progress of pip."""
    for path, name in replaced.items():
        output = output.replace(path, name)
    output = re.sub(r"(?:file|https?)://\S+", "…", output)
    output = re.sub(r"/\S*pip-[\w-]*/\S*", "…", output)
    progress = re.compile(
        r"Looking in|WARNING: Location|Processing |Requirement already|Collecting|Downloading|Using cached"
        r"|\[notice\]|\s*━|$"
    )
    return [line.rstrip() for line in output.splitlines() if not progress.match(line.strip())]


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_reader_can_follow_the_page(tmp_path: Path) -> None:
    wheels = Path(os.environ.get("MUSA_TEST_WHEELS") or ROOT / "dist")
    if not any(wheels.glob("torch_musa-*.whl")):
        pytest.skip(f"{wheels} has no wheels: python3 tools/dev.py wheels --local makes them")
    start = tmp_path / "start"
    start.mkdir()
    (start / "dist").symlink_to(wheels.resolve())
    shell = Shell(start, tmp_path / "variables")
    replaced = {str(start): "~", str(wheels.resolve()): "~/dist", str(Path.home()): "~"}
    done = []
    for file, text in steps():
        if file:
            pages.write_file(shell.directory, file, text)
            done.append({"file": file})
            continue
        begin = time.monotonic()
        status, output = shell.run(text)
        assert status == 0, f"{text}\nends with {status}:\n{output}"
        seconds = round(time.monotonic() - begin, 1)
        lines = shortened(output, replaced)
        done.append({"commands": text.splitlines(), "seconds": seconds, "output": lines})
    printed = [line for entry in done for line in entry.get("output", ())]
    # The page's statements about the output.
    assert "every check passed" in printed
    assert any(re.match(r"first +.*loaded", line) for line in printed), printed
    assert sum(1 for line in printed if re.match(r"\d+ passed", line)) == 4
    seconds = sum(entry.get("seconds", 0) for entry in done)
    summary = f"{len(done)} files and blocks of commands in {seconds:.0f} s"
    records.write("tutorial", "pytest --full tests/plugins/test_tutorial.py", summary, steps=done)


@pytest.mark.parametrize("own", [True, False])
def test_settings_of_a_project_above_do_not_reach_the_tests_of_the_pack(own: bool, tmp_path: Path) -> None:
    """A reader may follow the page in a clone, whose own settings need plugins of pytest."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--no-such-option'\n")
    text = dict(steps())["pyproject.toml"]
    if not own:
        text = text.replace("[tool.pytest.ini_options]", "[tool.other]")
    pages.write_file(tmp_path / "first-pack", "pyproject.toml", text)
    pages.write_file(tmp_path / "first-pack", "tests/test_nothing.py", "def test_nothing(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=tmp_path / "first-pack", capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == own, done.stdout + done.stderr
    assert ("--no-such-option" in done.stderr) != own


def test_a_shell_keeps_directory_and_variables_and_reports_failures(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "variables")
    assert shell.run("mkdir a; cd a; export MUSA_X=1")[0] == 0
    assert shell.run('echo "$MUSA_X $(basename "$PWD")"') == (0, "1 a\n")
    assert shell.run("echo no; false; echo yes") == (1, "no\n")
