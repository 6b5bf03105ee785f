# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The tier takes all tests of what changed, and successive commits' samples take every other test."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness import absent, tier

pytestmark = pytest.mark.once

ROOT = tier.ROOT


class Item(NamedTuple):
    """The attributes of a test that tier.left_out reads."""

    path: Path
    nodeid: str


# tests/conftest.py leaves the ecosystem out.
FILES = {path for path in ROOT.glob("tests/*/test_*.py") if path.parent.name != "ecosystem"}


def taken(changed, turn=0, share="changed"):
    """The test files that a share imports."""
    chosen = tier.plan(changed, turn, share)
    return {
        path for path in FILES if not tier.ignores(chosen, path.parent) and not tier.ignores(chosen, path)
    }


def files(suite):
    return set((ROOT / "tests" / suite).glob("test_*.py"))


@pytest.mark.parametrize(
    ("changed", "suite"),
    [
        ("packages/musa-runtime/csrc/c10/musa/MUSAStream.cpp", "musa_runtime"),
        ("packages/musa-emulator-mudnn/csrc/norm.cpp", "musa_ops_mudnn"),
        ("packages/torch-musa/src/torch_musa/doctor.py", "torch_musa"),
        ("tests/musa_distributed/test_pack.py", "musa_distributed"),
        ("docs/guide/faq.md", "manual"),
        ("benchmarks/__main__.py", "benchmarks"),
    ],
)
def test_every_file_of_a_suite_whose_subject_changed_is_taken(changed, suite):
    assert files(suite) <= taken([changed])
    assert not files(suite) & taken([changed], share="sample")
    assert not files(suite) <= taken(["LICENSE"], share="sample"), "the sample alone holds the whole suite"


def test_successive_commits_take_every_file_and_every_operator():
    changed = ["packages/musa-amp/pyproject.toml"]
    turns = max(tier.plan(changed, 0).parts.values())
    assert turns > 1
    only_when_changed = set.union(*(files(name) for name, suite in tier.SUITES.items() if suite.when_changed))
    samples = [taken(changed, turn, "sample") for turn in range(turns)]
    assert set.union(*samples) == FILES - only_when_changed - files("musa_amp")
    first, shares = samples[0] | taken(changed), [taken(changed, turn, "rest") for turn in range(tier.SHARES)]
    assert first & shares[0] == files("conformance"), "only the operators are divided by test"
    both = [shares[turn] | samples[turn] for turn in range(tier.SHARES)]
    assert set.union(taken(changed), *both) == FILES
    assert all(len(share) < 0.6 * len(FILES) for share in shares)
    path = ROOT / "tests" / "conformance" / "test_ops.py"
    items = [Item(path, f"tests/conformance/test_ops.py::test_op[{n}]") for n in range(500)]
    left = [tier.left_out(tier.plan(changed, turn, "sample"), items) for turn in range(turns)]
    assert all(left) and set.intersection(*left) == set()
    rest = [{*items} - tier.left_out(tier.plan(changed, turn, "rest"), items) for turn in range(tier.SHARES)]
    assert not rest[0] & ({*items} - left[0])
    assert set.union(*rest, *({*items} - each for each in left[: tier.SHARES])) == {*items}


def test_a_change_of_many_packages_takes_parts_of_their_suites():
    parts = tier.plan([f"packages/{path.name}/x" for path in ROOT.glob("packages/*")], 0).parts
    assert 1 < parts["conformance"] <= 20 and 1 <= parts["musa_runtime"] < 8


def test_every_folder_of_tests_is_a_suite():
    folders = {path.parent.name for path in ROOT.glob("tests/*/test_*.py")} - {"ecosystem", "typing"}
    assert folders <= set(tier.SUITES), "name the folder in tests/harness/tier.py"
    subjects = [name for suite in tier.SUITES.values() for name in suite.subjects]
    assert all((ROOT / name).exists() or list(ROOT.glob(f"{name}*")) for name in subjects)


def test_the_packages_of_tests_that_need_them_exist(monkeypatch):
    with pytest.raises(ValueError, match="there is no package musa-nothing"):
        absent.reason(("musa-nothing",))
    monkeypatch.setattr(absent, "installed", lambda package: package != "musa-amp")
    assert absent.reason(("musa-runtime", "musa-amp")) == absent.reason(("musa-amp",))
    assert absent.reason(("musa-amp",)) == "musa-amp not installed. Fix: python3 tools/dev.py setup"
    assert absent.reason_of_folder(ROOT / "tests/musa_amp/test_autocast.py") == absent.reason(("musa-amp",))
    assert absent.reason_of_folder(ROOT / "tests/musa_runtime/test_views.py") is None
    assert absent.reason_of_folder(ROOT / "tests/conformance/test_ops.py") is None
