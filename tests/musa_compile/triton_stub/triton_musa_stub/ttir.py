# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Parses the text of a module in Triton's IR (TTIR) with one function, as MLIR prints it."""

from __future__ import annotations

import dataclasses
import re

import torch

DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}

_OPERATION = re.compile(
    r'(?:%(?P<result>[\w-]+)(?::(?P<count>\d+))? = )?"?(?P<name>[a-z]\w*(?:\.\w+)+)"?(?P<rest>.*)'
)
_ATTRIBUTES = re.compile(r"<?\{([^{}]*)\}>?")
_VALUE = re.compile(r"%([\w-]+(?:#\d+)?)")
_TYPE = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>|!tt\.ptr<[^<>]*>|\b(?:i|f|bf)\d+\b|\bindex\b")
_ARGUMENT = re.compile(r"%([\w-]+): ([^,{) ]+)(?: \{([^}]*)\})?")


@dataclasses.dataclass
class Type:
    """A scalar or a tensor of it."""

    shape: tuple[int, ...]
    element: str  # "f32", or "!tt.ptr<f32>"

    @property
    def dtype(self) -> torch.dtype:
        return torch.int64 if self.is_pointer else DTYPES[self.element]  # pointers are addresses

    @property
    def is_pointer(self) -> bool:
        return self.element.startswith("!tt.ptr")

    @property
    def pointee(self) -> torch.dtype:
        return DTYPES[self.element[len("!tt.ptr<") : -1]]

    @staticmethod
    def parse(text: str) -> Type:
        if not text.startswith("tensor<"):
            return Type((), text.strip())
        *sizes, element = text[len("tensor<") : -1].split("x", text.split("!")[0].count("x"))
        return Type(tuple(map(int, sizes)), element)


@dataclasses.dataclass
class Operation:
    """One operation. `text` is the part after its name, without attributes and types."""

    name: str
    results: list[str]
    operands: list[str]
    text: str
    attributes: str
    types: list[Type]  # in the order of the text: the last is a result's
    regions: list[Region] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Region:
    """Operations, with the names of the region's arguments."""

    arguments: list[str]
    body: list[Operation]


@dataclasses.dataclass
class Argument:
    """An argument of the kernel."""

    name: str
    type: Type
    divisibility: int  # assumed by the compiler


@dataclasses.dataclass
class Kernel:
    """The function of a module."""

    name: str
    arguments: list[Argument]
    body: list[Operation]


def parse(text: str) -> Kernel:
    """The kernel in the text of a module that was printed without locations."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    at = next(number for number, line in enumerate(lines) if line.startswith("tt.func"))
    name, arguments = re.match(r"tt\.func \w+ @(\w+)\((.*?)\) (?:attributes .*)?\{$", lines[at]).groups()
    parsed = []
    for each, kind, attributes in _ARGUMENT.findall(arguments):
        divisibility = re.search(r"tt\.divisibility = (\d+)", attributes)
        parsed.append(Argument(each, Type.parse(kind), int(divisibility[1]) if divisibility else 1))
    body, _ = _body(lines, at + 1)
    return Kernel(name, parsed, body)


def _body(lines: list[str], at: int) -> tuple[list[Operation], int]:
    """Operations up to the brace that closes the region, and the number of the line with that brace."""
    operations = []
    while not lines[at].startswith("}"):
        operation, at = _operation(lines, at)
        operations.append(operation)
    return operations, at


def _operation(lines: list[str], at: int) -> tuple[Operation, int]:
    line = lines[at]
    match = _OPERATION.match(line)
    if match is None:
        raise NotImplementedError(f"the stub cannot parse the line {line!r}")
    rest = match["rest"]
    opened = rest.endswith("{")
    rest = rest.removesuffix("({").removesuffix("{")
    attributes = " ".join(_ATTRIBUTES.findall(rest))
    rest = re.sub(r'"[^"]*"', "", _ATTRIBUTES.sub("", rest))
    text, _, types = rest.partition(" : ")
    arguments: list[str] = []
    if match["name"] == "scf.for":  # %i = %from to %to step %step iter_args(%a = %b, ...) -> (types)  : i32
        text, _, types = rest.partition(" -> ")
        carried = re.findall(r"%([\w-]+) = %([\w#-]+)", text)
        index, first = carried[0]
        last, step = re.search(r"to %([\w#-]+) step %([\w#-]+)", text).groups()
        arguments = [index, *(name for name, _ in carried[1:])]
        operands = [first, last, step, *(value for _, value in carried[1:])]
    else:
        operands = _VALUE.findall(text.partition(" -> ")[0])
    at += 1
    regions = []
    after = types
    while opened:
        if lines[at].startswith("^bb0"):
            arguments = re.findall(r"%([\w-]+):", lines[at])
            at += 1
        body, at = _body(lines, at)
        regions.append(Region(arguments, body))
        opened = lines[at] == "} else {"
        if lines[at].startswith("})"):
            after = lines[at].partition(" : ")[2]
        at += 1
    results = []
    if match["result"]:
        count = int(match["count"] or 0)
        results = [f"{match['result']}#{number}" for number in range(count)] or [match["result"]]
    kinds = [Type.parse(kind) for kind in _TYPE.findall(after)]
    return Operation(match["name"], results, operands, text, attributes, kinds, regions), at
