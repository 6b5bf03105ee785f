# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Porting rules, read from the files in rules/."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rules"
SUPPORTED = 1  # version of the file format
_TABLES = ("names", "prefixes", "words", "includes", "paths")
_KEYS = {"version", "about", "extends", "keep", "phrases", "doubts", *_TABLES}


class RuleError(ValueError):
    """An invalid rule file. The message contains its path and the error."""


@dataclass(frozen=True)
class Phrase:
    """A replacement of a pattern that is longer than a name.

    Not applied to sources that match `unless`, for example because they define the function themselves.
    """

    pattern: re.Pattern[str]
    replacement: str
    why: str
    unless: re.Pattern[str] | None = None


@dataclass(frozen=True)
class Doubt:
    """A pattern that needs manual changes if it remains after porting."""

    pattern: re.Pattern[str]
    why: str


@dataclass
class Rules:
    """The contents of one rule file, merged with those of the file that it extends."""

    about: str = ""
    keep: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    includes: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    phrases: list[Phrase] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)


def available() -> dict[str, str]:
    """Returns the names of the package's rule files and their descriptions."""
    return {path.stem: load(path.stem).about for path in sorted(FOLDER.glob("*.toml"))}


def load(name: str | Path) -> Rules:
    """Reads a rule file, given by its name in the package or by a path.

    Raises:
        RuleError: if the file is missing or invalid.
    """
    return _load(name, ())


def _load(name: str | Path, extending: tuple[Path, ...]) -> Rules:
    path = Path(name) if str(name).endswith(".toml") else FOLDER / f"{name}.toml"
    content = _content(path)
    if path.resolve() in extending:
        raise RuleError(f"{extending[0]} extends itself through {path}")
    rules = Rules()
    if base := content.get("extends"):
        beside = path.parent / f"{base}.toml"
        rules = _load(beside if beside.exists() else base, (*extending, path.resolve()))
    rules.about = content.get("about", "")
    rules.keep |= set(content.get("keep", ()))
    for table in _TABLES:
        getattr(rules, table).update(content.get(table, {}))
    try:
        rules.phrases += [_phrase(entry) for entry in content.get("phrases", ())]
        rules.doubts += [
            Doubt(re.compile(entry["find"]), entry["why"]) for entry in content.get("doubts", ())
        ]
    except KeyError as error:
        raise RuleError(f"{path}: a phrase or doubt has no {error}") from error
    except (re.error, IndexError, RecursionError, OverflowError) as error:
        raise RuleError(f"{path}: a phrase or doubt has no valid regular expression: {error}") from error
    return rules


def _phrase(entry: dict[str, str]) -> Phrase:
    pattern, unless = re.compile(entry["find"]), entry.get("unless")
    pattern.sub(entry["replace"], "")  # raises if the replacement names a group that is not there
    return Phrase(pattern, entry["replace"], entry["why"], None if unless is None else re.compile(unless))


def _content(path: Path) -> dict[str, Any]:
    """Returns the checked content of a file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
        raise RuleError(f"there is no rule file {path}.\nFix: use a path, or one of {known}") from None
    except OSError as error:
        raise RuleError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also bytes that are not UTF-8
        raise RuleError(f"{path} is not TOML: {error}") from error
    if unknown := set(content) - _KEYS:
        raise RuleError(f"{path}: {', '.join(sorted(unknown))} is unknown; the keys are {sorted(_KEYS)}")
    if content.get("version") != SUPPORTED:
        raise RuleError(
            f"{path}: version {content.get('version')!r} of the format is not supported, only {SUPPORTED}"
        )
    for key, value in content.items():
        if key in _TABLES:
            valid = _is_table(value) and "" not in value
        elif key in ("phrases", "doubts"):
            valid = isinstance(value, list) and all(map(_is_table, value))
        elif key == "keep":
            valid = isinstance(value, list) and all(isinstance(name, str) for name in value)
        else:
            valid = key == "version" or isinstance(value, str)
        if not valid:
            raise RuleError(f"{path}: the value of {key} is not of the form that rules/cuda.toml shows")
    return content


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
