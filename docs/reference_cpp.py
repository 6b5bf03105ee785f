# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the reference of the C++ API from the comments in the public headers of musa-runtime.

python docs/reference_cpp.py --out FILE

The headers use plain `//` comments directly above a declaration, which Doxygen ignores. The reader below
handles as much of C++ as these headers need: comments, namespaces, classes, access, functions and fields.
"""

import itertools
import pathlib
import re
from typing import NamedTuple

import pages

ROOT = pathlib.Path(__file__).resolve().parents[1]
HEADERS = ROOT / "packages" / "musa-runtime" / "csrc"
FOLDERS = ("c10/musa", "ATen/musa", "musa_runtime")
INTRODUCTION = """\
# C++ API

Written by `python docs/reference_cpp.py` from the comments in the headers of `musa-runtime`, which
`python -m musa_runtime.config --includedir` locates. Declarations are those in the headers, without bodies.

"""
# Namespaces whose content is not for callers.
INTERNAL = ("detail", "impl", "std")
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>R"\((?:.*?)\)"|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')"""
    r"""|(?P<directive>^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*)|(?P<mark>[{}();:<>,=])|(?P<space>\s+)"""
    r"""|(?P<word>[\w]+|.)""",
    re.MULTILINE | re.DOTALL,
)
ACCESS = ("public", "protected", "private")


class Declaration(NamedTuple):
    """A declaration: the names of the scopes around it, its text, and the comment above or behind it."""

    scope: tuple
    text: str
    comment: str


class Scope(NamedTuple):
    """An open brace of a namespace or a class: its name, and whether declarations in it are visible."""

    kind: str
    name: str
    visible: bool


class Reader:
    """Reads the declarations of one header, in order."""

    def __init__(self, text):
        self.tokens = [(match.lastgroup, match[0]) for match in TOKEN.finditer(text)]
        self.position = 0
        self.scopes = []
        self.declarations = []

    def read(self):
        comment, code, depth = [], "", 0
        while self.position < len(self.tokens):
            kind, text = self.tokens[self.position]
            self.position += 1
            if kind == "directive":
                comment = []
            elif kind == "comment":
                if not code.strip():
                    comment.append(text)
            elif kind == "space":
                code += " "
                # A blank line separates a comment from what follows.
                if text.count("\n") > 1 and not code.strip():
                    comment = []
            elif text in "(" and kind == "mark":
                depth, code = depth + 1, code + text
            elif text in ")" and kind == "mark":
                depth, code = depth - 1, code + text
            elif depth or kind in ("text", "word"):
                code += text
            elif text == "{":
                comment, code = self._open(code, comment)
            elif text == "}":
                if self.scopes:
                    self._close(code)
                comment, code = [], ""
            elif text == ";":
                self._add(code, comment + self._behind())
                comment, code = [], ""
            elif text == ":" and code.strip() in ACCESS:
                self.scopes[-1] = self.scopes[-1]._replace(visible=code.strip() == "public")
                comment, code = [], ""
            else:
                code += text
        return self.declarations

    def _behind(self):
        """The comment on the rest of the line, which belongs to the declaration that has just ended."""
        position = self.position
        if position < len(self.tokens) and self.tokens[position][0] == "space":
            if "\n" in self.tokens[position][1]:
                return []
            position += 1
        if position < len(self.tokens) and self.tokens[position][0] == "comment":
            self.position = position + 1
            return [self.tokens[position][1]]
        return []

    def _open(self, code, comment):
        """Enters a scope, or skips a body or an initialiser. Returns the pending comment and code."""
        plain = " ".join(code.split())
        if namespace := re.match(r"(?:inline )?namespace ?([\w:]*)$", plain):
            self.scopes.append(Scope("namespace", namespace[1], namespace[1] not in ("", *INTERNAL)))
            return [], ""
        without = re.sub(r"^template ?<.*?> ?(?=class|struct)", "", plain)
        type_ = re.match(r"(?:typedef )?(class|struct|union|enum(?: class| struct)?)\b(.*)$", without)
        if type_ and "(" not in re.sub(r"\([^()]*\)", "", type_[2]):
            name = re.match(
                r"(?: (?:C10_\w+|alignas\([^)]*\)|\[\[.*?\]\]))* ?([\w:<>, ]*?)(?: final)?(?: ?: .*)?$",
                type_[2],
            )
            title = name[1].strip() if name else ""
            self._add(code, comment)
            if type_[1].startswith("enum"):
                self._enumerators()
                return [], ""
            self.scopes.append(Scope("type", title, type_[1] != "class"))
            return [], ""
        self._skip()
        if plain.endswith(")") or re.search(r"\)[^()]*$|\) ?:.*$", plain):
            self._add(self._signature(plain), comment)
            return [], ""
        return comment, code

    def _enumerators(self):
        start = self.position
        self._skip()
        body = "".join(text for kind, text in self.tokens[start : self.position - 1] if kind != "comment")
        last = self.declarations[-1] if self.declarations else None
        if last and self._visible():
            self.declarations[-1] = last._replace(text=f"{last.text} {{ {' '.join(body.split())} }}")

    def _close(self, code):
        self.scopes.pop()

    def _skip(self):
        depth = 1
        while depth and self.position < len(self.tokens):
            kind, text = self.tokens[self.position]
            depth += (kind == "mark") * ((text == "{") - (text == "}"))
            self.position += 1

    @staticmethod
    def _signature(plain):
        """A function without the initialisers of its members: `name(parameters) const`."""
        depth = 0
        for index, letter in enumerate(plain):
            depth += (letter == "(") - (letter == ")")
            # A colon after the parameters, which is not one half of `::`.
            single = letter == ":" and depth == 0 and "::" not in plain[max(0, index - 1) : index + 2]
            if single and plain[:index].rstrip().endswith((")", "noexcept")):
                return plain[:index].rstrip()
        return plain

    def _visible(self):
        return all(scope.visible for scope in self.scopes) and any(s.kind == "namespace" for s in self.scopes)

    def _add(self, code, comment):
        text = re.sub(
            r"\bC10_(?:MUSA_)?(?:API|ALWAYS_INLINE|NODISCARD|UNUSED)\w* ?", "", " ".join(code.split())
        )
        if (
            not text
            or not self._visible()
            or text.startswith(("friend ", "using namespace", "static_assert"))
        ):
            return
        names = tuple(name for scope in self.scopes for name in scope.name.split("::") if name)
        lines = [line for part in comment for line in part.removeprefix("/*").removesuffix("*/").splitlines()]
        prose = "\n".join(line.strip().removeprefix("//").removeprefix(" ").rstrip() for line in lines)
        self.declarations.append(Declaration(names, text, prose))


def header_comment(text):
    """The first comment after the includes that is followed by a blank line: what the header is about."""
    found = re.search(r"\n\n((?://[^\n]*\n)+)\n", text)
    if not found or "SPDX" in found[1]:
        return ""
    return "\n".join(line.removeprefix("//").removeprefix(" ") for line in found[1].splitlines())


def headers():
    """The public headers, as paths for #include."""
    return [f"{folder}/{path.name}" for folder in FOLDERS for path in sorted((HEADERS / folder).glob("*.h"))]


def commented(prose):
    """A comment of a header as Markdown; its indented lines are code or a table."""
    result = []
    for indented, lines in itertools.groupby(prose.splitlines(), lambda line: line.startswith("  ")):
        if indented:
            block = [line[2:] for line in lines]
            is_code = any(line.endswith((";", "{", "}")) for line in block)
            result += ["", "```cpp" if is_code else "```text", *block, "```", ""]
        else:
            result += [re.sub(r"([<>*_])", r"\\\1", line) for line in lines]
    return "\n".join(result).strip()


def section(header, text):
    """The part of the page about one header; empty if it declares nothing for callers."""
    declarations = Reader(text).read()
    if not declarations:
        return ""
    result = f"### {header.rpartition('/')[2]}\n\n`#include <{header}>`\n\n"
    if about := header_comment(text):
        result += commented(about) + "\n\n"
    scope, plain = None, []
    for declaration in declarations:
        if declaration.scope != scope:
            result += fence(plain)
            scope, plain = declaration.scope, []
            result += f"**`{'::'.join(scope)}`**\n\n"
        if declaration.comment:
            result += fence(plain) + fence([declaration.text]) + commented(declaration.comment) + "\n\n"
            plain = []
        else:
            plain.append(declaration.text)
    return result + fence(plain)


def fence(declarations):
    """A code block with declarations, empty if there are none."""
    return "```cpp\n" + "".join(f"{text};\n" for text in declarations) + "```\n\n" if declarations else ""


def page():
    text = INTRODUCTION
    for folder in FOLDERS:
        text += f"## {folder}\n\n"
        for path in sorted((HEADERS / folder).glob("*.h")):
            text += section(f"{folder}/{path.name}", path.read_text(encoding="utf-8"))
    return text


if __name__ == "__main__":
    pages.main(page, __file__, __doc__)
