# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Finds errors of a compiler with a host and a device pass that a compiler for the host accepts.

mcc compiles a .mu file once, with __device__ and __host__ as empty macros. These checks read the source
text before preprocessing, and report only errors that are certain from it: calls of functions in the same
file, by unqualified name, in bodies without #if. `mcc --two-pass` performs the complete check with clang.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLANKED = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/
  | R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)" | "(?:[^"\\\n]|\\.)*"
  | (?<![\w'])'(?:[^'\\\n]|\\.)+'
  | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*$
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_CONDITIONAL = "\x01"  # replaces an #if or #else
_FUNCTION = re.compile(r"(?P<head>.*?)\b(?P<name>[A-Za-z_]\w*)\s*\Z", re.DOTALL)
_AFTER_PARAMETERS = re.compile(r"(?:\s|\bconst\b|\bnoexcept\b|\boverride\b|\bfinal\b|->\s*[\w:<>*&\s]+)*")
_NO_FUNCTION = {
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "return",
    "alignas",
    "decltype",
    "noexcept",
    "sizeof",
    "requires",
}
# A function with one of these in its head may be callable on the device. A macro may be a qualifier.
_MAYBE_DEVICE = re.compile(
    r"\b(?:constexpr|consteval|template|operator|friend|using|typedef|[A-Z][A-Z0-9_]+|__\w+__)\b"
)
_DEVICE_LAMBDA = re.compile(r"\bauto\s+(?P<name>\w+)\s*=\s*\[[^\[\]]*\]\s*__device__\s*\(")


@dataclass(frozen=True)
class Function:
    """A function of the file: the text before its name, and the range of its body (may be empty)."""

    name: str
    head: str
    begin: int
    body: int
    end: int

    @property
    def is_kernel(self) -> bool:
        return "__global__" in self.head

    @property
    def is_for_device(self) -> bool:
        """Whether it is compiled only for the device."""
        return self.is_kernel or ("__device__" in self.head and "__host__" not in self.head)

    @property
    def is_for_host(self) -> bool:
        """Whether it is certainly compiled only for the host."""
        return _MAYBE_DEVICE.search(self.head.replace("__host__", " ")) is None


def _blank(text: str) -> str:
    """Replaces comments, strings and directives by blanks, keeping positions and lines."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        spaces = re.sub(r"[^\n]", " ", found)
        if re.match(r"[ \t]*#[ \t]*(?:if|else|elif)", found):
            return _CONDITIONAL + spaces[1:]
        return spaces

    return _BLANKED.sub(blank, text)


def _closing(text: str, opening: int) -> int | None:
    pairs = {"(": ")", "{": "}", "[": "]"}
    depth = 0
    for position in range(opening, len(text)):
        if text[position] in pairs:
            depth += 1
        elif text[position] in pairs.values():
            depth -= 1
            if depth == 0:
                return position
    return None


def _functions(text: str) -> Iterator[Function]:
    """Yields the functions that are declared or defined at namespace scope."""
    start = position = 0
    while position < len(text):
        character = text[position]
        if character == "(":
            closing = _closing(text, position)
            if closing is None:
                return
            after = re.compile(r"[;{}=:]").search(text, closing + 1)
            found = _FUNCTION.fullmatch(text, start, position)
            stop = after.start() if after else len(text)
            if (
                after is not None
                and after.group() in ";{"
                and found is not None
                and found["name"] not in _NO_FUNCTION
                and found["head"].strip()
                and "=" not in found["head"]
                and _AFTER_PARAMETERS.fullmatch(text, closing + 1, stop)
            ):
                end = _closing(text, stop) if after.group() == "{" else stop
                if end is None:
                    return
                head = found["head"].replace(_CONDITIONAL, " ")
                yield Function(found["name"], head, found.start("name"), stop, end)
                start = position = end + 1
                continue
            position = closing + 1
        elif character == "{":
            if re.search(r"(?:\bnamespace\b|\bextern\b)[^;{}()=]*\Z", text[start:position]):
                start = position = position + 1
                continue
            closing = _closing(text, position)
            if closing is None:
                return
            position = closing + 1
        elif character in ";}":
            start = position = position + 1
        else:
            position += 1


_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\w+\s*)*[({]")


def _calls(body: str, name: str) -> re.Match[str] | None:
    """Finds a call by unqualified name, unless the body declares that name."""
    if re.search(rf"\b(?:auto|using|int|float|double|bool)\s*[&*]*\s*{name}\b", body):
        return None
    return re.search(rf"(?<![\w.:>~]){name}\s*\(", body)


def _refused(text: str) -> Iterator[tuple[int, str]]:
    functions = list(_functions(text))
    names = {function.name for function in functions}
    callable_by_device = {function.name for function in functions if not function.is_for_host}
    host_only = names - callable_by_device
    device_only = {
        function.name for function in functions if function.is_for_device and not function.is_kernel
    }
    device_only -= {function.name for function in functions if not function.is_for_device}
    for function in functions:
        body = text[function.body : function.end]
        # The return type may be a macro.
        if function.is_kernel and not re.search(r"\bvoid\b|\b[A-Z][A-Z0-9_]+\b", function.head):
            yield function.begin, f"the kernel {function.name} must return void"
        if _CONDITIONAL in body or function.body == function.end:
            continue
        if function.is_for_device:
            kind = "kernel" if function.is_kernel else "__device__ function"
            if thrown := re.search(r"\b(throw|try)\b", body):
                what = f"{thrown.group()} in the {kind} {function.name}: devices do not support exceptions"
                yield function.body + thrown.start(), what
            for name in sorted(host_only):
                if called := _calls(body, name):
                    what = (
                        f"the {kind} {function.name} calls the host function {name}. "
                        f"Fix: declare {name} as __device__ or __host__ __device__"
                    )
                    yield function.body + called.start(), what
        elif function.is_for_host:
            # A lambda may be device code.
            for name in () if _LAMBDA.search(body) else sorted(device_only):
                if called := _calls(body, name):
                    what = (
                        f"the host function {function.name} calls the __device__ function {name}. "
                        f"Fix: declare {name} as __host__ __device__"
                    )
                    yield function.body + called.start(), what
            for lambda_ in _DEVICE_LAMBDA.finditer(body):
                name = lambda_["name"]
                rest = body[lambda_.end() :]
                if called := re.search(rf"(?<![\w.:>]){name}\s*\(", rest):
                    what = (
                        f"the host calls {name}, a __device__ lambda. Fix: declare it as __host__ __device__"
                    )
                    yield function.body + lambda_.end() + called.start(), what


def check(source: str, path: str) -> list[str]:
    """Returns compiler-style messages, with file and line, for code that a pass certainly rejects."""
    text = _blank(source)
    return [
        f"{path}:{text.count(chr(10), 0, position) + 1}: error: {problem}"
        for position, problem in _refused(text)
    ]
