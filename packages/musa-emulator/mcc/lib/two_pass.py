# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`mcc --two-pass`: checks a .mu file with separate host and device passes.

The emulator compiles once for both, so it accepts a kernel that calls a host function, and it always
defines __MUSA_ARCH__. The vendor's mcc is based on clang; this check runs the two passes of clang's CUDA
mode with headers (include/two_pass) that declare only the device functions that MUSA is known to have. No
code is generated.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass

OLDEST = 16  # clang 14 crashes in C++20's CUDA mode
NEWEST = 22
CLANG = "MUSA_EMULATOR_CLANG"
PASSES = ("device", "host")

# Options that affect the meaning of the source; the others affect code, warnings or dependencies.
_PAIRED = ("-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_JOINED = re.compile(
    r"-[DUI].+|-(?:isystem|iquote|idirafter).+|-std=.+|-f(?:no-)?(?:exceptions|rtti|signed-char|char8_t)"
)


class ClangMissingError(Exception):
    """No suitable clang was found. The message has the command that installs one."""


def language_options(options: list[str]) -> list[str]:
    """The options of mcc that both passes need."""
    kept = []
    rest = iter(options)
    for option in rest:
        if option in _PAIRED:
            kept += [option, next(rest, "")]
        elif _JOINED.fullmatch(option):
            kept.append(option)
    return kept


def clang_version(command: list[str]) -> int | None:
    """The major version of a clang, or None if the command is not a clang."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = re.search(r"clang version (\d+)", done.stdout)
    return int(match.group(1)) if match else None


def find_clang(environment=os.environ) -> list[str]:
    """The command of a suitable clang: `MUSA_EMULATOR_CLANG`, or the oldest installed version.

    Raises:
        ClangMissingError: there is none, or MUSA_EMULATOR_CLANG is not a suitable clang.
    """
    fix = f"Fix: apt-get install --yes clang-{OLDEST}, or export {CLANG}=<path of clang++>"
    try:
        chosen = shlex.split(environment.get(CLANG, ""))
    except ValueError as error:
        raise ClangMissingError(f"{CLANG}={environment[CLANG]!r} is no command: {error}.\n{fix}") from None
    if chosen:
        version = clang_version(chosen)
        if version is None or version < OLDEST:
            found = "not a working clang" if version is None else f"clang {version}"
            raise ClangMissingError(
                f"--two-pass needs clang {OLDEST} or newer; {CLANG}={shlex.join(chosen)} is {found}.\n{fix}"
            )
        return chosen
    names = [*(f"clang++-{version}" for version in range(OLDEST, NEWEST + 1)), "clang++"]
    for name in names:
        path = shutil.which(name, path=environment.get("PATH"))
        if path and (clang_version([path]) or 0) >= OLDEST:
            return [path]
    raise ClangMissingError(
        f"--two-pass needs clang {OLDEST} or newer, and there is none on PATH.\n"
        f"Likely causes: it is not installed, or it has another name.\n{fix}"
    )


@dataclass(frozen=True)
class Headers:
    """The include folders of both passes."""

    shim: pathlib.Path
    sdk: pathlib.Path


def command_of(
    clang: list[str], mode: str, options: list[str], arch: int, headers: Headers, source: str
) -> list[str]:
    """Returns the command of one pass."""
    kept = language_options(options)
    standard = [] if any(option.startswith("-std=") for option in kept) else ["-std=c++17"]
    return [
        *clang, "-x", "cuda", f"--cuda-{mode}-only", "--cuda-gpu-arch=sm_80", "-nocudainc", "-nocudalib",
        "-fsyntax-only", "-w", "-ferror-limit=20", "-U__CUDA__", f"-DMCC_TWO_PASS_ARCH={arch * 10}",
        f"-I{headers.shim / 'include'}", "-include", str(headers.shim / "first.h"), *standard, *kept,
        f"-isystem{headers.sdk}", source,
    ]  # fmt: skip


def check(
    source: str, options: list[str], arch: int, headers: Headers, verbose: bool = False
) -> dict[str, str]:
    """Runs both passes. Returns clang's errors by pass name; empty if both accept the source.

    Raises:
        ClangMissingError: there is no clang.
    """
    clang = find_clang()
    refused = {}
    for mode in PASSES:
        command = command_of(clang, mode, options, arch, headers, source)
        if verbose:
            print(shlex.join(command), flush=True)
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode != 0:
            refused[mode] = done.stdout + done.stderr
    return refused
