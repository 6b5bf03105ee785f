# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The README's program runs, CI runs its commands, it fits on one screen and links to the
guide, and the page of the wheels has every package."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import pages
from tests.harness.device import DEVICE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GUIDE = ROOT / "docs" / "guide"


def code_blocks(text: str, language: str) -> list[str]:
    return [block.text for block in pages.code_blocks(text) if block.language == language]


def test_the_first_program_runs():
    [program] = code_blocks(README, "python")
    if DEVICE != "musa":
        pytest.skip("the README's program is about the device musa; MUSA_TEST_DEVICE names another")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "2.4000, 4.6000" in result.stdout and "musa:0" in result.stdout


@pytest.mark.once
def test_ci_runs_the_commands_that_the_readme_gives():
    commands = [
        line.split("#")[0].strip() for block in code_blocks(README, "bash") for line in block.splitlines()
    ]
    ci = re.findall(r"^step (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert "python3 tools/dev.py demo" in commands
    assert "python3 tools/dev.py test" in commands and "python3 tools/dev.py test" in ci
    assert "python3 tools/dev.py lint --device-pass" in ci


@pytest.mark.once
def test_the_readme_fits_on_one_screen_and_links_to_the_guide():
    assert len(README.splitlines()) <= 60
    linked = set(re.findall(r"\]\(docs/guide/(\w+)\.md\)", README))
    assert {path.stem for path in GUIDE.glob("*.md")} <= linked


@pytest.mark.once
def test_every_package_is_in_the_table():
    listed = re.findall(r"^\| \[`([\w-]+)`\]", (GUIDE / "wheels.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))
