# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The table of programs: their sources, builds and runs, and the output of a right run.

programs.toml has three kinds of entries. A `program` is one program. An `each` entry is a program for every
file that a pattern matches, such as a collection of kernels that are only compiled. A `samples` entry is a
program for each folder of a CUDA project, which musa-port translates first.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest itself depends on tomli there
    import tomli as tomllib

TABLE = Path(__file__).with_name("programs.toml")
Command = tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A public repository at one commit."""

    name: str
    repository: str
    commit: str

    def folder(self, root: Path) -> Path:
        """The work tree, below the folder of all programs."""
        return root / self.repository.replace("/", "+")


@dataclass(frozen=True)
class Program:
    """One program.

    `build` and `run` are argument lists with placeholders (README.md lists them), and `where` is the working
    directory of the run. `run` is empty if the program is only compiled. `output` holds regular expressions,
    each of which must match the output; a match of one in `refuse` makes the run wrong. `cases` captures two
    numbers, the cases that passed and all of them, if the program counts its own; `passed` and `failed` match
    once per case, for a run that was stopped. `not_yet` is the reason why the program is known not to run
    right.
    """

    name: str
    group: str
    source: Source
    folder: str = ""
    where: str = "{build}"
    build: tuple[Command, ...] = ()
    run: Command = ()
    status: int = 0
    output: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    cases: str = ""
    passed: str = ""
    failed: str = ""
    timeout: float = 60
    build_timeout: float = 300
    shared_build: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    not_yet: str = ""
    file: str = ""


def _commands(value: list[list[str]]) -> tuple[Command, ...]:
    return tuple(tuple(command) for command in value)


_FIELDS = {
    "run": tuple,
    "output": tuple,
    "refuse": tuple,
    "build": _commands,
    "environment": lambda value: tuple(sorted(value.items())),
}
_PLAIN = (
    "name",
    "group",
    "folder",
    "where",
    "status",
    "cases",
    "passed",
    "failed",
    "timeout",
    "build_timeout",
    "shared_build",
    "not_yet",
)


def _fields(entry: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """The fields of Program in an entry; any key that is neither one nor in `others` is an error."""
    unknown = set(entry) - set(_FIELDS) - set(_PLAIN) - {"source", *others}
    if unknown:
        raise ValueError(f"programs.toml: {entry.get('name')}: unknown keys: {', '.join(sorted(unknown))}")
    return {
        **{key: entry[key] for key in _PLAIN if key in entry},
        **{key: convert(entry[key]) for key, convert in _FIELDS.items() if key in entry},
    }


def sample_sources(folder: Path) -> list[str]:
    """The sources of the first executable in a sample's CMakeLists.txt, relative to its folder."""
    text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text(encoding="utf-8"))
    found = re.search(r"add_executable\s*\(\s*\S+([^)]*)\)", text)
    return found[1].split() if found else []


def _variants(entry: Mapping[str, Any], program: Program) -> Iterator[Program]:
    """One program per argument in `variants`, or the program itself without any; they share one build."""
    names = entry.get("variants", [])
    if not names:
        yield program
        return
    excuses = entry.get("not_yet_variants", {})
    unknown = set(excuses) - set(names)
    if unknown:
        raise ValueError(f"programs.toml: {program.name}: not_yet_variants of no variant: {sorted(unknown)}")
    for name in names:
        yield replace(
            program,
            name=f"{program.name}/{name}",
            run=tuple(word.replace("{variant}", name) for word in program.run),
            shared_build=program.name,
            not_yet=excuses.get(name, ""),
        )


def _each(entry: Mapping[str, Any], program: Program, root: Path | None) -> Iterator[Program]:
    """A program per file that matches; none while the source has not been fetched."""
    if root is None:
        return
    top = program.source.folder(root)
    left_out = entry.get("leave_out", {})
    without = entry.get("without")
    excuses = entry.get("not_yet_files", {})
    for file in sorted(top.glob(entry["files"])):
        name = file.relative_to(top).as_posix()
        if without and re.search(without, file.read_text(encoding="utf-8", errors="replace")):
            continue
        if not any(re.search(pattern, name) for pattern in left_out):
            excuse = next((why for pattern, why in excuses.items() if re.search(pattern, name)), "")
            yield replace(program, name=f"{program.name}/{name}", file=name, not_yet=excuse)


def _samples(entry: Mapping[str, Any], program: Program, root: Path | None) -> Iterator[Program]:
    """A program per sample folder; `sample.<name>` overrides fields of single ones."""
    if root is None:
        return
    top = program.source.folder(root)
    special = dict(entry.get("sample", {}))
    left_out = {name for names in entry.get("leave_out", {}).values() for name in names}
    for parent in entry["folders"]:
        for folder in sorted(path.parent for path in top.glob(f"{parent}/*/CMakeLists.txt")):
            own = special.pop(folder.name, {})
            if folder.name not in left_out:
                name = f"{program.name}/{folder.name}"
                where = folder.relative_to(top).as_posix()
                yield replace(program, **{**_fields({**own, "name": name}), "folder": where})
    if special and top.is_dir():
        raise ValueError(
            f"programs.toml: {program.name}: settings of samples that are absent: {sorted(special)}"
        )


def load(root: Path | None = None, table: Path = TABLE) -> tuple[dict[str, Source], list[Program]]:
    """The sources by name, and the programs.

    `root` is the folder of the fetched sources; without it, `each` and `samples` entries yield no programs.

    Raises:
        ValueError: for an unknown key or source, or a name that occurs twice.
    """
    content = tomllib.loads(table.read_text(encoding="utf-8"))
    sources = {name: Source(name, **where) for name, where in content["source"].items()}
    programs: list[Program] = []
    for kind, expand, others in (
        ("program", lambda entry, program, _: _variants(entry, program), ("variants", "not_yet_variants")),
        ("each", _each, ("files", "leave_out", "without", "not_yet_files")),
        ("samples", _samples, ("folders", "leave_out", "sample")),
    ):
        for entry in content.get(kind, []):
            if entry["source"] not in sources:
                raise ValueError(f"programs.toml: {entry['name']}: no source is named {entry['source']}")
            fields = {"group": entry["source"], **_fields(entry, *others)}
            programs += expand(entry, Program(source=sources[entry["source"]], **fields), root)
    names = [program.name for program in programs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"programs.toml: names that occur twice: {', '.join(twice)}")
    return sources, programs
