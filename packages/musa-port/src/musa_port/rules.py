# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rules of porting: what a file of rules/ says."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rules"
SUPPORTED = 1  # version of the format
_TABLES = ("names", "prefixes", "words", "includes", "paths")
_KEYS = {"version", "about", "extends", "keep", "phrases", "doubts", *_TABLES}


class RuleError(ValueError):
    """A file of rules that cannot be used. Says which, and what is wrong with it."""


@dataclass(frozen=True)
class Phrase:
    """A replacement that needs more than one name to be known.

    A source in which `unless` matches is left as it is, such as one that defines a function itself.
    """

    pattern: re.Pattern[str]
    replacement: str
    why: str
    unless: re.Pattern[str] | None = None


@dataclass(frozen=True)
class Doubt:
    """What, if it is there after porting, asks for a look."""

    pattern: re.Pattern[str]
    why: str


@dataclass
class Rules:
    """The contents of one file, over those of the file that it extends."""

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
    """The names of the rule files that come with the package, and what each is for."""
    return {path.stem: load(path.stem).about for path in sorted(FOLDER.glob("*.toml"))}


def load(name: str | Path) -> Rules:
    """Read rules by the name of a file of the package, or by the path of one of your own.

    Raises:
        RuleError: there is no such file, or it is not what it should be.
    """
    path = Path(name) if str(name).endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
        raise RuleError(f"There are no rules at {path}. With the package come: {known}") from None
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{path} is not TOML: {error}") from error
    if unknown := set(content) - _KEYS:
        raise RuleError(
            f"{path}: {', '.join(sorted(unknown))} is no part of the rules: they are {sorted(_KEYS)}"
        )
    if content.get("version") != SUPPORTED:
        raise RuleError(
            f"{path}: version {content.get('version')!r} of the rules; this porting engine reads {SUPPORTED}"
        )
    base = content.get("extends")
    rules = (
        load(path.parent / f"{base}.toml" if base and (path.parent / f"{base}.toml").exists() else base)
        if base
        else Rules()
    )
    rules.about = content.get("about", "")
    rules.keep |= set(content.get("keep", ()))
    for table in _TABLES:
        getattr(rules, table).update(content.get(table, {}))
    try:
        rules.phrases += [
            Phrase(
                re.compile(entry["find"]),
                entry["replace"],
                entry["why"],
                re.compile(entry["unless"]) if "unless" in entry else None,
            )
            for entry in content.get("phrases", ())
        ]
        rules.doubts += [
            Doubt(re.compile(entry["find"]), entry["why"]) for entry in content.get("doubts", ())
        ]
    except KeyError as error:
        raise RuleError(f"{path}: a phrase or doubt without {error}") from error
    except re.error as error:
        raise RuleError(f"{path}: {error.pattern!r} is no pattern: {error}") from error
    return rules
