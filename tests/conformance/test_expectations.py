# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The known failures stay few, explained and alive."""

from __future__ import annotations

import pytest

from tests.conformance import catalogue, conftest, expectations, operators

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
