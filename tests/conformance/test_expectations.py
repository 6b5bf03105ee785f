# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The known failures stay few, explained and alive, and the record of the complete run matches them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance import catalogue, conftest, expectations, operators
from tests.conformance.results import LAST_FULL_RUN, Tally, record_file, records

# Nothing here depends on the execution mode of this process.
pytestmark = pytest.mark.once

_ENTRY = """
[[failure]]
database = "op"
name = "add"
variant = "forward"
kind = "{kind}"
cause = "{cause}"
"""
_CAUSE = "the kernel rounds the other way"


def test_at_most_ten_failures_are_known() -> None:
    assert len(expectations.load()) <= expectations.LIMIT


def test_no_known_failure_is_stale() -> None:
    assert not expectations.stale(expectations.load(), catalogue.all_keys())


def test_a_stale_entry_is_noticed() -> None:
    entries = expectations.parse(
        _ENTRY.format(kind="float32", cause=_CAUSE) + _ENTRY.format(kind="gone", cause=_CAUSE)
    )
    assert expectations.stale(entries, catalogue.all_keys()) == [entries[1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("".join(_ENTRY.format(kind=f"kind{i}", cause=_CAUSE) for i in range(11)), "at most 10"),
        (_ENTRY.format(kind="float32", cause="flaky"), "must say what is wrong"),
        (2 * _ENTRY.format(kind="float32", cause=_CAUSE), "listed twice"),
    ],
    ids=["too many", "unexplained", "repeated"],
)
def test_a_bad_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expectations.parse(text)


def test_a_failure_of_one_provider_is_expected_of_that_one_alone() -> None:
    text = _ENTRY.format(kind="float32", cause=_CAUSE)
    (entry,) = expectations.parse(text + 'operator = "aten::add.out"\nprovider = "ported"')
    assert entry.applies(False, lambda op: {"aten::add.out": "ported"}[op])
    assert not entry.applies(True, lambda op: "cpu")
    with pytest.raises(ValueError, match="together or not at all"):
        expectations.parse(text + 'provider = "ported"')


def test_names_in_the_operator_lists_exist() -> None:
    names = {op.full_name for op in operators.OPS}
    lists = (
        operators.RANDOM,
        operators.UNINITIALISED,
        operators.UNDEFINED_WHEN_EMPTY,
        operators.WRITES_ITS_ARGUMENTS,
    )
    for listed in lists:
        assert listed <= names, sorted(listed - names)


def test_a_complete_run_is_recorded_with_its_counts(tmp_path) -> None:
    tally = Tally()
    tally.add("op", "forward", "float32", "passed", 3)
    tally.add("op", "forward", "float32", "passed", 4)
    tally.add("op", "forward", "float32", "known failure", 0)
    assert tally.tests() == 3
    path = tmp_path / "run.json"
    tally.write([], {"execution": "inline"}, {"mudnn": 9, "cpu": 4}, path)
    record = json.loads(path.read_text())
    assert record["results"]["op"]["forward"]["float32"] == {"passed": 2, "known failure": 1, "samples": 7}
    assert record["calls"] == {"mudnn": 9, "cpu": 4}


@pytest.mark.parametrize(
    ("operators", "memory", "execution", "name"),
    [
        ("default", "shared", "inline", "last_full_run.json"),
        ("default", "strict", "inline", "last_full_run.strict.json"),
        ("mudnn,host-copy", "strict", "async", "last_full_run.mudnn_host_copy_strict_async.json"),
        ("aten::*norm*=host;*=mudnn", "shared", "lazy", "last_full_run.aten_norm_host_mudnn_lazy.json"),
    ],
)
def test_each_policy_has_a_record_of_its_own(operators: str, memory: str, execution: str, name: str) -> None:
    path = record_file({"operators": operators, "memory": memory, "execution": execution})
    assert path == LAST_FULL_RUN.with_name(name)


def test_the_default_policy_has_a_record() -> None:
    assert LAST_FULL_RUN in records(), "record one: pytest --full tests/conformance"


@pytest.mark.parametrize("path", records(), ids=lambda path: path.stem)
def test_the_last_complete_run_had_no_unexpected_failure(path: Path) -> None:
    record = json.loads(path.read_text())
    outcomes = {
        outcome
        for variants in record["results"].values()
        for kinds in variants.values()
        for counts in kinds.values()
        for outcome in counts
    }
    assert outcomes <= {"passed", "known failure", "samples"}
    listed = {tuple(entry[:4]) for entry in record["known_failures"]}
    entries = expectations.load()
    known = {entry.key for entry in entries}
    everywhere = {entry.key for entry in entries if not entry.operator}
    assert everywhere <= listed <= known, "record a new run: pytest --full tests/conformance"


def test_the_parts_of_a_run_are_every_case_once(request):
    class Config:
        def __init__(self, part):
            self.getoption = {"--part": part}.get

    cases = [item for item in request.session.items if item.get_closest_marker("conformance")]
    others = [request.node]
    parts = [conftest._part_of(Config(f"{index}/3"), [*cases, *others]) for index in (1, 2, 3)]
    assert sum(len(part) for part in parts) == len(cases) + 3 * len(others)
    assert set().union(*parts) == {*cases, *others}


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_part_that_does_not_exist_is_refused(part):
    class Config:
        getoption = staticmethod({"--part": part}.get)

    with pytest.raises(pytest.UsageError, match="1/2"):
        conftest._part_of(Config, [])
