# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every row of docs/mixtures.md names a test that exists, and a test that compares the row's message."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import mixtures

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]


def functions(path: str) -> dict[str, str]:
    """The source of each test function of a file."""
    text = (ROOT / path).read_text()
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.get_source_segment(text, node) or "" for node in nodes}


def unbound(rows: list[mixtures.Row]) -> list[str]:
    """Rows whose test does not exist, or does not compare the message of the row."""
    found = []
    for row in rows:
        path, _, name = row.test.partition("[")[0].partition("::")
        source = functions(path).get(name) if (ROOT / path).is_file() else None
        if source is None:
            found.append(f"{row.mixture}: there is no {row.test}")
        elif row.quotes and "mixtures.check(request, " not in source:
            found.append(f"{row.mixture}: {row.test} does not compare the message")
    return found


def test_every_row_is_bound_to_a_test():
    rows = mixtures.rows()
    assert unbound(rows) == []
    assert len({row.mixture for row in rows}) == len(rows) == len({row.test for row in rows})
    assert {bool(row.quotes) for row in rows if "refuse" in row.result} == {True}
    assert len(rows) >= 20 and sum(row.result == "works" for row in rows) >= 4


def test_a_row_without_a_test_is_noticed():
    other = "tests/tools/test_upgrades.py::test_one_command_installs_one_release"
    text = (
        "| one | works |  | `tests/tools/test_upgrades.py::test_nothing` |\n"
        "| two | works |  | `tests/tools/test_nowhere.py::test_nothing` |\n"
        f"| three | pip refuses | `No` | `{other}` |\n"
        f"| four | works |  | `{other}` |\n"
    )
    assert unbound(mixtures.rows(text)) == [
        "one: there is no tests/tools/test_upgrades.py::test_nothing",
        "two: there is no tests/tools/test_nowhere.py::test_nothing",
        f"three: {other} does not compare the message",
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_a_message_is_compared_with_the_row_of_its_parameter(request, number):
    name = request.node.nodeid.partition("[")[0]
    text = f"| a | refused | `have: torch 2.13 need: torch 2.99` `Fix: x` | `{name}[1]` |\n"
    mixtures.check(request, "error\n  have: torch 2.14\n  need: torch 2.99\nFix: x", text)
    if number == 1:
        with pytest.raises(AssertionError, match="quotes 'Fix: x', the message is"):
            mixtures.check(request, "have: torch 2.13 need: torch 2.99", text)
    else:
        mixtures.check(request, "another parameter, of which the page says nothing", text)


def test_a_test_without_a_row_fails(request):
    with pytest.raises(AssertionError, match=r"mixtures\.md has no row for .*a_test_without_a_row"):
        mixtures.check(request, "any message", "| a | works |  | `tests/other.py::test` |\n")


@pytest.mark.slow
def test_pytest_finds_every_test_of_the_page():
    """With its parameters: a row for a parameter that does not exist would never be compared."""
    wanted = {row.test for row in mixtures.rows()}
    command = [sys.executable, "-m", "pytest", "--full", "--collect-only", "-q"]
    command += sorted({test.partition("::")[0] for test in wanted})
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert wanted - set(done.stdout.splitlines()) == set(), done.stdout + done.stderr
