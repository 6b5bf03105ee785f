# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The minors of torch in [tool.musa] of pyproject.toml, and the rule that no version in the tree differs.

Packages that are compiled against torch take its minor version from the torch in their build environment, so
their files must not contain one.
"""

import re
from dataclasses import dataclass

from . import ROOT

SOURCE = "pyproject.toml"
# Locations of versions: file pattern, text with the version as a group, and the required version.
PLACES = (
    (r"packages/[^/]+/pyproject\.toml", r'^version = "([^"]*)"', "version"),
    (r"packages/[^/]+/pyproject\.toml", r'"(?:torch-musa|musa-[a-z-]+)==([^"]*)\.\*"', "minor"),
    (r"packages/[^/]+/pyproject\.toml", r'"torch([<>=!~][^"]*)"', "range"),
    (r"packages/[^/]+/CMakeLists\.txt", r"^project\(\w+ VERSION (\S+)", "version"),
    (r".*/CMakeLists\.txt|.*\.cmake(?:\.in)?", r"^\s*find_package\(musa_\w+ ([\d.]+)", "minor"),
    (r".*\.cmake", r"^set\(MUSA_OLDEST_TORCH ([\d.]+)\)", "oldest-torch"),
    (r".*\.cmake", r"^set\(MUSA_NEWEST_TORCH ([\d.]+)\)", "newest-torch"),
    (r"packages/.*\.py", r'^__version__ = "([^"]*)"', "version"),
    (r"packages/.*\.py", r'^OLDEST_TORCH = "([^"]*)"', "oldest-torch"),
    (r"packages/.*\.py", r'^NEWEST_TORCH = "([^"]*)"', "newest-torch"),
    (r"packages/.*\.h", r"headers of torch (\d+\.\d+) or later", "oldest-torch"),
    (r"packages/.*\.h", r"pip install 'torch([^']*)'", "range"),
    (r"requirements-dev\.txt", r"^torch==(\d+\.\d+)", "torch"),
    (r"packages/.*/bin/[^/.]+", r'^VERSION = "([^"]*)"', "version"),
    (r"conda/recipe\.yaml", r'^  version: "([^"]*)"', "version"),
)


@dataclass(frozen=True)
class TorchRange:
    """The minor versions of torch that the packages can be built for."""

    oldest: str
    newest: str

    def __contains__(self, minor: str) -> bool:
        return _numbers(self.oldest) <= _numbers(minor) <= _numbers(self.newest)

    def __str__(self) -> str:
        return f"{self.oldest} to {self.newest}"

    def minors(self) -> list[str]:
        major, first = _numbers(self.oldest)
        return [f"{major}.{minor}" for minor in range(first, _numbers(self.newest)[1] + 1)]

    @property
    def specifier(self) -> str:
        """The versions as a dependency specifier: ">=2.11,<2.16"."""
        major, minor = _numbers(self.newest)
        return f">={self.oldest},<{major}.{minor + 1}"

    @property
    def requirement(self) -> str:
        return f"torch{self.specifier}"


def _numbers(minor: str) -> tuple[int, int]:
    major, number = minor.split(".")
    return int(major), int(number)


def _settings(source: str) -> dict[str, str]:
    """Returns the texts in [tool.musa]. Python 3.10 has no tomllib."""
    table = re.search(r"^\[tool\.musa\]\n(.*?)(?=^\[|\Z)", source, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r'^([\w-]+) = "([^"]*)"', table.group(1), re.MULTILINE)) if table else {}


def of_workspace() -> str:
    """The version of all packages."""
    return _settings((ROOT / SOURCE).read_text())["version"]


def torch_range(source: str) -> TorchRange:
    """Returns the range in the text of pyproject.toml."""
    found = _settings(source)
    return TorchRange(found["oldest-torch"], found["newest-torch"])


def served_torch() -> TorchRange:
    """Returns the range of this tree."""
    return torch_range((ROOT / SOURCE).read_text(encoding="utf-8"))


def check_versions(texts: dict[str, str]) -> list[str]:
    """Returns versions in files that differ from [tool.musa]. texts: file names and their texts."""
    if SOURCE not in texts:
        return []  # not a workspace
    wanted = _settings(texts[SOURCE])
    wanted["minor"] = ".".join(wanted["version"].split(".")[:2])
    wanted["range"] = torch_range(texts[SOURCE]).specifier
    found = []
    for name, text in texts.items():
        for files, pattern, kind in PLACES:
            if re.fullmatch(files, name):
                for match in re.finditer(pattern, text, re.MULTILINE):
                    line = text.count("\n", 0, match.start(1)) + 1
                    if match[1] != wanted[kind]:
                        found.append(
                            f"{name}:{line}: version {match[1]}; [tool.musa] of {SOURCE} says {wanted[kind]}"
                        )
    return found
