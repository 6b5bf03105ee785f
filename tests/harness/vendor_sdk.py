# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Stand-ins for the vendor's SDK: folders of its layout, made of the emulator's files, that declare nothing.

`runnable` computes: its files are the emulator's, so packs that are built for it run. `linkable` serves
builds, and programs that find no device. Its libraries have the vendor's file names (libmusart.so.4, or
libmusart.so.5 for a version 5) and the public functions, without those that only the emulator has. Its mcc
makes objects that need other symbols than the emulator's. From version 5 on, the C++ interface of muDNN is
mudnncxx/mudnn.h and libmudnncxx.so.
"""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import musa_emulator
from workspace import ROOT, wheel_check

VERSION = "4.3.1"
# The C header beside which an SDK 5 has the C++ interface of muDNN.
MUDNN_C = ROOT / "packages" / "musa-emulator-mudnn" / "csrc" / "c_interface" / "mudnn.h"
# Variables of a kernel that libmusart of the emulator has, one set for each thread of the host.
PER_THREAD = {"_ZN9musa_simt8in_orderE", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"}
PREFIX = "__musaStandIn"
NO_DEVICE = 100  # musaErrorNoDevice and MUSA_ERROR_NO_DEVICE
DESCRIBE = {"musaGetErrorName", "musaGetErrorString", "mtmlErrorString"}
TEXT = "no MUSA device is detected"

_MCC = """#!{python}
import subprocess, sys
arguments = sys.argv[1:]
status = subprocess.run([{mcc!r}, *arguments]).returncode
if status == 0 and "-c" in arguments and "-o" in arguments:
    made = arguments[arguments.index("-o") + 1]
    command = ["nm", "--undefined-only", made]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = {names!r}
    renamed = [f"--redefine-sym={{name}}={{names[name]}}" for _, name in map(str.split, listed.splitlines())
               if name in names]
    status = subprocess.run(["objcopy", *renamed, made]).returncode if renamed else 0
sys.exit(status)
"""


def declare_vendor(home: Path, version: str = VERSION) -> None:
    """Writes the version.json of a vendor's SDK."""
    file = home / "version.json"
    file.unlink(missing_ok=True)
    file.write_text(json.dumps({"musa_toolkits": {"version": version}, "musa_runtime": {"version": version}}))


def link_tree(source: Path, target: Path, *without: str) -> None:
    """Links the files of a folder, except those whose names start with one in `without`."""
    for path in source.rglob("*"):
        if path.is_file() and not path.name.startswith(without or ("\0",)):
            link = target / path.relative_to(source)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)


def runnable(home: Path, version: str = VERSION) -> Path:
    """An SDK that computes; `home` must not exist."""
    link_tree(musa_emulator.home(), home, "version.json")
    declare_vendor(home, version)
    return home


def symbols_of(library: Path) -> set[str]:
    """The dynamic symbols that a library defines, without versions."""
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[2].partition("@")[0] for line in listed.splitlines()}


def of_the_emulator(name: str) -> bool:
    """Whether only the emulator's libraries have a symbol."""
    return name in PER_THREAD or bool(wheel_check.SYMBOLS_OF["emulator"].search(name))


def write_library(home: Path, name: str, major: str, symbols: set[str], per_thread: set[str]) -> None:
    """A library as on a machine without a driver, `lib<name>.so.<major>` with a link `lib<name>.so`.

    All its functions return the error "no device", and those that describe an error a text.
    """
    lines = [
        f'const char* {symbol}(int error) {{ return "{TEXT}"; }}' for symbol in sorted(symbols & DESCRIBE)
    ]
    lines += [f"int {symbol}(void) {{ return {NO_DEVICE}; }}" for symbol in sorted(symbols - DESCRIBE)]
    lines += [f"__thread char {symbol}[64];" for symbol in sorted(per_thread)]
    file = home / "lib" / f"lib{name}.so.{major}"
    command = ["gcc", "-shared", "-fPIC", "-fno-builtin", "-nostdlib", "-w", "-x", "c", "-", "-o", str(file)]
    command.append(f"-Wl,-soname,{file.name}")
    subprocess.run(command, input="\n".join([*lines, ""]), text=True, check=True)
    (home / "lib" / f"lib{name}.so").symlink_to(file.name)


def use_layout_of_sdk5(home: Path, major: str) -> None:
    """Gives muDNN's C++ interface the names that it has from SDK 5 on, and writes the C header."""
    (home / "include" / "mudnncxx").mkdir()
    for header in list((home / "include").glob("mudnn*.h")):
        header.rename(home / "include" / "mudnncxx" / header.name)
    (home / "include" / MUDNN_C.name).symlink_to(MUDNN_C)
    symbols = symbols_of(home / "lib" / "libmudnn.so")
    for file in (home / "lib").glob("libmudnn.so*"):
        file.unlink()
    write_library(home, "mudnncxx", major, symbols, set())


def linkable(home: Path, version: str = VERSION) -> Path:
    """An SDK for builds; `home` must not exist."""
    emulator, major = musa_emulator.home(), version.partition(".")[0]
    link_tree(emulator / "include", home / "include", "musa_emulator.h")
    link_tree(emulator / "cmake", home / "cmake")
    declare_vendor(home, version)
    (home / "lib").mkdir()
    # The symbols of kernels, by other names.
    renamed = {
        name: f"{PREFIX}_{name.replace('musa_simt', '')}"
        for name in symbols_of(emulator / "lib" / "libmusart.so")
        if name in PER_THREAD or "musa_simt" in name
    }
    for library in (emulator / "lib").glob("lib*.so"):
        name = library.name.removeprefix("lib").removesuffix(".so")
        symbols = {one for one in symbols_of(library) if not of_the_emulator(one)}
        added = set(renamed.values()) if name == "musart" else set()
        threads = {renamed[one] for one in PER_THREAD} & added
        write_library(home, name, major, symbols | (added - threads), threads)
    if int(major) >= 5:
        use_layout_of_sdk5(home, major)
    mcc = home / "bin" / "mcc"
    mcc.parent.mkdir()
    script = _MCC.format(python=sys.executable, mcc=str(emulator / "bin" / "mcc"), names=renamed)
    mcc.write_text(script)
    mcc.chmod(mcc.stat().st_mode | stat.S_IXUSR)
    return home
