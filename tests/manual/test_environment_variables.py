# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""docs/guide/environment.md has each environment variable that the packages read once, and no other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".py", ".cpp", ".h", ".mu", ".muh", ".cmake", "CMakeLists.txt")
OWN = r"(?:MUSA|MUSART|MUDNN|MUPTI|MCCL|TORCH_MUSA|TORCH_MCCL|TORCH_FR|PYTORCH_MUSA)_[A-Z0-9_]+"
READ = re.compile(
    r"""(?:getenv|environ(?:\.get|\.setdefault|\.pop)?|getCvar\w+|switches\.\w+|environment_\w+)\s*"""
    rf"""[(\[]\s*\{{?\s*["']([A-Z][A-Z0-9_]+)["']"""
    rf"""|["'](PYTORCH_[A-Z0-9_]+|{OWN})["']"""
)
# Readers in musa-distributed, which add the prefix.
PREFIXED = re.compile(r"""(?<!\.)\b(?:flag|number)\("([A-Z][A-Z0-9_]+)""")
# All names of a row of docs/guide/environment.md, whatever their prefix.
GUIDE_ROW = re.compile(r"^\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \|", re.MULTILINE)
# Upper-case words of other kinds: error codes of the driver, macros, CMake's variables, a name of torch.cuda,
# names of attention backends.
OTHER = re.compile(
    r"MUPTI_ERROR_|PYTORCH_RELEASES_CODE_CC$|MUSA_(ERROR_|SUCCESS$|KERNEL|RUNTIME_ABI$|OP_PACK|LATENT$|PAGED$)"
    r"|.*_(DIR|FOUND|VERSION)$"
)
# Variables of the system, of Python, of ccache and of torchrun, which their own pages describe.
COMMON = {"HOME", "HOSTNAME", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "TMPDIR"}
COMMON |= {"TORCHELASTIC_RESTART_COUNT", "CCACHE_BASEDIR"}


def tracked(*patterns: str) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in done.stdout.splitlines()]


def variables_read(text: str) -> set[str]:
    names = {first or second for first, second in READ.findall(text)}
    names |= {f"TORCH_MCCL_{name}" for name in PREFIXED.findall(text)}
    return {name for name in names if not OTHER.match(name) and name not in COMMON}


def differences(guide: str, sources: dict[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Variables that are read but not in the guide, in the guide but not read, and repeated in the guide."""
    listed = [name for row in GUIDE_ROW.findall(guide) for name in re.findall(r"`(\w+)`", row)]
    read = {name for text in sources.values() for name in variables_read(text)} - {"TORCH_MCCL_"}
    repeated = sorted({name for name in listed if listed.count(name) > 1})
    return sorted(read - set(listed)), sorted(set(listed) - read), repeated


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    files = [file for file in tracked("packages", "tools") if file.name.endswith(SOURCES)]
    return {str(file.relative_to(ROOT)): file.read_text() for file in files}


def test_the_guide_has_every_variable_of_the_packages_once_and_no_other(sources):
    of_packages = {file: text for file, text in sources.items() if file.startswith("packages/")}
    guide = (ROOT / "docs" / "guide" / "environment.md").read_text()
    assert len(GUIDE_ROW.findall(guide)) > 40
    assert differences(guide, of_packages) == ([], [], [])


def test_a_guide_that_lacks_invents_or_repeats_a_variable_is_refused():
    guide = "| `MUSA_A`, `MUSA_GONE` | text |\n| `MUSA_A` | text |\n"
    text = 'getenv("MUSA_A"); getenv("MUSA_NEW"); getenv("HOME")'
    assert differences(guide, {"a.cpp": text}) == (["MUSA_NEW"], ["MUSA_GONE"], ["MUSA_A"])
