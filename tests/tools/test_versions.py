# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule that every version in the tree is the one in pyproject.toml."""

import re

import pytest

from workspace import ROOT, tree_rules, versions

pytestmark = pytest.mark.once

SOURCE = {
    "pyproject.toml": '[tool.musa]\nversion = "1.2.3"\ntorch = "9.8"\n'
    'oldest-torch = "9.7"\nnewest-torch = "9.10"\n\n[tool.ruff]\nversion = "0"\n'
}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("packages/a/pyproject.toml", 'version = "1.2.3"', 'version = "1.2.4"'),
        ("packages/a/pyproject.toml", '["musa-runtime==1.2.*"]', '["musa-runtime==1.3.*"]'),
        ("packages/a/pyproject.toml", '["torch", "torch>=9.7,<9.11"]', '["torch>=9.7,<9.12"]'),
        # The pin of a minor is generated, so even the right one is refused.
        ("packages/a/pyproject.toml", '["torch"]', '["torch==9.8.*"]'),
        ("packages/a/CMakeLists.txt", "project(a VERSION 1.2.3 LANGUAGES CXX)", "project(a VERSION 1.0)"),
        ("packages/a/CMakeLists.txt", "find_package(musa_runtime 1.2)", "find_package(musa_runtime 1.1)"),
        ("packages/a/src/a/__init__.py", '__version__ = "1.2.3"', '__version__ = "1.2"'),
        ("packages/a/src/a/b.py", 'NEWEST_TORCH = "9.10"', 'NEWEST_TORCH = "9.8"'),
        ("packages/a/cmake/b.cmake", "set(MUSA_OLDEST_TORCH 9.7)", "set(MUSA_OLDEST_TORCH 9.8)"),
        ("packages/a/csrc/b.h", "pip install 'torch>=9.7,<9.11'", "pip install 'torch==9.8.0'"),
        ("requirements-dev.txt", "torch==9.8.0", "torch==9.7.1"),
        ("conda/recipe.yaml", '  version: "1.2.3"', '  version: "1.2.2"'),
    ],
)  # fmt: skip
def test_a_version_that_differs_is_found(name: str, good: str, bad: str) -> None:
    assert versions.check_versions({**SOURCE, name: f"#\n{good}\n"}) == []
    (found,) = versions.check_versions({**SOURCE, name: f"#\n{bad}\n"})
    assert found.startswith(f"{name}:2: version ")


def test_the_range_compares_numbers() -> None:
    served = versions.torch_range(SOURCE["pyproject.toml"])
    assert served.minors() == ["9.7", "9.8", "9.9", "9.10"] and served.requirement == "torch>=9.7,<9.11"
    assert "9.10" in served and "9.6" not in served and "9.11" not in served and "10.8" not in served


def test_every_place_has_versions_in_this_tree() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in tree_rules.tracked_files(ROOT)
        if any(re.fullmatch(files, path.relative_to(ROOT).as_posix()) for files, _, _ in versions.PLACES)
        or path.name == versions.SOURCE
    }
    for files, pattern, _ in versions.PLACES:
        assert any(
            re.fullmatch(files, name) and re.search(pattern, text, re.MULTILINE)
            for name, text in texts.items()
        ), f"{pattern} is nowhere in {files}"
    assert versions.check_versions(texts) == []
