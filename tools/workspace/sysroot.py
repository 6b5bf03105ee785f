# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes a C++ compiler whose output runs on the oldest system of the wheels: `manylinux_2_28`.

It is the machine's g++ with the headers and libraries of an older system:

* glibc: zig, which is on the package index, has the headers and the symbol table of every version, and makes
  stubs of its libraries. Programs linked to them use the symbol versions of glibc 2.28.
* libstdc++ and libmvec: stubs made from the machine's libraries, with the symbols of the older versions.
  Other symbols that g++ needs are linked from its static library with hidden visibility, as in Red Hat's
  gcc-toolset. The layout of objects such as `std::string` is unchanged since GCC 5.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import WorkspaceError

GLIBC = (2, 28)
TARGET = "x86_64-linux-gnu"
# Folders of zig's headers in search order; the first wins.
HEADERS = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")
# Newest symbol versions that a library may need in the policy manylinux_2_28 (GCC 8).
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
# Features of libstdc++ that were configured for the machine's glibc and are missing in 2.28.
TOO_NEW = (
    "_GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT",
    "_GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK",
    "_GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK",
)
SECTIONS = {"OBJECT": (".data", "@object"), "TLS": ('.section .tbss,"awT",@nobits', "@tls_object")}
# A symbol of newer glibc that the machine's libstdc++.a needs. 0: the process is regarded as
# multi-threaded.
NEWER_GLIBC = 'char __libc_single_threaded __attribute__((visibility("hidden"))) = 0;\n'
VERSION = re.compile(r"([A-Z]+)_([0-9.]+)")


@dataclass(frozen=True)
class Symbol:
    """A symbol that a shared library defines.

    Attributes:
        kind (str): FUNC, OBJECT or another ELF type.
        size (int): in bytes; programs contain a copy of an object, of this size.
        version (str): such as "GLIBC_2.2.5".
        default (bool): whether the linker uses this version.
    """

    name: str
    kind: str
    size: int
    version: str
    default: bool


def run(command: Sequence[str | Path], **options) -> str:
    """Runs a command and returns its output.

    Raises:
        WorkspaceError: if it fails; contains its output.
    """
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise WorkspaceError(
            f"{shlex.join(str(word) for word in command)} failed:\n{done.stdout}{done.stderr}"
        )
    return done.stdout + done.stderr


def is_old_enough(version: str) -> bool:
    """Whether a wheel may need a symbol version; always true for other version families."""
    found = VERSION.fullmatch(version)
    if found is None or found.group(1) not in NEWEST:
        return True
    return tuple(int(part) for part in found.group(2).split(".")) <= NEWEST[found.group(1)]


def defined_symbols(library: Path) -> list[Symbol]:
    """Returns the versioned symbols that a shared library defines."""
    found = []
    for line in run(["readelf", "--dyn-syms", "--wide", library]).splitlines():
        fields = line.split()
        if len(fields) != 8 or fields[6] == "UND" or "@" not in fields[7] or fields[3] == "NOTYPE":
            continue
        name, _, version = fields[7].partition("@")
        if fields[6] != "ABS":
            size = int(fields[2], 0)
            found.append(Symbol(name, fields[3], size, version.lstrip("@"), version.startswith("@")))
    return found


def stub_source(symbols: Iterable[Symbol]) -> tuple[str, str]:
    """Returns assembly and version script of a stub library with the symbols."""
    lines, versions = [], {}
    for number, symbol in enumerate(symbols):
        local = f"stub_{number}"
        section, kind = SECTIONS.get(symbol.kind, (".text", "@function"))
        size = max(symbol.size, 1)
        lines += [
            section,
            f".globl {local}",
            f".type {local}, {kind}",
            f"{local}: .zero {size if section != '.text' else 1}",
            f".size {local}, {size}",
            f".symver {local}, {symbol.name}{'@@' if symbol.default else '@'}{symbol.version}, remove",
        ]
        versions[symbol.version] = None
    script = "".join(f"{version} {{ }};\n" for version in versions)
    return "\n".join(lines) + "\n", script


def make_stub(library: Path, target: Path) -> None:
    """Makes a stub of a library, with its symbols of old enough versions."""
    symbols = [symbol for symbol in defined_symbols(library) if is_old_enough(symbol.version)]
    source, script = stub_source(symbols)
    with tempfile.TemporaryDirectory() as folder:
        assembly, versions = Path(folder, "stub.s"), Path(folder, "versions.map")
        assembly.write_text(source)
        versions.write_text(script)
        command = ["gcc", "-shared", "-nostdlib", "-o", target, assembly]
        run([*command, f"-Wl,-soname,{library.name}", f"-Wl,--version-script,{versions}"])


def compilers_file(name: str) -> Path:
    """Returns the path of a file of g++."""
    found = Path(run(["g++", f"-print-file-name={name}"]).strip())
    if not found.is_absolute():
        raise WorkspaceError(f"g++ has no {name}.\nFix: apt-get install g++")
    return found


def copy_headers(zig: Path, target: Path) -> None:
    """Copies the headers of glibc and Linux, except those newer than GLIBC."""
    for name in reversed(HEADERS):
        shutil.copytree(zig / "lib" / "libc" / "include" / name, target, dirs_exist_ok=True)
    # GCC's headers include it if present, but zig's version raises an error for this glibc version.
    (target / "sys" / "single_threaded.h").unlink()


def write_group(script: Path, always: str, needed: str = "") -> None:
    """Writes a linker script that replaces a library by others; those in `needed` only if used."""

    def paths(names: str) -> str:
        return " ".join(f"/lib/{name}" for name in names.split())  # relative to the sysroot

    optional = f" AS_NEEDED ( {paths(needed)} )" if needed else ""
    script.write_text(f"GROUP ( {paths(always)}{optional} )\n")


def link_glibc(zig: Path, target: Path) -> None:
    """Copies the files that zig links: stubs of glibc, the start file, static functions."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.c")
        source.write_text("int main(void) { return 0; }\n")
        caches = {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        version = ".".join(str(part) for part in GLIBC)
        # -s: debug information of the objects would contain folder names.
        command = [zig / "zig", "cc", "-target", f"{TARGET}.{version}", "-v", "-fPIE", "-pie", "-O2", "-s"]
        output = run([*command, source, "-o", Path(folder, "empty")], env={**os.environ, **caches})
        # The last linker call; earlier calls make the start files.
        linked = [line for line in output.splitlines() if line.startswith("ld.lld ")][-1]
        files = [word for word in shlex.split(linked) if word.startswith(folder)]
        for file in (Path(word) for word in files):
            if re.search(r"\.so\.\d+$|crt1\.o$|^libc_nonshared\.a$", file.name):
                shutil.copy(file, target / file.name)
    (target / "libld.so.2").rename(target / "ld-linux-x86-64.so.2")
    for library in target.glob("lib*.so.*"):
        if library.name != "libc.so.6":
            (target / f"{library.name.partition('.')[0]}.so").symlink_to(library.name)
    # Parts of libc since 2.34, so newer build files may not name them.
    parts = "libpthread.so.0 libdl.so.2 librt.so.1 ld-linux-x86-64.so.2"
    write_group(target / "libc.so", "libc.so.6 libc_nonshared.a", parts)
    # As in glibc's script: vectorized kernels use functions of libmvec, which build files do not
    # name.
    (target / "libm.so").unlink()
    write_group(target / "libm.so", "libm.so.6", "libmvec.so.1")


def link_compilers_libraries(target: Path) -> None:
    """Makes stubs of the libraries of g++ and glibc that zig lacks, and static archives for the rest."""
    for name in ("libstdc++.so.6", "libgcc_s.so.1", "libmvec.so.1"):
        make_stub(compilers_file(name), target / name)
    (target / "libmvec.so").symlink_to("libmvec.so.1")
    (target / "libgcc_s.so").write_text("GROUP ( /lib/libgcc_s.so.1 -lgcc )\n")
    archive = target / "libstdc++_nonshared.a"
    shutil.copy(compilers_file("libstdc++.a"), archive)
    with tempfile.TemporaryDirectory() as folder:
        source, compiled = Path(folder, "newer_glibc.c"), Path(folder, "newer_glibc.o")
        source.write_text(NEWER_GLIBC)
        run(["gcc", "-O2", "-fPIC", "-c", source, "-o", compiled])
        run(["ar", "rD", archive, compiled])
    write_group(target / "libstdc++.so", f"libstdc++.so.6 {archive.name}")


def write_compiler(folder: Path) -> Path:
    """Writes a script that calls g++ for the sysroot, named g++ as build files expect."""
    headers, libraries = folder / "include", folder / "lib"
    (headers / "bits").mkdir(parents=True)
    undefined = "".join(f"#undef {name}\n" for name in TOO_NEW)
    (headers / "bits" / "c++config.h").write_text(f"#include_next <bits/c++config.h>\n{undefined}")
    options = [f"--sysroot={folder}", f"-D__GLIBC_MINOR__={GLIBC[1]}", f"-isystem{headers}"]
    options += [f"-B{libraries}", f"-L{libraries}", "-Wl,--exclude-libs,libstdc++_nonshared.a"]
    script = folder / "bin" / "g++"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} {shlex.join(options)} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return script


def make(zig: Path, folder: Path) -> Path:
    """Makes the sysroot in a folder unless it is up to date; returns the path of its compiler.

    zig: the folder of the package `ziglang`.
    """
    compiler = folder / "bin" / "g++"
    stamp = folder / "stamp"
    text = f"{run(['g++', '--version'])}{run([zig / 'zig', 'version'])}{Path(__file__).read_text()}"
    if stamp.is_file() and stamp.read_text() == text:
        return compiler
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib").mkdir(parents=True)
    copy_headers(zig, folder / "usr" / "include")
    link_glibc(zig, folder / "lib")
    link_compilers_libraries(folder / "lib")
    write_compiler(folder)
    stamp.write_text(text)
    return compiler
