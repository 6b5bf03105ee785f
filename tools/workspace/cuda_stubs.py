# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Stand-ins for the CUDA libraries that a CUDA build of torch is linked to, for machines without CUDA.

The package index has only CUDA builds of torch. Their CUDA libraries have gigabytes; `import torch` loads
them, but CPU code never calls them. For each library that the loader does not find, `install(folder)`
compiles one with the symbols that torch imports from it. It reports that there is no CUDA device; any other
call prints the function's name and aborts, so that no result can be taken for computed.
"""

import re
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from . import WorkspaceError

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
  fprintf(stderr, "%s was called in a stand-in for a CUDA library: tools/workspace/cuda_stubs.py\\n", name);
  abort();
}
"""


@dataclass(frozen=True)
class Symbol:
    name: str
    version: str  # "" if the library has no versions


def missing_libraries(folder: Path) -> set[str]:
    """Returns libraries that those in a folder need but the loader does not find."""
    return set(re.findall(r"^\s*(\S+) => not found", _dependencies(folder), re.MULTILINE))


def install(folder: Path) -> list[str]:
    """Makes missing libraries in torch's lib folder; returns their names.

    Raises:
        WorkspaceError: if a missing library is not one of CUDA.
    """
    missing = missing_libraries(folder)
    foreign = sorted(name for name in missing if not re.match(r"lib(cu|nv|nccl)", name))
    if foreign:
        raise WorkspaceError(
            f"torch needs {', '.join(foreign)}, which is not on this machine and no library of CUDA"
        )
    if missing:
        wanted = _wanted(folder, missing)
        for name in sorted(missing):
            compile_library(folder / name, wanted[name])
    left = missing_libraries(folder)
    if left:
        raise WorkspaceError(f"stand-ins for {', '.join(sorted(left))} were made and are not found")
    return sorted(missing)


def _libraries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.so*") if path.is_file())


def _dependencies(folder: Path) -> str:
    return _run("ldd", *(str(library) for library in _libraries(folder)))


def _wanted(folder: Path, missing: set[str]) -> dict[str, set[Symbol]]:
    """Returns the symbols that torch's libraries import from each missing library.

    A symbol without a version is assigned to one of the missing libraries that its user links to.
    """
    defined: set[str] = set()
    # The system's libraries define some symbols that torch uses without a version (operator
    # delete).
    paths = set(re.findall(r" => (/\S+)", _dependencies(folder)))
    for path in paths | {str(library) for library in _libraries(folder)}:
        defined |= parse_symbols(_run("readelf", "--dyn-syms", "-W", path))[0]
    wanted: dict[str, set[Symbol]] = defaultdict(set)
    without_version: list[tuple[Symbol, set[str]]] = []
    for library in _libraries(folder):
        owner = parse_version_needs(_run("readelf", "-V", "-W", str(library)))
        linked = set(re.findall(r"\(NEEDED\).*\[(.*)\]", _run("readelf", "-d", "-W", str(library))))
        undefined = parse_symbols(_run("readelf", "--dyn-syms", "-W", str(library)))[1]
        for symbol in undefined:
            if owner.get(symbol.version) in missing:
                wanted[owner[symbol.version]].add(symbol)
            elif not symbol.version:
                without_version.append((symbol, linked & missing))
    placed: set[str] = set()
    for symbol, candidates in without_version:
        if symbol.name not in defined | placed and candidates:
            placed.add(symbol.name)
            # Prefers a library without versions, because the original is then likely unversioned
            # too.
            wanted[min(candidates, key=lambda name: (any(s.version for s in wanted[name]), name))].add(symbol)
    return wanted


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
        raise WorkspaceError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout
