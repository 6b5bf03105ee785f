# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rule of this tree: a C++ class has fewer than 40 methods.

A method is a member function that the class declares, including overrides, overloads, static functions and
operators. Constructors, destructors, friends, and defaulted or deleted functions do not count. Headers are
parsed as text, without a compiler.

A class that cannot be smaller needs a comment directly above it:
`// 40 methods or more: c10::Interface has 52 virtual functions.`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LIMIT = 40
HEADER = re.compile(r"packages/[^/]+/csrc/.*\.(h|hpp|muh)$")
EXCEPTION = re.compile(rf"^\s*//\s*{LIMIT} methods or more:\s*(.*)$")
_SPACE = re.compile(r"[^\n]")
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_LITERAL = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"' + r"|'(?:\\.|[^'\\\n])'"
_PREPROCESSOR = r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*"
_HIDDEN = re.compile(f"{_COMMENT}|{_LITERAL}|{_PREPROCESSOR}", re.DOTALL | re.MULTILINE)
_ATTRIBUTES = r"(?:\[\[[^]]*\]\]\s*)?(?:[A-Z_0-9]+(?:\([^)]*\))?\s+)?"
_CLASS = re.compile(rf"\b(?<!enum )(?:class|struct)\s+{_ATTRIBUTES}(\w[\w:]*)")
_NOT_A_METHOD = re.compile(r"\b(?:using|typedef|friend|static_assert|enum|class|struct|union)\b")


@dataclass(frozen=True)
class CppClass:
    name: str
    line: int
    methods: tuple[str, ...]


def blank(text: str) -> str:
    """Replaces comments, literals and preprocessor lines by spaces."""
    return _HIDDEN.sub(lambda match: _SPACE.sub(" ", match.group(0)), text)


def matching(text: str, start: int, opening: str, closing: str) -> int:
    """Returns the position after the bracket that closes the one at ``start``, or the text's end."""
    depth = 0
    for position in range(start, len(text)):
        if text[position] == opening:
            depth += 1
        elif text[position] == closing:
            depth -= 1
            if depth == 0:
                return position + 1
    return len(text)


def declarations(body: str) -> Iterator[str]:
    """Yields the member declarations of a class, without the contents of braces."""
    start = position = 0
    while position < len(body):
        if body[position] == "(":
            position = matching(body, position, "(", ")")
        elif body[position] == "{":
            head = body[start:position]
            position = matching(body, position, "{", "}")
            # Otherwise an initializer or a nested type, whose declaration continues up to its
            # semicolon.
            if "(" in head and body[position:].lstrip()[:1] != ",":
                yield head
                start = position
        elif body[position] == ";":
            yield body[start:position]
            position += 1
            start = position
        else:
            position += 1


def without_template_arguments(text: str) -> str:
    """Removes ``<...>``, which may contain parentheses; keeps ``operator<`` etc."""
    text = re.sub(r"\boperator\s*(?:<=>|<<=?|>>=?|<=?|>=?|->\*?)", "operator@", text)
    while True:
        shorter = re.sub(r"<[^<>]*>", "", text.replace("->", "  "))
        if shorter == text:
            return text
        text = shorter


def method_name(declaration: str, owner: str) -> str | None:
    """Returns the name of the declared member function, or None."""
    text = re.sub(r"\b(?:public|protected|private)\s*:(?!:)", " ", declaration)
    text = re.sub(r"\[\[.*?\]\]|\b(?:alignas|explicit|noexcept|decltype)\s*\([^()]*\)", " ", text)
    text = re.sub(r"^\s*template\s*<", "<", without_template_arguments(text)).strip()
    text = re.sub(r"^(?:template\b\s*)+", "", text)
    if re.search(r"\)[^()]*=\s*(?:default|delete)\s*$", text):
        return None
    operator = re.search(r"\boperator\b\s*(\(\s*\)|[^\s(]+(?:\s+[^\s(]+)*)?\s*\(", text)
    if operator:
        return None if re.match(r"friend\b", text) else f"operator {(operator.group(1) or '').strip()}"
    found = re.match(r"([^=(]*?)(~?\s*\w+)\s*\(", text)
    if not found or _NOT_A_METHOD.search(found.group(1)):
        return None
    before, name = found.group(1).strip(), found.group(2).replace(" ", "")
    if name.lstrip("~") == owner or re.match(r"\(\s*[*&]", text[found.end(2) :].lstrip()):
        return None  # a constructor or destructor, or a pointer to a function
    returns = re.sub(r"\b(?:virtual|static|inline|constexpr|explicit|extern)\b", "", before).strip()
    return name if returns else None  # a macro has no return type


def classes(text: str) -> Iterator[CppClass]:
    """Yields the classes that a header defines, including nested ones."""
    code = blank(text)
    for found in _CLASS.finditer(code):
        head = re.match(r"[^;{}()=]*\{", code[found.end() :])
        if not head or re.match(r"\s*[,>]", code[found.end() :]):  # only declared, or a template parameter
            continue
        opening = found.end() + head.end() - 1
        body = code[opening + 1 : matching(code, opening, "{", "}") - 1]
        name = found.group(1).rsplit("::", 1)[-1]
        methods = (method_name(declaration, name) for declaration in declarations(body))
        yield CppClass(name, code.count("\n", 0, found.start()) + 1, tuple(filter(None, methods)))


def stated_reason(lines: list[str], line: int) -> str | None:
    """Returns the reason in the exception comment above a class; None without such a comment."""
    above = line - 2
    while above >= 0 and (lines[above].lstrip().startswith("//") or lines[above].startswith("template")):
        if match := EXCEPTION.match(lines[above]):
            return match.group(1).strip()
        above -= 1
    return None


def check_class_sizes(texts: Mapping[str, str]) -> list[str]:
    """Returns classes with too many methods, and exceptions no longer needed, as ``name:line: text``."""
    found = []
    for name, text in texts.items():
        if not HEADER.match(name):
            continue
        lines = text.splitlines()
        for cls in classes(text):
            count, reason = len(cls.methods), stated_reason(lines, cls.line)
            if count >= LIMIT and not reason:
                found.append(
                    f"{name}:{cls.line}: class {cls.name} has {count} methods; the limit is {LIMIT - 1}. "
                    f"Fix: move a part to another class, or add above it: // {LIMIT} methods or more: <why>"
                )
            elif count < LIMIT and reason is not None:
                found.append(f"{name}:{cls.line}: class {cls.name} has {count} methods; remove the exception")
    return found
