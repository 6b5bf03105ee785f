# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the assembly of a filter library: one that has the symbols of another library and none of its code.

    python filter_library.py NM LIBRARY OUTPUT

A program links `libmusa_python.so`, which names `libmusa_runtime.so` as its filtee (`ld --filter`). The
dynamic loader then loads the filtee too and resolves every symbol there. A library without symbols would not
do: linkers refuse symbols of a library that is only a dependency of a linked one, and drop a library without
used symbols. A linker script would not do either: the run path of programs is `torch_musa/lib`, and some
preload the library by its path.
"""

import subprocess
import sys
from pathlib import Path

FUNCTIONS = "TW"
OBJECTS = "BDRV"
# Defined by the linker for each library.
OF_THE_LINKER = {"__bss_start", "_edata", "_end", "_fini", "_init"}


def symbols(nm: str, library: str) -> list[tuple[str, str, int]]:
    """Returns name, type letter of nm and size in bytes of each symbol that a library exports."""
    command = [nm, "--dynamic", "--defined-only", "--format=posix", library]
    found = []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        name, letter, _, *size = line.split()
        if name not in OF_THE_LINKER:
            found.append((name, letter, int(size[0], 16) if size else 0))
    return found


def assembly(found: list[tuple[str, str, int]]) -> str:
    """Returns assembly that defines the symbols. Their addresses are unused: the filtee has them."""
    lines = [".text"]
    for name, letter, _ in found:
        if letter in FUNCTIONS:
            lines += [f".globl {name}", f".type {name}, %function", f"{name}:"]
    lines += [".long 0", ".data"]
    for name, letter, size in found:
        if letter in OBJECTS:
            lines += [
                f".globl {name}",
                f".type {name}, %object",
                f".size {name}, {size}",
                f"{name}:",
                f".zero {size}",
            ]
    lines.append('.section .note.GNU-stack, "", %progbits')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[3]).write_text(assembly(symbols(sys.argv[1], sys.argv[2])))
