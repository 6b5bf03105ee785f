# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Links a library, and refuses one that cannot work beside torch and the MUSA SDK.

MusaDev.cmake makes it the launcher of the linker: `python link_check.py READELF SDK COMMAND...`. A library is
refused if it has a C++ runtime of its own, uses another one than torch, or needs a newer one than this Python
loads. If the linker fails, the likely causes follow its output. Imports only the standard library.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys

# Functions of libstdc++ that no library defines unless it contains libstdc++, or a part of it.
_OF_LIBSTDCXX = {
    "__cxa_begin_catch",
    "__cxa_throw",
    "__gxx_personality_v0",
    "_ZNSt6localeC1Ev",
    "_ZNSt8ios_base4InitC1Ev",
    "_ZSt17__throw_bad_allocv",
    "_ZSt20__throw_length_errorPKc",
}
_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:) [`']?(.+?)'?$", re.MULTILINE)
_DEFINED = re.compile(r"^ +\d+: \S+ +\d+ FUNC .* \d+ (\w+)", re.MULTILINE)
_OF_THE_SDK = re.compile(r"(musa|mu|mccl)[A-Z]\w*$|musa::dnn::")
_OF_TORCH = re.compile(r"\b(c10|at|torch|c10d)::")
_FIX = (
    "Fix: export CXX=g++, remove such options from CXXFLAGS and LDFLAGS, delete the build folder, build again"
)
_LIBCXX = (
    f"Likely causes: -stdlib=libc++ in CXXFLAGS or LDFLAGS; a compiler that uses libc++ by default.\n{_FIX}"
)


def explain(output: str, sdk: str) -> str:
    """Returns the likely causes of undefined symbols in the linker's output; "" if it has no known ones."""
    names = list(dict.fromkeys(_UNDEFINED.findall(output)))
    of_sdk = [name for name in names if _OF_THE_SDK.match(name)]
    if of_sdk:
        more = f" and {len(of_sdk) - 5} more" if len(of_sdk) > 5 else ""
        return (
            f"the libraries of the MUSA SDK at {sdk} lack {', '.join(of_sdk[:5])}{more}.\n"
            "Likely causes: headers and libraries of different versions; a part of the SDK is not installed; "
            "PYTORCH_MCC is the compiler of another SDK than MUSA_HOME.\n"
            "Fix: install one version of the MUSA SDK completely, or export MUSA_HOME=<directory of one>, "
            "delete the build folder, build again"
        )
    if any("std::__1::" in name for name in names):
        return f"the compiler uses libc++, and torch uses libstdc++.\n{_LIBCXX}"
    of_torch = [name for name in names if _OF_TORCH.search(name)]
    if any(re.search(r"std::(string|list<|basic_string<)", name) for name in of_torch):
        return (
            "the compiler uses the C++ ABI from before C++11 for std::string, and torch uses the new one.\n"
            "Likely causes: -D_GLIBCXX_USE_CXX11_ABI=0 in CXXFLAGS; a compiler of an old distribution.\n"
            f"{_FIX}"
        )
    return ""


def problem(library: str, readelf: str) -> str:
    """Returns why a library cannot work beside torch, with causes and the fix; "" if nothing is known."""
    done = subprocess.run(
        [readelf, "--wide", "--dynamic", "--syms", "--version-info", library],
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        errors="replace",
        check=True,
    )
    name = os.path.basename(library)
    if re.search(r"\(NEEDED\).*\[libc\+\+\.so", done.stdout):
        return f"{name} needs libc++, and torch uses libstdc++: their strings do not mix.\n{_LIBCXX}"
    if own := sorted(_OF_LIBSTDCXX.intersection(_DEFINED.findall(done.stdout))):
        return (
            f"{name} contains a libstdc++ of its own ({own[0]}), and torch loads libstdc++.so.6: a process "
            "with two of them crashes, often in the first constructor.\n"
            "Likely causes: -static-libstdc++ in CXXFLAGS or LDFLAGS; CXX is a wrapper of a compiler with "
            f"its own libraries, linked statically.\n{_FIX}"
        )
    needed = _newest(done.stdout)
    if needed and _same_machine(library):
        path, available = _libstdcxx()
        if available and needed > available:
            return (
                f"{name} needs GLIBCXX_{_text(needed)}, and {path}, which this Python loads, ends at "
                f"GLIBCXX_{_text(available)}.\n"
                f"Likely cause: CXX is a newer compiler with its own libstdc++.\n{_FIX}"
            )
    return ""


def _newest(text: str) -> tuple[int, ...]:
    versions = re.findall(r"GLIBCXX_(\d+(?:\.\d+)+)", text)
    return max((tuple(map(int, version.split("."))) for version in versions), default=())


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _same_machine(library: str) -> bool:
    """Whether a library is for this machine; the ELF header has the machine at byte 18."""
    machines = []
    for path in (library, os.path.realpath(sys.executable)):
        with open(path, "rb") as file:
            machines.append(file.read(20)[18:])
    return machines[0] == machines[1]


def _libstdcxx() -> tuple[str, tuple[int, ...]]:
    """Returns the path of the libstdc++ that this Python loads, and its newest version."""
    try:
        ctypes.CDLL("libstdc++.so.6")
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            path = next(line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/libstdc++.so.6" in line)
        with open(path, "rb") as file:
            return path, _newest(file.read().decode("latin-1"))
    except (OSError, StopIteration):
        return "", ()


def main(readelf: str, sdk: str, *command: str) -> int:
    """Runs the linker. Returns its status, or 1 if the library is refused, which is then removed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    print(output, end="")
    if done.returncode != 0:
        text = explain(output, sdk)
    else:
        library = command[command.index("-o") + 1]
        if text := problem(library, readelf):
            os.remove(library)
    if text:
        print(f"\nmusa_runtime: {text}")
    return done.returncode or int(bool(text))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
