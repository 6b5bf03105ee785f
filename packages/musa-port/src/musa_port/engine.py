# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ports the text of C++ and CUDA sources by rules. Does not access files."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from .rules import Rules

# Tokens. Comments and strings are kept unchanged, including the names in them.
_PIECE = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<include>^[ \t]*\#[ \t]*include[ \t]*[<"][^>"\n]+[>"])
  | (?P<string>R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*")
  | (?P<number>\b\d(?:'?[\w.])*)
  | (?P<character>'(?:[^'\\\n]|\\.)+')
  | (?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# Header libraries whose files have the same paths for MUSA (muAlg, muThrust, mutlass).
FOREIGN = ("cub/", "thrust/", "cutlass/", "cute/")
# Names visible to Python: modules, and namespaces under torch.ops. They are kept, because Python
# code uses them.
_SEEN_BY_PYTHON = re.compile(
    r"\b(?:(?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?|PYBIND11_MODULE)\s*\(\s*(?P<name>\w+)"
    r"|\b(?P<init>PyInit_\w+)"
)
_KEPT = ("comment", "string", "number", "character")


@dataclass
class Doubted:
    """A place in a source that needs manual changes."""

    line: int
    text: str
    why: str


@dataclass
class Ported:
    """The result of porting one source."""

    text: str
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (before, after) -> count
    doubts: list[Doubted] = field(default_factory=list)


class Engine:
    """Applies one set of rules. Porting is idempotent."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        words = sorted(rules.words, key=len, reverse=True)
        self._word = re.compile("|".join(map(re.escape, words))) if words else None
        paths = sorted(rules.paths, key=len, reverse=True)
        self._path = re.compile("|".join(map(re.escape, paths))) if paths else None
        self.name = lru_cache(maxsize=None)(self._name)

    def _name(self, name: str) -> str:
        """Returns MUSA's name for a name of CUDA."""
        rules = self.rules
        if name in rules.keep:
            return name
        if name in rules.names:
            return rules.names[name]
        for prefix in sorted(rules.prefixes, key=len, reverse=True):
            rest = name[len(prefix) :]
            if name.startswith(prefix) and rest[:1].isupper():
                name = rules.prefixes[prefix] + rest
                break
        return self._word.sub(lambda match: rules.words[match.group()], name) if self._word else name

    def path(self, path: str) -> str:
        """Returns the ported path of a header or name of a file."""
        if path in self.rules.includes:
            return self.rules.includes[path]
        if path.startswith(FOREIGN):
            return path
        return self._path.sub(lambda match: self.rules.paths[match.group()], path) if self._path else path

    def port(self, text: str) -> Ported:
        """Ports one source."""
        result = Ported(text)
        for phrase in self.rules.phrases:
            if phrase.unless and phrase.unless.search(text):
                continue
            text = self._outside_of_comments(text, phrase.pattern, phrase.replacement, result)
        seen = {match.start(match.lastgroup) for match in _SEEN_BY_PYTHON.finditer(text)}  # type: ignore[arg-type]
        pieces = []
        position = 0
        for match in _PIECE.finditer(text):
            pieces.append(text[position : match.start()])
            position = match.end()
            before = match.group()
            if match["name"] is not None:
                after = before if match.start() in seen else self.name(before)
            elif match["include"] is not None:
                after = re.sub(r'(?<=[<"])[^<>"]+(?=[>"])', lambda found: self.path(found.group()), before)
            else:
                after = before
            if after != before:
                result.changes[before.strip(), after.strip()] += 1
            pieces.append(after)
        pieces.append(text[position:])
        result.text = "".join(pieces)
        self._doubt(result)
        return result

    def _outside_of_comments(
        self, text: str, pattern: re.Pattern[str], replacement: str, result: Ported
    ) -> str:
        """Replaces matches outside of comments and strings."""
        spans = [
            match.span() for match in _PIECE.finditer(text) if match.lastgroup in (*_KEPT, "mark", "include")
        ]

        def replace(match: re.Match[str]) -> str:
            if any(begin <= match.start() < end for begin, end in spans):
                return match.group()
            after = match.expand(replacement)
            if after != match.group():
                result.changes[match.group(), after] += 1
            return after

        return pattern.sub(replace, text) if pattern.search(text) else text

    def _doubt(self, result: Ported) -> None:
        code = _PIECE.sub(
            lambda match: (
                re.sub(r"[^\n]", " ", match.group()) if match["comment"] is not None else match.group()
            ),
            result.text,
        )
        for doubt in self.rules.doubts:
            for match in doubt.pattern.finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                result.doubts.append(Doubted(line, code.splitlines()[line - 1].strip(), doubt.why))
        result.doubts.sort(key=lambda doubted: doubted.line)
