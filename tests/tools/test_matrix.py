# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py matrix`: its suites exist, unknown combinations are refused, results are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from workspace import ROOT, WorkspaceError, legs, matrix

pytestmark = pytest.mark.once

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase name="a"/><testcase name="b"/><testcase name="c"><failure/></testcase>
<testcase name="d"><error/></testcase><testcase name="e"><skipped/></testcase>
</testsuite></testsuites>"""


def test_every_file_of_the_suites_exists(tmp_path: Path) -> None:
    assert [name for name in (*matrix.QUICK, *matrix.SAMPLED) if not (ROOT / name).is_file()] == []
    (tmp_path / "a.xml").write_text(JUNIT)
    assert legs.counts_of(tmp_path / "a.xml") == {"passed": 2, "failed": 2, "skipped": 1}


@pytest.mark.parametrize(
    ("torch", "python", "message"),
    [("2.10", "3.12", r"torch 2\.10 is not served"), ("2.14", "3.99", r"python3\.99 is not on PATH")],
)
def test_a_combination_that_does_not_exist_is_refused(torch: str, python: str, message: str) -> None:
    with pytest.raises(WorkspaceError, match=message):
        matrix.run([torch], [python])
