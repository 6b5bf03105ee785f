# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Rewrites a preprocessed .mu file to C++: launches, and variables in shared and constant memory.

The macros of simt/device.h leave reserved words (``__musa_shared__``), which are replaced here together with
the declaration that follows. Lines keep their numbers, so that error messages refer to the source.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

# Tokens to skip, and tokens to rewrite.
_TOKEN = re.compile(
    r"""
    (?P<assembly>\b(?:asm|__asm__|__asm)\s*(?:volatile\s*|__volatile__\s*)?
      \(\s*"\s*(?P<instruction>trap|exit)\s*;?\s*"\s*:*\s*\))
  | (?P<raw>R"(?P<delimiter>[^()\s\\]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<number>\b\d(?:'?[\w.])*)
  | (?P<char>'(?:[^'\\\n]|\\.)+')
  | (?P<line>^\#[^\n]*$)
  | (?P<launch><<<)
  | (?P<pragma>\#\s*pragma\s+(?:no)?unroll\b(?:[ \t]*\([^()\n]*\)|[ \t]+\d+)?)
  | (?P<clock>(?<![\w.>:])(?:::\s*)?\bclock\s*\(\s*\))
  | (?P<word>__musa_(?:shared|constant|global)__|\b__noinline__\b)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_SKIPPED = ("raw", "string", "number", "char", "line")
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"', re.MULTILINE)
_TYPE_WORDS = {
    None,
    *["auto", "bool", "char", "double", "float", "int", "long", "short", "signed", "unsigned"],
}
_KEYWORDS = {"return", "else", "do", "if", "while", "for", "switch", "case", "co_return", "co_yield"}
_STORAGE = {"static", "extern", "volatile", "inline"}
_NO_NAMES = _TYPE_WORDS | {"const", "volatile", "typename", "class", "__restrict__", "__restrict"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class SourceError(Exception):
    """The source cannot be parsed. The message has file, line and reason."""


@dataclass
class Edit:
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Declared:
    """A kernel's declaration.

    The number of template parameters without a default, the number of all template parameters, the types of
    the function's parameters, their number, and whether some have a default argument.
    """

    required: int
    parameters: int
    signature: str
    count: int
    defaults: bool


@dataclass(frozen=True)
class Definition:
    """The definition of a `__global__` function, as needed to register it."""

    name: str
    arguments: str | None  # the template arguments; "" if not a template, None if they cannot be named
    specialization: bool
    parameters: tuple[int, int]  # range of the parameter list
    body: tuple[int, int]  # range of the braces


class Rewriter:
    """Rewrites one translation unit."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[Edit] = []
        self.kernels: dict[str, set[Declared]] = {}
        # By name: number of declarations and launches. Any other use may take the kernel's address.
        self.uses: Counter[str] = Counter()
        self._addressed: dict[str, bool] = {}
        self.definitions: list[Definition] = []
        # By name and number of parameters: for each template definition, where `const T x` could
        # become `const T& x`; None for each other declaration.
        self.constants: dict[tuple[str, int], list[dict[int, int] | None]] = {}
        self.shared = 0
        self._markers = [(m.end(), int(m.group(1)), m.group(2)) for m in _MARKER.finditer(text)]

    def rewrite(self) -> str:
        launches = []
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind in _SKIPPED or kind == "delimiter":
                continue
            if kind == "launch":
                launches.append(match.start())
            elif match.group("instruction"):
                # The two GPU instructions that libraries use as inline assembly.
                call = {"trap": "::__trap()", "exit": "::__musa_exit()"}[match.group("instruction")]
                self.edits.append(Edit(match.start(), match.end(), call))
            elif kind == "pragma":
                # From a macro, in the middle of a line, which nvcc accepts. Only a hint, so it is dropped.
                self.edits.append(Edit(match.start(), match.end(), ""))
            elif kind == "clock":
                # clock() counts cycles in kernels, else processor time. `int clock()` is a declaration.
                before = re.search(
                    r"(\w+)\s*\Z|[*&]\s*\Z", self.text[max(0, match.start() - 100) : match.start()]
                )
                if before is None or before[1] in _KEYWORDS or before[0].strip() in ("*", "&"):
                    self.edits.append(Edit(match.start(), match.end(), "::musa_simt::clock_ticks()"))
            elif match.group() == "__noinline__":
                # A kernel qualifier; host headers use the name inside __attribute__((...)).
                if self.text[self._space_back(match.start()) - 1] not in "(,":
                    self.edits.append(Edit(match.start(), match.end(), "__attribute__((noinline))"))
            elif match.group() == "__musa_global__":
                self._kernel(match)
            elif match.group() == "__musa_shared__":
                self._shared(match)
            else:
                self._constant(match)
        expressions = [(position, self._expression_before(position)) for position in launches]
        for position, begin in expressions:
            self.uses[_base_name(self.text[begin:position])] += 1
        for position, begin in expressions:
            self._launch(position, begin)
        self._share_parameters()
        for number, definition in enumerate(self.definitions):
            self._register(number, definition)
        return self._applied()

    # ---- positions

    def place(self, position: int) -> tuple[str, int]:
        """The source file and line of a position in the preprocessed text."""
        low, high = 0, len(self._markers)
        while low < high:
            middle = (low + high) // 2
            if self._markers[middle][0] <= position:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return "<unknown>", 1
        end, line, file = self._markers[low - 1]
        return file, line - 1 + self.text.count("\n", end, position)

    def error(self, position: int, problem: str) -> SourceError:
        file, line = self.place(position)
        return SourceError(f"{file}:{line}: error: {problem}")

    # ---- reading C++, as far as needed

    def _space(self, position: int) -> int:
        """The first position from here on that is not in white space or a line marker."""
        while True:
            match = re.compile(r"\s*").match(self.text, position)
            position = match.end()
            if self.text.startswith("# ", position) and self.text[position - 1] == "\n":
                position = self.text.index("\n", position)
                continue
            return position

    def _space_back(self, position: int) -> int:
        """The position after the last preceding character that is not in white space or a line marker."""
        while True:
            while position > 0 and self.text[position - 1].isspace():
                position -= 1
            line = self.text.rfind("\n", 0, position) + 1
            if not self.text.startswith("# ", line):
                return position
            position = line

    def _closing(self, position: int) -> int:
        """The position of the matching closing bracket."""
        opening = self.text[position]
        expected = [_CLOSING[opening]]
        for match in re.compile(_TOKEN.pattern + r"|(?P<bracket>[()\[\]{}])", _TOKEN.flags).finditer(
            self.text, position + 1
        ):
            if match.lastgroup != "bracket":
                continue
            bracket = match.group()
            if bracket in _CLOSING:
                expected.append(_CLOSING[bracket])
            elif bracket != expected.pop():
                raise self.error(match.start(), f"a {bracket} without an opening bracket")
            elif not expected:
                return match.start()
        raise self.error(position, f"a {opening} without a closing bracket")

    def _find(self, position: int, wanted: str) -> int:
        """The position of the first of these characters outside brackets."""
        pattern = re.compile(_TOKEN.pattern + r"|(?P<found>[" + re.escape(wanted) + r"(\[{}])", _TOKEN.flags)
        while True:
            match = pattern.search(self.text, position)
            if match is None:
                raise self.error(position, f"one of {wanted} is missing")
            position = match.end()
            if match.lastgroup != "found":
                continue
            if match.group() in wanted:
                return match.start()
            if match.group() in _CLOSING:
                position = self._closing(match.start()) + 1
            else:
                raise self.error(match.start(), f"one of {wanted} is missing")

    # ---- kernels

    def _kernel(self, match: re.Match) -> None:
        """Records the kernel of `__global__ void name(`, and replaces the qualifier by an attribute."""
        position = match.end()
        while True:
            opening = self._find(position, "(")
            end = self._space_back(opening)
            if self.text[end - 1] == ">":  # k<float>(
                end = self._space_back(self._opening_angle(end - 1))
            name = re.search(r"(?:operator\s*\(\)|~?\w+)\Z", self.text[max(0, end - 200) : end])
            if name is None and self.text[end - 1] not in "<,=&|+-*/%!":
                raise self.error(match.start(), "no function name after __global__")
            if name is None or name.group() in ("__attribute__", "alignas", "decltype", "noexcept", "sizeof"):
                position = self._closing(opening) + 1
                continue
            break
        closing = self._closing(opening)
        kind, parameters = self._template(match.start())
        behind = self._find(closing + 1, "{;")
        defined = self.text[behind] == "{"
        self._find_constants(name.group(), opening + 1, closing, kind == "template" and defined)
        self.uses[name.group()] += 1
        if kind in ("template", "plain"):
            signature = "".join(self.text[opening:closing].split())
            required = sum("=" not in text and "..." not in text for text in parameters)
            pieces = _split(self.text[opening + 1 : closing])
            defaults = any(_before_default(one) != one for one in pieces)
            signature = re.sub(r"\w+(?=[,)]|$)", "", signature)
            self.kernels.setdefault(name.group(), set()).add(
                Declared(required, len(parameters), signature, len(pieces), defaults)
            )
        # A declaration is not inlined; the definition follows or is in another file.
        attribute = "__attribute__((always_inline))" if defined else ""
        self.edits.append(Edit(match.start(), match.end(), attribute))
        if defined:
            arguments = (
                _arguments_of(parameters)
                if kind == "template"
                else self.text[end : self._space_back(opening)].strip()
            )
            self.definitions.append(
                Definition(
                    name.group(), arguments, kind == "specialization", (opening + 1, closing),
                    (behind, self._closing(behind)),
                )
            )  # fmt: skip

    def _find_constants(self, name: str, begin: int, end: int, whole: bool) -> None:
        pieces = _split_at(self.text[begin:end], begin)
        places = {}
        for index, (text, position) in enumerate(pieces):
            found = re.fullmatch(r"\s*const\s+(?P<type>[^*&=\[\].]*?)(?P<name>\b\w+)?\s*", text, re.DOTALL)
            if found is None or "\n#" in text:
                continue
            named = found["type"].strip() and found["name"] not in _TYPE_WORDS
            places[index] = position + (found.start("name") if named else len(text.rstrip()))
        self.constants.setdefault((name, len(pieces)), []).append(places if whole else None)

    def _share_parameters(self) -> None:
        """Changes `const Plan plan` to `const Plan& plan`: threads that cannot change it need no copy.

        All declarations of the kernel must have the const, because they must have one type. Only templates
        that are defined here and not instantiated explicitly: another file that only declares the kernel
        would reference another symbol. Not if the kernel is used in any other way: its address may be
        assigned to a pointer, whose type has no references.
        """
        for (name, _), declarations in self.constants.items():
            whole = [places for places in declarations if places is not None]
            if len(whole) < len(declarations) or self._named_otherwise(name):
                continue
            common = set.intersection(*(set(places) for places in whole))
            self.edits += [Edit(places[i], places[i], "&") for places in whole for i in common]

    def _register(self, number: int, definition: Definition) -> None:
        """Registers a kernel by its address for musaLaunchKernel, even if this file does not launch it."""
        name = definition.name
        declared = self.kernels.get(name, set())
        parameters = self.text[slice(*definition.parameters)]
        template = definition.arguments != "" and not definition.specialization
        if definition.arguments is None or (template and not self._has_address(name, declared)):
            return
        kernel = f"{name}{definition.arguments}"
        if not template and len(declared) <= 1:
            known = f"::musa_simt::Kernel<decltype(&{kernel}), &{kernel}, true>::registration"
            variable = f"musa_simt_known_{number}"
            text = f" static const void* const {variable} __attribute__((unused)) = &{known};"
            self.edits.append(Edit(definition.body[1] + 1, definition.body[1] + 1, text))
            return
        # Inside the body, where the template parameters and function parameters are in scope.
        names = [_parameter_name(text) for text in _split(parameters)]
        if name in names or (len(declared) > 1 and (None in names or "..." in parameters)):
            return
        kind = f"decltype(&{kernel})"
        if len(declared) > 1:  # the type selects the overload
            kind = f"void (*)({', '.join(f'decltype({one})' for one in names)})"
        text = f" (void)&::musa_simt::Kernel<{kind}, &{kernel}, true>::registration;"
        self.edits.append(Edit(definition.body[0] + 1, definition.body[0] + 1, text))

    def _template(self, position: int) -> tuple[str, list[str]]:
        """The kind of the declaration before this position, and its template parameters.

        Kinds: plain, template, specialization, instantiation.
        """
        while True:
            end = self._space_back(position)
            word = re.search(
                r"\b(?:static|inline|extern|constexpr|void|__inline__|__noinline__)\Z",
                self.text[max(0, end - 16) : end],
            )
            if word is not None:
                position = end - len(word.group())
                continue
            if self.text[end - 2 : end] == "))":
                opening = self._opening(end - 1)
                before = self._space_back(opening)
                if self.text.endswith("__attribute__", 0, before):
                    position = before - len("__attribute__")
                    continue
            break
        if re.search(r"\btemplate\Z", self.text[max(0, end - 12) : end]):
            return "instantiation", []
        if self.text[end - 1] != ">":
            return "plain", []
        opening = self._opening_angle(end - 1)
        if not self.text.endswith("template", 0, self._space_back(opening)):
            return "plain", []
        parameters = _split(self.text[opening + 1 : end - 1])
        return ("template", parameters) if parameters else ("specialization", [])

    def _has_address(self, name: str, declared: set[Declared]) -> bool:
        """Whether the program may take the kernel's address. Other files may, unless it is a template."""
        if any(one.parameters == 0 for one in declared):
            return True
        return self._named_otherwise(name)

    def _named_otherwise(self, name: str) -> bool:
        """Whether the name occurs outside declarations and launches."""
        if name not in self._addressed:
            count = sum(1 for _ in re.finditer(rf"\b{re.escape(name)}\b", self.text))
            self._addressed[name] = count > self.uses[name]
        return self._addressed[name]

    def _launch(self, position: int, begin: int) -> None:
        """Rewrites `kernel<<<configuration>>>(arguments)`; `begin` is the start of the name."""
        kernel = self.text[begin:position].strip()
        end = self._launch_end(position + 3)
        opening = self._space(end + 3)
        if not self.text.startswith("(", opening):
            raise self.error(position, "no arguments after the configuration of a launch")
        closing = self._closing(opening)
        _, given = _template_arguments(kernel)
        name = _base_name(kernel)
        # A member, an element or the result of a call is a pointer, even if a kernel has the same name.
        pointer = re.search(r"[.\]]|->", _template_arguments(kernel)[0]) is not None
        declared = set() if pointer else self.kernels.get(name, set())
        separator = ", " if self._space(opening + 1) != closing else ""
        # Only the text around the pieces is replaced, because they may contain launches.
        where = "::musa_simt::Configuration("
        if not declared:
            head = f"::musa_simt::launch_pointer({where}"
            middle = "), " + kernel + separator
        elif len(declared) == 1 and all(
            one.required <= given and not self._leaves_out(one, opening, closing) for one in declared
        ):
            by_address = str(self._has_address(name, declared)).lower()
            name_of_type = f"decltype(&{kernel}), &{kernel}".replace("\n", " ")
            head = f"::musa_simt::Kernel<{name_of_type}, {by_address}>::launch({where}"
            middle = ")" + separator
        else:  # the arguments select the overload; the call adds default arguments
            head = f"::musa_simt::launch_deduced([](auto... given) {{ {kernel}(given...); }}, {where}"
            middle = ")" + separator
        self.edits.append(Edit(begin, position + 3, head + "\n" * self.text.count("\n", begin, position)))
        self.edits.append(Edit(end, opening + 1, middle + "\n" * self.text.count("\n", end, opening)))

    def _leaves_out(self, kernel: Declared, opening: int, closing: int) -> bool:
        """Whether a launch with these arguments omits some that have a default."""
        return kernel.defaults and len(_split(self.text[opening + 1 : closing])) < kernel.count

    def _launch_end(self, position: int) -> int:
        """The position of the >>> that ends a configuration."""
        depth = 0
        for match in re.compile(
            _TOKEN.pattern + r"|(?P<end>>>>)|(?P<bracket>[()\[\]{}])", _TOKEN.flags
        ).finditer(self.text, position):
            if match.lastgroup == "end" and depth == 0:
                return match.start()
            if match.lastgroup == "bracket":
                depth += 1 if match.group() in _CLOSING else -1
                if depth < 0:
                    break
        raise self.error(position, "a <<< without its >>>")

    def _expression_before(self, position: int) -> int:
        """The start of the expression that ends here and denotes a kernel.

        A name with :: and template arguments, a name in parentheses, or a pointer: p, p[0], table.p, find(0).
        """
        end = self._space_back(position)
        first = end
        while True:
            if self.text[first - 1] == ">":
                first = self._space_back(self._opening_angle(first - 1))
            elif self.text[first - 1] in ")]":
                bracket = self.text[first - 1]
                first = self._opening(first - 1)
                before = self._space_back(first)
                called = re.search(
                    r"(?:\b(?P<word>[A-Za-z_]\w*)|[\])>])\Z", self.text[max(0, before - 300) : before]
                )
                if called is None or called["word"] in _KEYWORDS or (
                    bracket == ")" and called["word"] is None
                ):  # fmt: skip
                    return first
                first = before
                continue
            name = re.search(r"\w+\Z", self.text[max(0, first - 300) : first])
            if name is None:
                raise self.error(position, "no kernel before <<<")
            first -= len(name.group())
            before = self._space_back(first)
            if self.text[max(0, before - 2) : before] == "->":
                first = self._space_back(before - 2)
                continue
            if self.text[before - 1 : before] == "." and self.text[max(0, before - 3) : before] != "...":
                first = self._space_back(before - 1)
                continue
            if self.text[max(0, before - 2) : before] != "::":
                return first
            first = before - 2
            before = self._space_back(first)
            if not re.match(r"[\w>]", self.text[before - 1 : before]) or re.search(
                r"\b(?:return|else|do)\Z", self.text[max(0, before - 8) : before]
            ):
                return first
            first = before

    def _opening_angle(self, position: int) -> int:
        depth = 0
        while position >= 0:
            character = self.text[position]
            if character == ">" and self.text[position - 1] != "-":
                depth += 1
            elif character == "<":
                depth -= 1
                if depth == 0:
                    return position
            elif character in ")]}":
                position = self._opening(position)
            elif character in ";{(":
                break
            position -= 1
        raise self.error(position, "unmatched > of template arguments")

    def _opening(self, position: int) -> int:
        depth = 0
        while position >= 0:
            character = self.text[position]
            depth += (character in ")]}") - (character in "([{")
            if depth == 0:
                return position
            position -= 1
        raise self.error(position, "unmatched closing bracket")

    # ---- variables

    def _shared(self, match: re.Match) -> None:
        """Rewrites `__shared__ T a[2], b;` to a local struct, and references to its members."""
        begin = self._declaration_begin(match.start())
        end = self._find(match.end(), ";")
        before = self.text[begin : match.start()].split()
        declaration, marker = _without_markers(self.text[match.end() : end])
        if leading := self._type_before(begin):  # `float __shared__ cells[4]`
            words = self.text[leading:begin].split()
            declaration = " ".join(word for word in words if word not in _STORAGE) + " " + declaration
            before += [word for word in words if word in _STORAGE]
            begin = leading
        if misplaced := re.match(r"\s*(alignas\b|\[\[)", declaration):
            raise self.error(
                match.start(),
                f"{misplaced.group(1)} after __shared__: a two-pass compiler rejects an attribute list here. "
                "Fix: write it first, as in alignas(16) __shared__ char room[64];",
            )
        if "extern" in before:
            found = re.match(r"(?P<type>.*?)\b(?P<name>\w+)\s*\[\s*\]\s*\Z", declaration, re.DOTALL)
            if found is None:
                raise self.error(match.start(), "extern __shared__ must declare one array without a size")
            kind = re.sub(
                r"^\s*__attribute__\s*\(\(aligned\(.*?\)\)\)|^\s*alignas\s*\([^()]*\)", "", found["type"]
            ).strip()
            if self._in_function(begin):
                memory = "::musa_simt::musa_simt_dynamic_shared()"
                if re.search(r"\[=[\],]", self.text[end : self._block_end(end)]):
                    # A lambda that captures by value can copy a pointer, but not an array of unknown size.
                    text = f"{kind}* const {found['name']} = static_cast<{kind}*>({memory})"
                else:
                    text = f"{kind} (&{found['name']})[] = *static_cast<{kind}(*)[]>({memory})"
            else:  # each function that uses it calls the engine
                text = f"const ::musa_simt::DynamicShared<{kind}> {found['name']}{{}}"
            self._replace(begin, end, text, marker)
            return
        names = self._declared(match.end(), end)
        self.shared += 1
        kind = f"musa_simt_shared_{self.shared}"
        _, line = self.place(match.start())
        words = " ".join(word for word in before if word not in ("static", "inline"))
        # Unlike the name in the line marker, the builtin respects -ffile-prefix-map, as __FILE__ does.
        site = f'::musa_simt::Site{{__builtin_FILE(), {line}, "{", ".join(names)}"}}'
        if not self._in_function(begin):  # every kernel that uses it has its own instance
            text = f"struct {kind} {{ {words} {declaration.strip()}; }};"
            for name in names:
                member = f"{kind}, decltype({kind}::{name}), &{kind}::{name}"
                text += f" static const ::musa_simt::SharedOfFile<{member}> {name}{{{site}}};"
            self._replace(begin, end, text.rstrip(";"), marker)
            return
        references = " ".join(f"auto& {name} = {kind}_all.{name};" for name in names)
        text = (
            f"struct {kind} {{ {words} {declaration.strip()}; }}; "
            f"auto& {kind}_all = ::musa_simt::shared_variable<{kind}>({site}); {references.rstrip(';')}"
        )
        self._replace(begin, end, text, marker)

    def _type_before(self, position: int) -> int:
        """The start of a declaration whose type precedes `__shared__`, or 0 if the type does not."""
        end = self._space_back(position)
        if end == 0 or not re.match(r"[\w>*]", self.text[end - 1]):
            return 0
        begin = max(self.text.rfind(mark, 0, end) for mark in ";{}") + 1
        begin = self._space(begin)
        return begin if begin < end else 0

    def _in_function(self, position: int) -> bool:
        """Whether the braces around this position belong to a function or a statement."""
        depth = 0
        for at in range(position - 1, -1, -1):
            depth += (self.text[at] == "}") - (self.text[at] == "{")
            if depth < 0:
                before = self.text[max(0, at - 400) : at]
                return (
                    re.search(
                        r"(?:\bnamespace\b|\bextern\s*\"C\"|\b(?:struct|class|union)\b)[^;{}()]*\Z", before
                    )
                    is None
                )
        return False

    def _block_end(self, position: int) -> int:
        """The position of the closing brace around this position."""
        depth = 0
        for brace in re.finditer(r"[{}]", self.text[position:]):
            depth += 1 if brace.group() == "{" else -1
            if depth < 0:
                return position + brace.start()
        return len(self.text)

    def _constant(self, match: re.Match) -> None:
        """Makes a `__constant__` variable an ordinary one: kernels read it, musaMemcpyToSymbol writes it."""
        self.edits.append(Edit(match.start(), match.end(), ""))

    def _declaration_begin(self, position: int) -> int:
        """The position before preceding specifiers: static, extern, volatile, ..., alignas(...)."""
        while True:
            end = self._space_back(position)
            if self.text[end - 1] == ")":
                opening = self._opening(end - 1)
                named = self._space_back(opening)
                if not re.search(r"\balignas\Z", self.text[max(0, named - 8) : named]):
                    return position
                position = named - len("alignas")
                continue
            word = re.search(
                r"\b(?:static|extern|volatile|const|inline)\Z", self.text[max(0, end - 10) : end]
            )
            if word is None:
                return position
            position = end - len(word.group())

    def _declared(self, position: int, end: int) -> list[str]:
        """The names in a declaration."""
        names = []
        while position <= end:
            # Angle brackets of types are skipped: a comma inside them is not a separator.
            stop = self._declarator_end(position, end)
            text = re.sub(r"\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]", "", self.text[position:stop])
            name = re.search(r"(\w+)\s*\Z", text)
            if name is None:
                raise self.error(position, "no name in a __shared__ declaration")
            names.append(name.group(1))
            position = stop + 1
        return names

    def _declarator_end(self, position: int, end: int) -> int:
        angle = 0
        while position < end:
            character = self.text[position]
            if character in _CLOSING:
                position = self._closing(position)
            elif character == "<":
                angle += 1
            elif character == ">":
                angle -= 1
            elif character == "," and angle == 0:
                return position
            elif character == "=":
                raise self.error(position, "a __shared__ variable cannot be initialized")
            position += 1
        return end

    # ---- the result

    def _replace(self, begin: int, end: int, text: str, marker: str = "") -> None:
        """Replaces text, and keeps following line numbers with a line marker or empty lines."""
        missing = self.text.count("\n", begin, end) - text.count("\n")
        self.edits.append(Edit(begin, end, text + (marker or "\n" * max(missing, 0))))

    def _applied(self) -> str:
        pieces = []
        position = 0
        for edit in sorted(self.edits, key=lambda edit: (edit.begin, edit.end)):
            if edit.begin < position:
                raise self.error(edit.begin, "nested constructs of the kernel language")
            pieces += [self.text[position : edit.begin], edit.text]
            position = edit.end
        pieces.append(self.text[position:])
        return "".join(pieces)


def _template_arguments(name: str) -> tuple[str, int]:
    """Splits a name into the part before its template arguments, and their number."""
    name = name.rstrip()
    if not name.endswith(">"):
        return name, 0
    depth = enclosed = 0
    for position in range(len(name) - 1, -1, -1):
        enclosed += (name[position] in ")]}") - (name[position] in "([{")
        if enclosed == 0:  # inside brackets, < and > are comparisons
            depth += (name[position] == ">") - (name[position] == "<")
        if depth == 0:
            return name[:position], len(_split(name[position + 1 : -1]))
    return name, 0


def _parameter_name(text: str) -> str | None:
    """The name of a function or template parameter; None if it is unnamed."""
    declarator = re.sub(r"(?:\s*\[[^\[\]]*\])+\s*\Z", "", _before_default(text)).strip()
    # A pointer or reference to a function, a member function or an array: `int (*name)(int)`.
    pointer = re.search(
        r"\(\s*(?:[\w:]+::\s*)?[*&]+\s*(?:const\s+)?(?P<name>[A-Za-z_]\w*)\s*\)\s*(?:\(.*\))?\Z",
        declarator,
        re.DOTALL,
    )
    if pointer is not None:
        return pointer["name"]
    found = re.search(r"[\s>*&.](?P<name>[A-Za-z_]\w*)\Z", declarator)
    if found is None or found["name"] in _NO_NAMES:
        return None
    before = declarator[: found.start("name")].rstrip()
    return None if before in ("const", "volatile", "struct", "enum", "union") else found["name"]


def _before_default(text: str) -> str:
    angle = enclosed = 0
    for position, character in enumerate(text):
        enclosed += (character in "([{") - (character in ")]}")
        angle += ((character == "<") - (character == ">")) if enclosed == 0 else 0
        if character == "=" and angle == 0 and enclosed == 0:
            return text[:position]
    return text


def _arguments_of(parameters: list[str]) -> str | None:
    """`<T, n, More...>` for template parameters; None if an unnamed one has no default."""
    arguments = []
    for index, text in enumerate(parameters):
        name = _parameter_name(text)
        if name is None:
            # `class = enable_if_t<...>`: omitted if all following parameters have defaults too
            unnamed = parameters[index:]
            return (
                f"<{', '.join(arguments)}>" if all(_before_default(one) != one for one in unnamed) else None
            )
        arguments.append(name + ("..." if "..." in _before_default(text) else ""))
    return f"<{', '.join(arguments)}>"


def _base_name(kernel: str) -> str:
    """The part `name` of `scope::name<arguments>`."""
    base = re.search(r"(\w+)\s*\Z", _template_arguments(kernel)[0])
    return base.group(1) if base else ""


def _split(text: str) -> list[str]:
    """Splits at the commas outside brackets."""
    return [piece for piece, _ in _split_at(text, 0)]


def _without_markers(text: str) -> tuple[str, str]:
    """Splits a declaration into its text without line markers, and the last marker on a line of its own.

    GCC writes markers inside a declaration if a system header uses a macro of simt/device.h.
    """
    markers = re.findall(r"^#.*$", text, re.MULTILINE)
    kept = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    return kept, f"\n{markers[-1]}\n" if markers else ""


def _split_at(text: str, offset: int) -> list[tuple[str, int]]:
    """As _split(), with the start position of each piece."""
    pieces, angle, enclosed, begin = [], 0, 0, 0
    for position, character in enumerate(text):
        enclosed += (character in "([{") - (character in ")]}")
        if enclosed == 0:
            angle += (character == "<") - (character == ">")
        if character == "," and angle == 0 and enclosed == 0:
            pieces.append((text[begin:position], offset + begin))
            begin = position + 1
    pieces.append((text[begin:], offset + begin))
    return [(piece, at) for piece, at in pieces if piece.strip()]


def rewrite(text: str) -> str:
    """Returns the preprocessed text as C++.

    Raises:
        SourceError: the text cannot be parsed; the message has file and line.
    """
    return Rewriter(text).rewrite()
