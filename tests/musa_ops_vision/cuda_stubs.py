# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Stand-ins for CUDA libraries, which a CUDA build of torchvision loads and CPU code never calls.

They report that there is no CUDA device. Any other call prints the function's name and aborts, so that no
result can be taken for computed.
"""

import re
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

# Calls that CUDA code makes without a device: registration of kernels in static initializers, and
# counting devices, for torch.cuda.is_available(). 100 is cudaErrorNoDevice.
ANSWERS = {
    "__cudaRegisterFatBinary":
        "void** __cudaRegisterFatBinary(void* p) { static void* handle; return &handle; }",
    "__cudaRegisterFatBinaryEnd": "void __cudaRegisterFatBinaryEnd(void** p) {}",
    "__cudaUnregisterFatBinary": "void __cudaUnregisterFatBinary(void** p) {}",
    "__cudaRegisterFunction": "void __cudaRegisterFunction(void** p) {}",
    "__cudaRegisterVar": "void __cudaRegisterVar(void** p) {}",
    "__cudaInitModule": "char __cudaInitModule(void** p) { return 1; }",
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int* count) { *count = 0; return 100; }",
    "cudaGetLastError": "int cudaGetLastError(void) { return 0; }",
    "cudaPeekAtLastError": "int cudaPeekAtLastError(void) { return 0; }",
    "cudaDriverGetVersion": "int cudaDriverGetVersion(int* version) { *version = 0; return 0; }",
    "cudaGetErrorString":
        'const char* cudaGetErrorString(int e) { return "no CUDA device (a stand-in for CUDA\'s runtime)"; }',
}  # fmt: skip
REFUSAL = """
#include <stdio.h>
#include <stdlib.h>
static void refuse(const char* name) {
  fprintf(stderr, "%s was called in a stand-in for a library of CUDA\\n", name);
  abort();
}
"""


@dataclass(frozen=True)
class Symbol:
    name: str
    version: str  # "" if the library has no versions


def parse_version_needs(text: str) -> dict[str, str]:
    """Parses readelf -V: maps each needed version to the library that defines it."""
    found, file = {}, ""
    needs = text.partition("Version needs section")[2]
    for line in needs.splitlines():
        if match := re.search(r"File: (\S+)", line):
            file = match.group(1)
        elif match := re.search(r"Name: (\S+)", line):
            found[match.group(1)] = file
    return found


def parse_symbols(text: str) -> tuple[set[str], set[Symbol]]:
    """Parses readelf --dyn-syms: returns defined names and undefined symbols that are not weak."""
    defined, undefined = set(), set()
    for line in text.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit():
            continue
        binding, section = words[4], words[6]
        name, _, version = words[7].partition("@")
        if section != "UND":
            defined.add(name)
        elif binding != "WEAK":
            undefined.add(Symbol(name, version.lstrip("@")))
    return defined, undefined


def source_of(symbols: set[Symbol]) -> str:
    """Returns the C source of a library with these symbols."""
    lines = [REFUSAL]
    for name in sorted({symbol.name for symbol in symbols}):
        lines.append(ANSWERS.get(name) or f'void {name}(void) {{ refuse("{name}"); }}')
    return "\n".join(lines) + "\n"


def version_script(symbols: set[Symbol]) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for symbol in symbols:
        groups[symbol.version].append(symbol.name)
    versions = sorted(version for version in groups if version)
    return "".join(
        f"{version} {{ global: {'; '.join(sorted(groups[version]))}; }};\n" for version in versions
    )


def compile_library(path: Path, symbols: set[Symbol]) -> None:
    """Compiles a library with these symbols."""
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "stub.c"), Path(folder, "stub.map")
        source.write_text(source_of(symbols))
        script.write_text(version_script(symbols))
        command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", f"-Wl,-soname,{path.name}"]
        if any(symbol.version for symbol in symbols):
            command.append(f"-Wl,--version-script={script}")
        _run(*command, str(source), "-o", str(path))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout
