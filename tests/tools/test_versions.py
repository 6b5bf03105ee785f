# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule that every version in the tree is the one in pyproject.toml."""

import pytest

from workspace import ROOT, tree_lint, versions

pytestmark = pytest.mark.once

SOURCE = {"pyproject.toml": '[tool.musa]\nversion = "1.2.3"\ntorch = "9.8"\n\n[tool.ruff]\nversion = "0"\n'}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("packages/a/pyproject.toml", 'version = "1.2.3"', 'version = "1.2.4"'),
        ("packages/a/pyproject.toml", '["musa-runtime==1.2.*"]', '["musa-runtime==1.3.*"]'),
        ("packages/a/pyproject.toml", '["torch==9.8.*"]', '["torch==9.9.*"]'),
        ("packages/a/CMakeLists.txt", "project(a VERSION 1.2.3 LANGUAGES CXX)", "project(a VERSION 1.0)"),
        ("packages/a/CMakeLists.txt", "find_package(musa_runtime 1.2)", "find_package(musa_runtime 1.1)"),
        ("packages/a/CMakeLists.txt", "find_package(musa_emulator 1.2)", "find_package(musa_emulator 1.1)"),
        ("packages/a/src/a/__init__.py", '__version__ = "1.2.3"', '__version__ = "1.2"'),
        ("packages/a/src/a/b.py", 'TORCH_MINOR = "9.8"', 'TORCH_MINOR = "9.7"'),
        ("requirements-dev.txt", "torch==9.8.0", "torch==9.7.1"),
    ],
)  # fmt: skip
def test_a_version_that_differs_is_found(name: str, good: str, bad: str) -> None:
    assert versions.check_versions({**SOURCE, name: f"#\n{good}\n"}) == []
    (found,) = versions.check_versions({**SOURCE, name: f"#\n{bad}\n"})
    assert found.startswith(f"{name}:2: version ")


def test_a_source_without_versions_is_refused() -> None:
    assert (
        "[tool.musa] needs"
        in versions.check_versions({"pyproject.toml": '[tool.ruff]\nversion = "1.2.3"\n'})[0]
    )


def test_every_place_has_versions_in_this_tree() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in tree_lint.tracked_files(ROOT)
        if path.suffix in (".py", ".toml", ".txt", ".cmake")
    }
    for files, pattern, _ in versions.PLACES:
        alone = [name for name, text in texts.items() if any(versions.found_at(name, text, files, pattern))]
        assert alone, f"{pattern} is nowhere in {files}"
    assert versions.check_versions(texts) == []
