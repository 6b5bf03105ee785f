# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Declarations of C functions, read out of headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Function:
    """A declared function; `parameters` are pairs of a type and a name."""

    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def declared(self) -> str:
        return ", ".join(f"{kind} {name}" for kind, name in self.parameters)

    @property
    def passed(self) -> str:
        return ", ".join(name for _, name in self.parameters)


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", " ", text, flags=re.S))


def functions(header: Path, prefix: str) -> list[Function]:
    """The functions of a header whose names begin with `prefix` and a capital letter, in its order."""
    text = without_comments(header.read_text(encoding="utf-8"))
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", " ", text, flags=re.M | re.S)
    text = re.sub(r"MUSA_DEFAULT_ARGUMENT\((?:[^()]|\([^()]*\))*\)", "", text)
    # Bodies of inline functions hold calls; function bodies and structures are left out.
    text = re.sub(r'\bextern\s*"C"\s*\{|MUSA_EXTERN_C_(?:BEGIN|END)', " ", text)
    while (shorter := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = shorter
    found = []
    pattern = rf"(?:^|[;}}])\s*(?:MUSA_PUBLIC\s+)?([\w\s\*]+?)\b({prefix}[A-Z]\w*)\s*\(([^;]*?)\)\s*(?=;)"
    for match in re.finditer(pattern, text):
        result, name, listed = match.groups()
        result = " ".join(re.sub(r"\bMUSA_PUBLIC\b", "", result).split())
        if not result or result.split()[0] in ("typedef", "return", "static"):
            continue
        parameters = []
        for parameter in listed.split(","):
            words = " ".join(parameter.split())
            if words not in ("", "void"):
                kind, argument = re.fullmatch(r"(.*?)(\w+)", words).groups()
                parameters.append((kind.strip(), argument))
        found.append(Function(name, result, tuple(parameters)))
    return list({function.name: function for function in found}.values())


def names(header: Path, pattern: str) -> set[str]:
    """Returns the text that the group in `pattern` matches in a header of CUDA."""
    return set(re.findall(pattern, without_comments(header.read_text(encoding="utf-8"))))


def enumerators(header: Path, prefix: str) -> list[str]:
    """Names with `prefix` that an enumeration of the header gives a number, in its order."""
    text = without_comments(header.read_text(encoding="utf-8"))
    return list(dict.fromkeys(re.findall(rf"\b({prefix}\w*)\s*=\s*\d+", text)))
