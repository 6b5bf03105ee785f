# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every row of docs/mixtures.md names a test that exists, and compares the message if the row has one."""

from __future__ import annotations

import ast

import pytest

from tests.harness import mixtures
from workspace import ROOT

pytestmark = pytest.mark.once


def unbound(row: mixtures.Row) -> bool:
    path, _, name = row.test.partition("[")[0].partition("::")
    source = (ROOT / path).read_text() if (ROOT / path).is_file() else ""
    [function] = [node for node in ast.parse(source).body if getattr(node, "name", "") == name] or [None]
    called = function and "mixtures.check(request, " in (ast.get_source_segment(source, function) or "")
    return function is None or bool(row.quotes and not called)


def test_every_row_is_bound_to_a_test():
    rows = mixtures.rows()
    assert len(rows) >= 20 and [row for row in rows if unbound(row)] == []


def test_a_row_without_its_test_and_another_message_are_refused(request):
    test = "tests/tools/test_upgrades.py::test_an_upgrade_with_the_extras_upgrades_all"
    refused = [
        mixtures.Row("a", "works", (), "tests/tools/test_nowhere.py::test"),
        mixtures.Row("b", "no", ("No",), test),
    ]
    assert all(map(unbound, refused)) and not unbound(mixtures.Row("c", "works", (), test))
    text = f"| a | refused | `need: torch 2.99` `Fix: x` | `{request.node.nodeid}` |\n"
    mixtures.check(request, "need: torch 2.99\nFix: x", text)
    with pytest.raises(AssertionError, match="quotes 'Fix: x', the message is"):
        mixtures.check(request, "need: torch 2.99", text)
