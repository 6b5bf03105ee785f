# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Records of long runs name their date and tree, and their summaries become rows of docs/records.json."""

from __future__ import annotations

import json

import pytest

from tests import records as page
from tests.harness import records

pytestmark = pytest.mark.once


def test_the_summary_of_a_record_becomes_a_row_and_other_rows_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    assert records.read("soak") == {}
    records.write("soak", "python -m tests.soak", "9 rounds, 0 violations", rounds=9)
    assert records.read("soak")["rounds"] == 9 and records.read("soak")["date"]
    table = tmp_path / "records.json"
    kept = dict.fromkeys(page.COLUMNS, "old")
    table.write_text(json.dumps({"hosts": kept, "soak": kept}))
    assert page.collect([records.FOLDER], table) == ["soak"]
    rows = json.loads(table.read_text())
    assert rows["hosts"] == kept and set(rows["soak"]) == set(page.COLUMNS)
    assert rows["soak"]["summary"] == "9 rounds, 0 violations"
    (records.FOLDER / "other.json").write_text('{"date": "2026-11-29"}')
    with pytest.raises(ValueError, match=r"other\.json is no record: it has no tree"):
        page.collect([records.FOLDER], table)


def test_the_page_of_records_has_complete_rows():
    rows = json.loads(page.PAGE.read_text())
    assert rows and all(set(row) == set(page.COLUMNS) and all(row.values()) for row in rows.values())
