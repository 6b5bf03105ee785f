# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The libraries of the SDK that are made, and for each declared function what becomes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from . import declarations
from .declarations import Function

# Functions of the SDK's libraries that CUDA has no equal of, with the reason: they return "not supported".
NO_EQUAL: dict[str, str] = {}
# Of musa_emulator.h, what these libraries do not export.
NOT_EXPORTED = {
    "musaEmulatorLaunchTask": "a function of the host cannot run as a kernel",
    "musaEmulatorRegisterKernel": "kernels are registered with CUDA by the code that nvcc generates",
    "musaEmulatorUnregisterKernel": "as musaEmulatorRegisterKernel",
    "musaEmulatorReset": "the context is shared with other users of CUDA in the process",
}
# Queries of errors, and walks over records, neither fail by an injected fault nor count as calls of the SDK.
QUERIES = {
    "musaGetLastError",
    "musaPeekAtLastError",
    "musaGetErrorName",
    "musaGetErrorString",
    "muGetErrorName",
    "muGetErrorString",
    "mcclGetErrorString",
    "muptiGetResultString",
    "muptiGetVersion",
    "muptiActivityGetNextRecord",
}
# The template that calls a function of CUDA; other libraries have no use for more than `forward`.
FORWARD = {"musa": "forward_to_driver", "mupti": "forward_to_cupti"}
# A failing call of these releases all the same, as a driver that reports an earlier failure does.
RELEASES = re.compile(
    r"musa(?:Free\w*|(?:Stream|Event|Graph|GraphExec)Destroy|DestroyTextureObject|HostUnregister"
    r"|IpcCloseMemHandle)|mu(?:MemFree|MemRelease|MemUnmap|MemAddressFree|(?:Stream|Event|Ctx)Destroy|ModuleUnload)"
    r"|mccl(?:CommDestroy|CommAbort|RedOpDestroy)|mufftDestroy"
    r"|mupti(?:ActivityDisable|ActivityPopExternalCorrelationId|Unsubscribe|Finalize)"
)
# The objects that a successful call creates, destroys or changes, for the counts of live objects and for the
# objects kept with graphs: the kind, the argument that is or receives the handle, a size or another handle.
COUNTED = {
    **{
        f"musaStreamCreate{suffix}": ("created", "Streams", 0) for suffix in ("", "WithFlags", "WithPriority")
    },
    **{f"musaEventCreate{suffix}": ("created", "Events", 0) for suffix in ("", "WithFlags")},
    "musaStreamDestroy": ("destroyed", "Streams", 0),
    "musaEventDestroy": ("destroyed", "Events", 0),
    "muStreamCreate": ("created", "Streams", 0),
    "muStreamDestroy": ("destroyed", "Streams", 0),
    "muEventCreate": ("created", "Events", 0),
    "muEventDestroy": ("destroyed", "Events", 0),
    "musaIpcOpenEventHandle": ("created", "Events", 0),
    "musaGraphCreate": ("created", "Graphs", 0),
    "musaGraphClone": ("derived", "Graphs", 0, 1),
    "musaStreamEndCapture": ("created", "Graphs", 1),
    "musaGraphInstantiate": ("derived", "Graphs", 0, 1),
    "musaGraphInstantiateWithFlags": ("derived", "Graphs", 0, 1),
    "musaGraphAddChildGraphNode": ("extended", "Graphs", 1, 4),
    "musaGraphExecUpdate": ("extended", "Graphs", 0, 1),
    "musaGraphDestroy": ("destroyed", "Graphs", 0),
    "musaGraphExecDestroy": ("destroyed", "Graphs", 0),
    "musaMalloc": ("allocated", "Device", 0, 1),
    "musaMallocAsync": ("allocated", "Device", 0, 1),
    "musaFree": ("freed", "Device", 0),
    "musaFreeAsync": ("freed", "Device", 0),
    "muMemAlloc": ("allocated", "Device", 0, 1),
    "muMemFree": ("freed", "Device", 0),
    "muMemCreate": ("allocated", "Physical", 0, 1),
    "muMemRelease": ("freed", "Physical", 0),
    "musaMallocHost": ("allocated", "Host", 0, 1),
    "musaHostAlloc": ("allocated", "Host", 0, 1),
    "musaMallocManaged": ("allocated", "Host", 0, 1),
    "musaFreeHost": ("freed", "Host", 0),
}


@dataclass
class Library:
    """A library of the SDK over one of CUDA's.

    Attributes:
        name (str): as in lib<name>.so.
        prefix (str): of the functions in `headers`.
        known (set of str): the functions of CUDA's library.
        result (str): the type of error codes.
        call (str): how a function of CUDA is named in C++, with its name for {}.
        unsupported (str): the error code of functions that CUDA has no equal of.
    """

    name: str
    prefix: str
    headers: list[Path]
    result: str
    known: set[str]
    call: str
    unsupported: str
    by_hand: set[str] = field(default_factory=set)

    def target(self, name: str) -> str:
        renamed = {"musa": "cuda", "mu": "cu", "mccl": "nccl", "mupti": "cupti", "mufft": "cufft"}[
            self.prefix
        ]
        return (renamed + name[len(self.prefix) :]).replace("CommMuDevice", "CommCuDevice")

    def declared(self) -> list[Function]:
        found: dict[str, Function] = {}
        for header in self.headers:
            for function in declarations.functions(header, self.prefix):
                if not function.name.startswith("musaEmulator"):
                    found.setdefault(function.name, function)
        return list(found.values())

    def fate(self, function: Function) -> str:
        """`forwarded`, `by hand`, `no equal`, or `unknown`, which no function may be."""
        if function.name in self.by_hand:
            return "by hand"
        if function.name in NO_EQUAL:
            return "no equal"
        return "forwarded" if self.target(function.name) in self.known else "unknown"


def written_by_hand(folder: Path, prefix: str) -> set[str]:
    """The functions that the sources of a folder define in namespace `by_hand`."""
    found: set[str] = set()
    for path in sorted(folder.glob("*.cpp")):
        text = declarations.without_comments(path.read_text(encoding="utf-8"))
        if "namespace musa_cuda::by_hand" in text:
            found |= set(re.findall(rf"^(?:[\w\*]+\s+)+\*?({prefix}[A-Z]\w*)\(", text, flags=re.M))
    return found


def forwarder(library: Library, function: Function) -> str:
    """The exported function, in C++."""
    fate = library.fate(function)
    arguments = f", {function.passed}" if function.passed else ""
    kind = (
        "kQuery" if function.name in QUERIES else "kRelease" if RELEASES.fullmatch(function.name) else "kCall"
    )
    entry = f"{function.name}"
    head = (
        f'Entry {entry}{{"{function.name}", {kind}}};\n'
        f'extern "C" MUSA_CUDA_EXPORT {function.result} {function.name}({function.declared}) {{\n'
    )
    if fate == "no equal":
        if function.result != library.result:
            raise ValueError(
                f"{function.name} has no equal and returns {function.result}, which is no error code"
            )
        call = f"[] {{ return {library.unsupported}; }}"
        arguments = ""
    elif fate == "by hand":
        call = f"[&] {{ return musa_cuda::by_hand::{function.name}({function.passed}); }}"
        arguments = ""
    else:
        forward = FORWARD.get(library.name, "forward")
        target = library.call.format(library.target(function.name))
        call = f"[&] {{ return musa_cuda::{forward}<{function.result}>({target}{arguments}); }}"
    after = ""
    if counted := COUNTED.get(function.name):
        action, what, *places = counted
        values = [function.parameters[place][1] for place in places]
        handle = f"*{values[0]}" if action in ("created", "derived", "allocated") else values[0]
        size = f", {values[1]}" if len(values) > 1 else ""
        after = f", [&] {{ musa_cuda::{action}(musa_cuda::Kind::{what}, {handle}{size}); }}"
    if function.result == library.result and kind != "kQuery":
        errors = "Stay" if library.name == "musart" else "Pass"
        types = f"{function.result}, musa_cuda::Errors::{errors}"
        body = f"  return musa_cuda::call<{types}>(musa_cuda::entries::{entry}, {call}{after});\n"
    else:
        body = f"  return musa_cuda::count(musa_cuda::entries::{entry}, {call});\n"
    return head + body + "}\n"


def render(library: Library) -> str:
    functions = library.declared()
    text = "// Written by codegen from the SDK's headers. Do not edit.\n"
    for function in functions:
        if library.fate(function) == "by hand":
            declared = f"{function.result} {function.name}({function.declared});"
            text += f"namespace musa_cuda::by_hand {{ {declared} }}\n"
    text += "namespace musa_cuda::entries {\n"
    bodies = [forwarder(library, function) for function in functions]
    text += "".join(body.splitlines(keepends=True)[0] for body in bodies)
    listed = ", ".join(f"&{function.name}" for function in functions)
    text += f"Entry* const all[] = {{{listed}}};\n"
    text += "const Registration registration(all);\n} // namespace musa_cuda::entries\n"
    return text + "".join("".join(body.splitlines(keepends=True)[1:]) for body in bodies)


def testing_coverage(header: Path, source: Path) -> dict[str, list[str] | dict[str, str]]:
    """The functions of musa_emulator.h that `source` defines, and those that are not exported.

    Raises:
        ValueError: a function is in neither, or in both.
    """
    declared = declarations.names(header, r"\b(musaEmulator[A-Z]\w*)\(")
    text = declarations.without_comments(source.read_text(encoding="utf-8"))
    written = set(re.findall(r"\b(musaEmulator[A-Z]\w*)\([^;{}]*\)\s*\{", text))
    if wrong := declared.symmetric_difference(written ^ set(NOT_EXPORTED)):
        raise ValueError(f"{', '.join(sorted(wrong))}: of musa_emulator.h, {source.name} and NOT_EXPORTED")
    return {"by hand": sorted(written), "not exported": NOT_EXPORTED}


def coverage(libraries: list[Library]) -> dict[str, dict[str, list[str] | dict[str, str]]]:
    """For each library the names by what becomes of them.

    Raises:
        ValueError: a declared function is none of forwarded, by hand, without equal; or one that is by hand
            or without equal is declared nowhere.
    """
    report: dict = {}
    problems = []
    for library in libraries:
        rows: dict = {"forwarded": [], "by hand": [], "no equal": {}}
        declared = library.declared()
        for function in declared:
            fate = library.fate(function)
            if fate == "unknown":
                problems.append(
                    f"{function.name}: CUDA has no {library.target(function.name)}, "
                    "and it is not written by hand"
                )
            elif fate == "no equal":
                rows[fate][function.name] = NO_EQUAL[function.name]
            else:
                rows[fate].append(function.name)
        stray = library.by_hand - {function.name for function in declared}
        problems += [f"{name}: written by hand, and declared nowhere" for name in sorted(stray)]
        report[library.name] = rows
    everything = {function.name for library in libraries for function in library.declared()}
    problems += [
        f"{name}: has a reason for no equal, and is declared nowhere"
        for name in sorted(set(NO_EQUAL) - everything)
    ]
    if problems:
        raise ValueError(
            "functions of the SDK without an implementation over CUDA, or the reverse:\n  "
            + "\n  ".join(problems)
            + "\nFix: write it in csrc/<library>/, or give the reason in NO_EQUAL of codegen/libraries.py"
        )
    return report
