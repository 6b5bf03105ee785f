# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Names of the MUSA SDK in lists with evidence, and in the text of sources.

A list has a name and the kind of its evidence on each line; see KINDS. Sources are read as text, without a
compiler, so names in parts that are only compiled with another SDK count too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

KINDS = {
    "call": "public code that is built with the vendor's SDK uses it",
    "doc": "documentation of the vendor describes it",
    "shim": "a public adapter over muDNN's C API declares it, in place of the C++ class",
    "name": "a public table of names has it: a mapping from CUDA, or the callbacks of a profiler",
}

_BLANKED = re.compile(r"//[^\n]*|/\*.*?\*/|R\"(\w*)\(.*?\)\1\"|\"(?:[^\"\\\n]|\\.)*\"", re.DOTALL)
_C_NAME = re.compile(
    r"\b(?:(?:musa|mu|mccl|mupti|mublas|murand|mufft|musparse|musolver|mudnn)[A-Z]\w*"
    r"|(?:MU|MUSA|MUPTI|MCCL|MUDNN|MUBLAS)_[A-Z]\w*|MU[a-z]\w+|__mt_\w+)\b"
)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_ALIAS = re.compile(r"\busing\s+(\w+)\s*=\s*((?:(?:::)?musa::)?dnn::)?([\w:]+)\s*;")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^()]*)\)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_QUALIFIED = re.compile(r"(?<![\w:])(?:(?:::)?musa::)?dnn::(\w+(?:::\w+)*)|(?<![\w:])(\w+)::(\w+(?:::\w+)*)")


def read_list(path: Path) -> dict[str, str]:
    """The names of a list and their kinds of evidence.

    Raises:
        ValueError: a line has no kind, or one that is not in KINDS.
    """
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, *kind = line.split()
        if len(kind) != 1 or kind[0] not in KINDS:
            raise ValueError(
                f"{path.name}:{number}: {line!r} needs one kind of evidence of {', '.join(KINDS)}"
            )
        found[name] = kind[0]
    return found


def without_comments(text: str) -> str:
    return _BLANKED.sub(" ", text)


def c_names(texts: Iterable[str]) -> set[str]:
    """Functions, types, enumerators and macros of the SDK's C interfaces, except macros of the texts."""
    used: set[str] = set()
    own: set[str] = set()
    for text in map(without_comments, texts):
        used |= set(_C_NAME.findall(text))
        own |= set(_DEFINED.findall(text))
    return used - own


def mudnn_names(texts: Mapping[str, str]) -> set[str]:
    """Classes, nested types and enumerators of musa::dnn, by their full names; aliases are resolved.

    Args:
        texts: sources by path. An alias in a header applies to all of them, one in another file to that file.
    """
    blanked = {path: without_comments(text) for path, text in texts.items()}
    everywhere: dict[str, str] = {}
    for path, text in blanked.items():
        if path.endswith(".h"):
            everywhere |= _aliases(text, {})
    used = set()
    for text in blanked.values():
        aliases = {**everywhere, **_aliases(text, everywhere)}
        for direct, alias, rest in _QUALIFIED.findall(text):
            name = direct or (f"{aliases[alias]}::{rest}" if alias in aliases else "")
            scope, _, last = name.rpartition("::")
            if arguments := _arguments(text, last):
                used |= {f"musa::dnn::{scope}::{argument}" for argument in arguments}
            elif name:
                used.add(f"musa::dnn::{name}")
    return used


def _aliases(text: str, known: Mapping[str, str]) -> dict[str, str]:
    """The aliases of a text for names in dnn, also through other aliases."""
    found: dict[str, str] = {}
    for name, dnn, target in _ALIAS.findall(text):
        first, separator, rest = target.partition("::")
        if dnn:
            found[name] = target
        elif first in found or first in known:
            found[name] = (found.get(first) or known[first]) + separator + rest
    return found


def _arguments(text: str, parameter: str) -> set[str]:
    """The arguments that the text passes for a parameter of its macros; empty if no macro has it."""
    passed = set()
    for macro, parameters, _ in _MACRO.findall(text):
        names = [name.strip() for name in parameters.split(",")]
        if parameter not in names:
            continue
        place = names.index(parameter)
        for call in re.findall(rf"\b{macro}\(([^()]*)\)", text):
            if call != parameters:
                passed.add(call.split(",")[place].strip())
    return passed
