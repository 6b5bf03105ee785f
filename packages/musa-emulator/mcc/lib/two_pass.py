# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`mcc --two-pass`: checks a .mu file as a compiler with separate passes for host and device does.

The emulator compiles once for both, so it accepts a kernel that calls a host function, and it does not see
what a file does under `#ifdef __MUSA_ARCH__`. The vendor's mcc is based on clang; here clang's CUDA mode
makes its two passes, over a shim (include/two_pass) that declares only the device functions that MUSA is
known to have. No code is made.
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

# Options that decide what the source means; all others are about code, warnings or dependencies.
_PAIRED = ("-D", "-U", "-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros")
_JOINED = re.compile(
    r"-[DUI].+|-(?:isystem|iquote|idirafter).+|-std=.+|-f(?:no-)?(?:exceptions|rtti|signed-char|char8_t)"
)


class ClangMissingError(Exception):
    """There is no clang to make the passes with. The message says how to get one."""


def language_options(options: list[str]) -> list[str]:
    """Those of mcc's options that both passes need."""
    kept = []
    rest = iter(options)
    for option in rest:
        if option in _PAIRED:
            kept += [option, next(rest, "")]
        elif _JOINED.fullmatch(option):
            kept.append(option)
    return kept


def clang_version(command: list[str]) -> int | None:
    """The major version of a clang, or None if the command is no clang."""
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    match = re.search(r"clang version (\d+)", done.stdout)
    return int(match.group(1)) if match else None


def find_clang(environment=os.environ) -> list[str]:
    """The command of a clang that is new enough: `MUSA_EMULATOR_CLANG`, else the oldest that is installed.

    Raises:
        ClangMissingError: there is none, or MUSA_EMULATOR_CLANG is not one.
    """
    fix = f"Fix: apt-get install --yes clang-{OLDEST}, or export {CLANG}=<path of clang++>"
    if chosen := shlex.split(environment.get(CLANG, "")):
        version = clang_version(chosen)
        if version is None or version < OLDEST:
            found = "not a clang that runs" if version is None else f"clang {version}"
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
    """The folders that both passes include from: the shim's and the SDK's."""

    shim: pathlib.Path
    sdk: pathlib.Path


def command_of(
    clang: list[str], mode: str, options: list[str], arch: int, headers: Headers, source: str
) -> list[str]:
    """The command of one pass."""
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
    """What the passes refuse in a source: clang's messages by the name of the pass; empty if both accept it.

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
