# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Pages and packages agree: a page describes every environment variable that the packages read, and the
packages read every variable that a page describes."""

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
# A row of a table of variables begins with one or more of them.
ROW = re.compile(rf"^\| `({OWN})`(?:, `({OWN})`)*", re.MULTILINE)
# All names of a row of docs/guide/environment.md, whatever their prefix.
GUIDE_ROW = re.compile(r"^\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \|", re.MULTILINE)
# Upper-case words of other kinds: error codes of the driver, macros and CMake's variables.
OTHER = re.compile(r"MUPTI_ERROR_|MUSA_(ERROR_|SUCCESS$|KERNEL|RUNTIME_ABI$|OP_PACK)|.*_(DIR|FOUND|VERSION)$")
# Variables of the system, of Python and of torchrun, which their own pages describe.
COMMON = {"HOME", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "TMPDIR"}
COMMON |= {"TORCHELASTIC_RESTART_COUNT"}


def tracked(*patterns: str) -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in done.stdout.splitlines()]


def variables_read(text: str) -> set[str]:
    names = {first or second for first, second in READ.findall(text)}
    names |= {f"TORCH_MCCL_{name}" for name in PREFIXED.findall(text)}
    return {name for name in names if not OTHER.match(name) and name not in COMMON}


def undescribed(sources: dict[str, str], pages: str) -> dict[str, list[str]]:
    """Variables that a source reads and that no page names, with the sources."""
    missing: dict[str, list[str]] = {}
    for file, text in sources.items():
        for name in variables_read(text):
            if f"`{name}" not in pages and f"{name}=" not in pages:
                missing.setdefault(name, []).append(file)
    return missing


def unread(pages: str, sources: str) -> list[str]:
    """Variables with a row in a table of a page whose name is in no source, with or without its prefix."""
    described = {name for row in ROW.finditer(pages) for name in re.findall(OWN, row[0])}
    short = {name: name.removeprefix("TORCH_MCCL_") for name in described}
    return sorted(name for name in described if name not in sources and f'"{short[name]}"' not in sources)


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


@pytest.fixture(scope="module")
def pages() -> str:
    return "\n".join(file.read_text() for file in tracked("*.md"))


def test_every_variable_that_is_read_is_described(sources, pages):
    assert len({name for text in sources.values() for name in variables_read(text)}) > 40
    assert undescribed(sources, pages) == {}


def test_every_variable_in_a_table_is_read(sources, pages):
    assert len(ROW.findall(pages)) > 20
    assert unread(pages, "\n".join(sources.values())) == []


def test_an_undescribed_variable_is_found():
    text = 'std::getenv("MUSA_SECRET"); os.environ["MAX_JOBS"];'
    text += 'getCvarBool({"TORCH_FR_X"}, false); flag("NEW", true)'
    found = undescribed({"a.cpp": text}, "`MAX_JOBS` is how many compilers run")
    assert found == {"MUSA_SECRET": ["a.cpp"], "TORCH_FR_X": ["a.cpp"], "TORCH_MCCL_NEW": ["a.cpp"]}


def test_a_variable_that_is_not_read_any_more_is_found():
    assert unread("| `MUSA_GONE`, `MUSA_HERE` | text |\n", 'getenv("MUSA_HERE")') == ["MUSA_GONE"]


def test_the_guide_has_every_variable_of_the_packages_once_and_no_other(sources):
    of_packages = {file: text for file, text in sources.items() if file.startswith("packages/")}
    guide = (ROOT / "docs" / "guide" / "environment.md").read_text()
    assert len(GUIDE_ROW.findall(guide)) > 40
    assert differences(guide, of_packages) == ([], [], [])


def test_a_guide_that_lacks_invents_or_repeats_a_variable_is_refused():
    guide = "| `MUSA_A`, `MUSA_GONE` | text |\n| `MUSA_A` | text |\n"
    text = 'getenv("MUSA_A"); getenv("MUSA_NEW"); getenv("HOME")'
    assert differences(guide, {"a.cpp": text}) == (["MUSA_NEW"], ["MUSA_GONE"], ["MUSA_A"])
