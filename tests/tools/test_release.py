# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py version` sets every version of the packages, and CHANGELOG.md has the form that it claims."""

from __future__ import annotations

import pytest

from workspace import ROOT, WorkspaceError, release, tree_rules, versions

pytestmark = pytest.mark.once

CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\nThe changes for 1.3.0.\n\n### Added\n\n* A.\n\n"
    "## 1.2.3 - 2026-01-02\n\n### Fixed\n\n* B.\n"
)


def texts_of_the_tree() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in tree_rules.tracked_files(ROOT)
        if path.suffix in (".py", ".toml", ".txt", ".cmake", ".in", ".h", ".yaml")
    }


def test_every_version_of_the_tree_is_set() -> None:
    texts = texts_of_the_tree()
    changed = release.set_version(texts, "7.8.9")
    assert versions.check_versions({**texts, **changed}) == []
    assert len([name for name in changed if name.endswith("pyproject.toml")]) > 15
    # The check that this relies on finds a file that keeps its version.
    kept = {**texts, **changed, "packages/musa-amp/pyproject.toml": texts["packages/musa-amp/pyproject.toml"]}
    assert versions.check_versions(kept)


def test_only_the_versions_change() -> None:
    texts = texts_of_the_tree()
    source = texts[versions.SOURCE]
    changed = release.set_version(texts, "7.8.9")[versions.SOURCE]
    lines = [
        (old, new) for old, new in zip(source.splitlines(), changed.splitlines(), strict=True) if old != new
    ]
    assert [new for _, new in lines] == ['version = "7.8.9"']


@pytest.mark.parametrize("version", ["0.2", "v0.2.0", "0.2.0+torch2.13", "0.02.0", "0.0.1", "0.1.0"])
def test_other_versions_are_refused(version: str) -> None:
    with pytest.raises(WorkspaceError):
        release.set_version({versions.SOURCE: '[tool.musa]\nversion = "0.1.0"\n'}, version)
    with pytest.raises(WorkspaceError, match="no version"):
        release.set_version({versions.SOURCE: "[tool.ruff]\n"}, "0.2.0")


def test_unreleased_changes_become_the_section_of_the_version() -> None:
    text = release.release_changes(CHANGELOG, "1.3.0", "2026-03-04")
    assert text == CHANGELOG.replace(
        "## Unreleased\n\nThe changes for 1.3.0.\n", "## Unreleased\n\n## 1.3.0 - 2026-03-04\n"
    )
    assert release.wrong_changes(text) == []
    with pytest.raises(WorkspaceError, match="no changes"):
        release.release_changes(text, "1.4.0", "2026-05-06")


def test_the_changelog_has_the_form_that_it_claims() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.wrong_changes(text) == []
    unreleased = release.HEADING.search(text)
    assert unreleased and unreleased[1].count("\n* ") <= 80, "join related changes: users read this list"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("### Added", "### New"),
        ("### Added\n", "### Added\n\n* C.\n\n### Added\n"),
        ("## 1.2.3 - 2026-01-02", "## 1.2.3"),
        ("## Unreleased\n", "## Unreleased\n\n* A change of another branch.\n"),
    ],
)
def test_another_form_is_found(right: str, wrong: str) -> None:
    assert release.wrong_changes(CHANGELOG) == []
    assert release.wrong_changes(CHANGELOG.replace(right, wrong, 1))
