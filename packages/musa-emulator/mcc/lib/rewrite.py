# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes C++ of a preprocessed .mu file: launches, and variables in shared and constant memory.

The macros of simt/device.h leave words that no program uses (``__musa_shared__``); here each is replaced
together with what it stands before. Lines keep their numbers, so that messages name the source.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

# What must not be looked into, and what is looked for.
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
    """Something in the source that is not understood. Says where and what."""


@dataclass
class Edit:
    begin: int
    end: int
    text: str


@dataclass(frozen=True)
class Declared:
    """A kernel's declaration.

    How many template parameters have no default, how many there are, the types of the function's parameters,
    how many those are, and whether some have a default argument.
    """

    required: int
    parameters: int
    signature: str
    count: int
    defaults: bool


@dataclass(frozen=True)
class Definition:
    """A `__global__` function with its body: what a registration of it needs."""

    name: str
    arguments: (
        str | None
    )  # template arguments that name it, "" outside of templates; None: they cannot be written
    specialization: bool
    parameters: tuple[int, int]  # positions around the text of its parameters
    body: tuple[int, int]  # of its braces


class Rewriter:
    """One translation unit."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.edits: list[Edit] = []
        self.kernels: dict[str, set[Declared]] = {}
        # By name: how often a kernel is declared or launched. Who names one otherwise may take its address.
        self.uses: Counter[str] = Counter()
        self._addressed: dict[str, bool] = {}
        self.definitions: list[Definition] = []
        # By name and number of parameters: for each template with its body, where `const T x` could become
        # `const T& x`; None for each other declaration.
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
                # The two instructions of a GPU that libraries write in assembly.
                call = {"trap": "::__trap()", "exit": "::__musa_exit()"}[match.group("instruction")]
                self.edits.append(Edit(match.start(), match.end(), call))
            elif kind == "pragma":
                # From a macro, in the middle of a line, as nvcc accepts it. A hint, nothing more.
                self.edits.append(Edit(match.start(), match.end(), ""))
            elif kind == "clock":
                # In kernels clock() counts cycles, elsewhere processor time. `int clock()` is a declaration.
                before = re.search(
                    r"(\w+)\s*\Z|[*&]\s*\Z", self.text[max(0, match.start() - 100) : match.start()]
                )
                if before is None or before[1] in _KEYWORDS or before[0].strip() in ("*", "&"):
                    self.edits.append(Edit(match.start(), match.end(), "::musa_simt::clock_ticks()"))
            elif match.group() == "__noinline__":
                # A word of kernels; and of the host's headers, inside of __attribute__((...)).
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

    # ---- places

    def place(self, position: int) -> tuple[str, int]:
        """The file and line of the source that a position of the preprocessed text came from."""
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
        """The first position from here on that is neither white space nor a line marker."""
        while True:
            match = re.compile(r"\s*").match(self.text, position)
            position = match.end()
            if self.text.startswith("# ", position) and self.text[position - 1] == "\n":
                position = self.text.index("\n", position)
                continue
            return position

    def _space_back(self, position: int) -> int:
        """The position behind the last character before this one that is no white space nor of a marker."""
        while True:
            while position > 0 and self.text[position - 1].isspace():
                position -= 1
            line = self.text.rfind("\n", 0, position) + 1
            if not self.text.startswith("# ", line):
                return position
            position = line

    def _closing(self, position: int) -> int:
        """The position of the bracket that closes the one here."""
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
                raise self.error(match.start(), f"a {bracket} that closes nothing")
            elif not expected:
                return match.start()
        raise self.error(position, f"a {opening} that is not closed")

    def _find(self, position: int, wanted: str) -> int:
        """The position of the first of these characters outside of brackets."""
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
        """`__global__ void name(`: the name is remembered, the word becomes an attribute."""
        position = match.end()
        while True:
            opening = self._find(position, "(")
            end = self._space_back(opening)
            if self.text[end - 1] == ">":  # k<float>(
                end = self._space_back(self._opening_angle(end - 1))
            name = re.search(r"(?:operator\s*\(\)|~?\w+)\Z", self.text[max(0, end - 200) : end])
            if name is None and self.text[end - 1] not in "<,=&|+-*/%!":
                raise self.error(match.start(), "no name of a function after __global__")
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
        # Without a body there is nothing to inline: the function is another file's, or it follows.
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
        """`const Plan plan` as `const Plan& plan`: threads that may not change it need no copy.

        Only where every declaration of the kernel says const: it is one function, with one type. Only of
        templates that have their body here, and are not instantiated for others: another file may know the
        kernel by a declaration alone, and would ask for another symbol. And not where the program names the
        kernel otherwise: its address may go to a pointer, whose type has no references.
        """
        for (name, _), declarations in self.constants.items():
            whole = [places for places in declarations if places is not None]
            if len(whole) < len(declarations) or self._named_otherwise(name):
                continue
            common = set.intersection(*(set(places) for places in whole))
            self.edits += [Edit(places[i], places[i], "&") for places in whole for i in common]

    def _register(self, number: int, definition: Definition) -> None:
        """musaLaunchKernel knows a kernel by its address, whether or not this file launches it."""
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
        # In the body: there the parameters of the template and those of the function have names.
        names = [_parameter_name(text) for text in _split(parameters)]
        if name in names or (len(declared) > 1 and (None in names or "..." in parameters)):
            return
        kind = f"decltype(&{kernel})"
        if len(declared) > 1:  # which one is meant, its type says
            kind = f"void (*)({', '.join(f'decltype({one})' for one in names)})"
        text = f" (void)&::musa_simt::Kernel<{kind}, &{kernel}, true>::registration;"
        self.edits.append(Edit(definition.body[0] + 1, definition.body[0] + 1, text))

    def _template(self, position: int) -> tuple[str, list[str]]:
        """The kind of the declaration that goes on here, and the parameters of a template.

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
        """Whether the program may name the kernel by its address: other files too, if it is no template."""
        if any(one.parameters == 0 for one in declared):
            return True
        return self._named_otherwise(name)

    def _named_otherwise(self, name: str) -> bool:
        """Whether the name occurs elsewhere than in declarations and launches."""
        if name not in self._addressed:
            count = sum(1 for _ in re.finditer(rf"\b{re.escape(name)}\b", self.text))
            self._addressed[name] = count > self.uses[name]
        return self._addressed[name]

    def _launch(self, position: int, begin: int) -> None:
        """`kernel<<<configuration>>>(arguments)`, whose name begins there."""
        kernel = self.text[begin:position].strip()
        end = self._launch_end(position + 3)
        opening = self._space(end + 3)
        if not self.text.startswith("(", opening):
            raise self.error(position, "no arguments after the configuration of a launch")
        closing = self._closing(opening)
        _, given = _template_arguments(kernel)
        name = _base_name(kernel)
        # A member, an element or the result of a call is a pointer, whatever kernel has the same name.
        pointer = re.search(r"[.\]]|->", _template_arguments(kernel)[0]) is not None
        declared = set() if pointer else self.kernels.get(name, set())
        separator = ", " if self._space(opening + 1) != closing else ""
        # Only what stands around the pieces is replaced: they may hold launches of their own.
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
        else:  # which one is meant, the arguments say; a call also adds default arguments
            head = f"::musa_simt::launch_deduced([](auto... given) {{ {kernel}(given...); }}, {where}"
            middle = ")" + separator
        self.edits.append(Edit(begin, position + 3, head + "\n" * self.text.count("\n", begin, position)))
        self.edits.append(Edit(end, opening + 1, middle + "\n" * self.text.count("\n", end, opening)))

    def _leaves_out(self, kernel: Declared, opening: int, closing: int) -> bool:
        """Whether a launch with these arguments leaves out some that have a default."""
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
        """Where the expression begins that ends here and names a kernel.

        A name with :: and template arguments, one in brackets, or a pointer: p, p[0], table.p, find(0).
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
        raise self.error(position, "template arguments that are not opened")

    def _opening(self, position: int) -> int:
        depth = 0
        while position >= 0:
            character = self.text[position]
            depth += (character in ")]}") - (character in "([{")
            if depth == 0:
                return position
            position -= 1
        raise self.error(position, "a bracket that is not opened")

    # ---- variables

    def _shared(self, match: re.Match) -> None:
        """`__shared__ T a[2], b;` becomes a local type with these members, and references to a copy."""
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
                f"{misplaced.group(1)} after __shared__: a two-pass compiler refuses an attribute list. "
                "Fix: write it first, as in alignas(16) __shared__ char room[64];",
            )
        if "extern" in before:
            found = re.match(r"(?P<type>.*?)\b(?P<name>\w+)\s*\[\s*\]\s*\Z", declaration, re.DOTALL)
            if found is None:
                raise self.error(match.start(), "extern __shared__ takes one array without a size")
            kind = re.sub(
                r"^\s*__attribute__\s*\(\(aligned\(.*?\)\)\)|^\s*alignas\s*\([^()]*\)", "", found["type"]
            ).strip()
            if self._in_function(begin):
                memory = "::musa_simt::musa_simt_dynamic_shared()"
                if re.search(r"\[=[\],]", self.text[end : self._block_end(end)]):
                    # A lambda that copies what it names can copy a pointer, but no array.
                    text = f"{kind}* const {found['name']} = static_cast<{kind}*>({memory})"
                else:
                    text = f"{kind} (&{found['name']})[] = *static_cast<{kind}(*)[]>({memory})"
            else:  # each function that names it asks anew
                text = f"const ::musa_simt::DynamicShared<{kind}> {found['name']}{{}}"
            self._replace(begin, end, text, marker)
            return
        names = self._declared(match.end(), end)
        self.shared += 1
        kind = f"musa_simt_shared_{self.shared}"
        _, line = self.place(match.start())
        words = " ".join(word for word in before if word not in ("static", "inline"))
        # Unlike the name in the marker, the builtin's follows -ffile-prefix-map, as __FILE__ does.
        site = f'::musa_simt::Site{{__builtin_FILE(), {line}, "{", ".join(names)}"}}'
        if not self._in_function(begin):  # every kernel that names it has its own
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
        """Where the declaration begins whose type stands before `__shared__`, or 0 if none does."""
        end = self._space_back(position)
        if end == 0 or not re.match(r"[\w>*]", self.text[end - 1]):
            return 0
        begin = max(self.text.rfind(mark, 0, end) for mark in ";{}") + 1
        begin = self._space(begin)
        return begin if begin < end else 0

    def _in_function(self, position: int) -> bool:
        """Whether the braces around this position are those of a function or of a statement."""
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
        """Where the braces around this position close."""
        depth = 0
        for brace in re.finditer(r"[{}]", self.text[position:]):
            depth += 1 if brace.group() == "{" else -1
            if depth < 0:
                return position + brace.start()
        return len(self.text)

    def _constant(self, match: re.Match) -> None:
        """Constant memory is ordinary memory: kernels read it, musaMemcpyToSymbol writes it."""
        self.edits.append(Edit(match.start(), match.end(), ""))

    def _declaration_begin(self, position: int) -> int:
        """Before the words static, extern, volatile, ... and alignas(...) that precede this one."""
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
            # Angle brackets of types are stepped over: a comma in them separates nothing.
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
        """Replaces text so that what follows keeps its line: by a line marker, or by as many empty lines."""
        missing = self.text.count("\n", begin, end) - text.count("\n")
        self.edits.append(Edit(begin, end, text + (marker or "\n" * max(missing, 0))))

    def _applied(self) -> str:
        pieces = []
        position = 0
        for edit in sorted(self.edits, key=lambda edit: (edit.begin, edit.end)):
            if edit.begin < position:
                raise self.error(edit.begin, "one construct of the kernel language inside of another")
            pieces += [self.text[position : edit.begin], edit.text]
            position = edit.end
        pieces.append(self.text[position:])
        return "".join(pieces)


def _template_arguments(name: str) -> tuple[str, int]:
    """A name without its template arguments, and how many there are."""
    name = name.rstrip()
    if not name.endswith(">"):
        return name, 0
    depth = enclosed = 0
    for position in range(len(name) - 1, -1, -1):
        enclosed += (name[position] in ")]}") - (name[position] in "([{")
        if enclosed == 0:  # in brackets, < and > compare
            depth += (name[position] == ">") - (name[position] == "<")
        if depth == 0:
            return name[:position], len(_split(name[position + 1 : -1]))
    return name, 0


def _parameter_name(text: str) -> str | None:
    """The name that a parameter of a function or of a template declares; None if it has none."""
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
    """`<T, n, More...>` for the parameters of a template; None if one that needs an argument has no name."""
    arguments = []
    for index, text in enumerate(parameters):
        name = _parameter_name(text)
        if name is None:
            # `class = enable_if_t<...>`: its default, if that holds for all that follow too
            unnamed = parameters[index:]
            return (
                f"<{', '.join(arguments)}>" if all(_before_default(one) != one for one in unnamed) else None
            )
        arguments.append(name + ("..." if "..." in _before_default(text) else ""))
    return f"<{', '.join(arguments)}>"


def _base_name(kernel: str) -> str:
    """Of `place::name<arguments>`: name."""
    base = re.search(r"(\w+)\s*\Z", _template_arguments(kernel)[0])
    return base.group(1) if base else ""


def _split(text: str) -> list[str]:
    """At the commas outside of brackets."""
    return [piece for piece, _ in _split_at(text, 0)]


def _without_markers(text: str) -> tuple[str, str]:
    """A declaration without the preprocessor's line markers, and the last of them as lines of their own.

    GCC writes markers within a declaration where a macro of ours is used in a system header.
    """
    markers = re.findall(r"^#.*$", text, re.MULTILINE)
    kept = re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE)
    return kept, f"\n{markers[-1]}\n" if markers else ""


def _split_at(text: str, offset: int) -> list[tuple[str, int]]:
    """The same, each piece with the position that it begins at."""
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
    """The preprocessed text as C++.

    Raises:
        SourceError: with file and line, for what is not understood.
    """
    return Rewriter(text).rewrite()
