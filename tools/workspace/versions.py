# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rule that every version in the tree is the one in pyproject.toml, [tool.musa]."""

import re
from collections.abc import Iterator

SOURCE = "pyproject.toml"
# Where a version stands: the files, the text with its version as a group, and which version it has to be.
PLACES = (
    (r"packages/[^/]+/pyproject\.toml", r'^version = "([^"]*)"', "version"),
    (r"packages/[^/]+/pyproject\.toml", r'"(?:torch-musa|musa-[a-z-]+)==([^"]*)\.\*"', "minor"),
    (r"packages/[^/]+/pyproject\.toml", r'"torch==([^"]*)\.\*"', "torch"),
    (r"packages/[^/]+/CMakeLists\.txt", r"^project\(\w+ VERSION (\S+)", "version"),
    (r".*/CMakeLists\.txt|.*\.cmake(?:\.in)?", r"^\s*find_package\(musa_\w+ ([\d.]+)", "minor"),
    (r"packages/.*\.py", r'^__version__ = "([^"]*)"', "version"),
    (r"packages/.*\.py", r'^TORCH_MINOR = "([^"]*)"', "torch"),
    (r"requirements-dev\.txt", r"^torch==(\d+\.\d+)", "torch"),
)


def _setting(text: str, name: str) -> str | None:
    table = re.search(r"^\[tool\.musa\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL)
    found = re.search(rf'^{name} = "([^"]*)"', table.group(1), re.MULTILINE) if table else None
    return found.group(1) if found else None


def found_at(name: str, text: str, files: str, pattern: str) -> Iterator[tuple[int, str]]:
    """The line and the version of each place in a file, if it is one of the files."""
    if re.fullmatch(files, name):
        for match in re.finditer(pattern, text, re.MULTILINE):
            yield text.count("\n", 0, match.start()) + 1, match.group(1)


def check_versions(texts: dict[str, str]) -> list[str]:
    """Versions in the files that differ from those of [tool.musa]. texts: names of files and their texts."""
    if SOURCE not in texts:
        return []  # not a workspace
    source = texts[SOURCE]
    wanted = {"version": _setting(source, "version"), "torch": _setting(source, "torch")}
    if None in wanted.values():
        return [f'{SOURCE}:1: [tool.musa] needs version = "X.Y.Z" and torch = "X.Y"']
    wanted["minor"] = ".".join(wanted["version"].split(".")[:2])
    return [
        f"{name}:{line}: version {found}; [tool.musa] of {SOURCE} says {wanted[kind]}"
        for name, text in texts.items()
        for files, pattern, kind in PLACES
        for line, found in found_at(name, text, files, pattern)
        if found != wanted[kind]
    ]
