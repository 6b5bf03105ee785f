# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Sets the version of all packages for a release: `python3 tools/dev.py version X.Y.Z`."""

import datetime
import re

from . import ROOT, WorkspaceError, tree_rules, versions

CHANGES = "CHANGELOG.md"
HEADING = re.compile(r"^## Unreleased\n(.*?)(?=^## )", re.MULTILINE | re.DOTALL)
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
_SOURCE_VERSION = re.compile(r'(?<=^version = ")[^"]*', re.MULTILINE)


def _numbers(version: str) -> tuple[int, ...]:
    if not re.fullmatch(r"(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}", version):
        raise WorkspaceError(
            f"{version!r} is no version of a release.\nFix: write X.Y.Z, such as 0.2.0; "
            "wheels append the minor of torch themselves"
        )
    return tuple(map(int, version.split(".")))


def set_version(texts: dict[str, str], version: str) -> dict[str, str]:
    """Returns the files that change, with every version of the packages replaced.

    texts: names and texts of the tracked files, with pyproject.toml of the root.

    Raises:
        WorkspaceError: if `version` is not X.Y.Z, or is not above the present one.
    """
    source = texts[versions.SOURCE]
    settings = re.search(r"^\[tool\.musa\]\n", source, re.MULTILINE)
    present = settings and _SOURCE_VERSION.search(source, settings.end())
    if not present:
        raise WorkspaceError(f"{versions.SOURCE} has no version in [tool.musa]")
    if _numbers(version) <= _numbers(present[0]):
        raise WorkspaceError(f"{version} is not above the present version, {present[0]}")
    changed = {versions.SOURCE: source[: present.start()] + version + source[present.end() :]}
    wanted = {"version": version, "minor": version.rpartition(".")[0]}
    for name, text in texts.items():
        new = changed.get(name, text)
        for files, pattern, kind in versions.PLACES:
            if kind in wanted and re.fullmatch(files, name):
                new = re.sub(
                    pattern,
                    lambda found, kind=kind: found[0].replace(found[1], wanted[kind]),
                    new,
                    flags=re.MULTILINE,
                )
        if new != text:
            changed[name] = new
    return changed


def release_changes(text: str, version: str, date: str) -> str:
    """Returns the changelog with "Unreleased" as the section of the version, below an empty "Unreleased".

    Raises:
        WorkspaceError: if there are no unreleased changes.
    """
    found = HEADING.search(text)
    if not found or "\n* " not in found[1]:
        raise WorkspaceError(f'{CHANGES} has no changes below "## Unreleased"')
    body = re.sub(r"\A\s*The changes for [\d.]+\.\n", "", found[1])
    return f"{text[: found.start()]}## Unreleased\n\n## {version} - {date}\n{body}{text[found.end() :]}"


def wrong_changes(text: str) -> list[str]:
    """Returns the lines of a changelog that Keep a Changelog does not have."""
    found, section, seen = [], "", []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{CHANGES}:{number}: "
        if line.startswith("## "):
            section, seen = "", []
            # 0.1.0 was never tagged.
            if not re.fullmatch(
                r"## (?:Unreleased|0\.1\.0|\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d(?: \[YANKED\])?)", line
            ):
                found.append(f"{where}{line!r} is neither Unreleased nor a version with its date")
            old = line == "## 0.1.0"
        elif line.startswith("### "):
            section = line[4:]
            if section not in SECTIONS or section in seen:
                found.append(f"{where}{line!r} is none of {', '.join(SECTIONS)}, or appears twice")
            seen.append(section)
        elif line.startswith("* ") and not section and not old:
            found.append(f"{where}a change below no section: {line[:60]}")
    return found


def run(version: str) -> list[str]:
    """Writes the version into the tree; returns the names of the changed files."""
    texts = {}
    for path in tree_rules.tracked_files(ROOT):
        name = path.relative_to(ROOT).as_posix()
        if name in (versions.SOURCE, CHANGES) or any(
            re.fullmatch(files, name) for files, _, _ in versions.PLACES
        ):
            texts[name] = path.read_text(encoding="utf-8")
    changed = set_version(texts, version)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    changed[CHANGES] = release_changes(texts[CHANGES], version, today)
    for name, text in changed.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    return sorted(changed)
