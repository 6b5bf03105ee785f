# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks of the tools that build extensions: compiler, ninja, mcc, build folder, text encoding.

Failures are warnings, because the device works without these tools.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from musa_runtime import installation, sdk, switches
from musa_runtime.errors import SettingError

from .checks import Warn

# Standard compiler folders of Debian, Red Hat and others, for a PATH that lacks them.
_SYSTEM_PATH = os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin"])
_COMPILERS = ("c++", "g++", "clang++")
_INSTALL_COMPILER = "apt-get install --yes g++"


def compiler():
    """Checks that `$CXX`, or c++, compiles C++20."""
    need = "a C++20 compiler, to build extensions: g++ 11 or newer, or clang++"
    try:
        named = switches.command("CXX", "c++")
    except SettingError as error:
        raise Warn(str(error).splitlines()[0], need, error.command, "a mistyped CXX") from None
    path = shutil.which(named[0])
    if path is None:
        have = f"{named[0]}: not found on PATH"
        if os.environ.get("CXX") and shutil.which("c++"):
            raise Warn(have, need, "unset CXX", "CXX names a compiler that is not installed")
        for other in _COMPILERS:
            if shutil.which(other):
                raise Warn(have, need, f"export CXX={other}", "the compiler has another name")
        for other in _COMPILERS:
            if found := shutil.which(other, path=_SYSTEM_PATH):
                raise Warn(have, need, _extend_path(found), f"PATH lacks {os.path.dirname(found)}")
        raise Warn(have, need, _INSTALL_COMPILER, "no C++ compiler is installed")
    done = _run(
        [*named, "-std=c++20", "-x", "c++", "-fsyntax-only", "-"], "#include <version>\nint main() {}\n"
    )
    if done.returncode != 0:
        have = f"{shlex.join(named)} cannot compile C++20: {_first_lines(done)}"
        causes = "an old compiler; a compiler without its standard library"
        raise Warn(have, need, _INSTALL_COMPILER, causes)
    return f"{path}: {_first_lines(_run([*named, '--version']), 1)}"


def ninja():
    """Checks that ninja is on PATH, where extension builds search for it."""
    path = shutil.which("ninja")
    need = "ninja, to build extensions"
    if path is not None:
        done = _run([path, "--version"])
        if done.returncode == 0:
            return f"{path}: {_first_lines(done, 1)}"
        fix = f"{installation.pip()} install --force-reinstall ninja"
        raise Warn(
            f"{path} does not run: {_first_lines(done)}",
            need,
            fix,
            "it belongs to a deleted environment",
        )
    have = "ninja: not found on PATH"
    beside = os.path.join(os.path.dirname(sys.executable), "ninja")
    if os.path.exists(beside):
        causes = "the environment's Python was run by its path without activating the environment"
        raise Warn(have, need, _extend_path(beside), causes)
    raise Warn(have, need, f"{installation.pip()} install ninja", "ninja is not installed")


def mcc():
    """Checks that the SDK's compiler runs."""
    found = sdk.resolve()
    path = os.environ.get("PYTORCH_MCC") or os.path.join(found.home, "bin", "mcc")
    need = "the compiler of the MUSA SDK, to build extensions with .mu or .cu sources"
    if not os.path.exists(path):
        if os.environ.get("PYTORCH_MCC"):
            raise Warn(
                f"PYTORCH_MCC={path}: no such file", need, "unset PYTORCH_MCC", "a mistyped PYTORCH_MCC"
            )
        fix = f"install the compiler of the MUSA SDK into {found.home}"
        if found.source == "musa_emulator":
            fix = installation.command("musa-emulator", reinstall=True)
        raise Warn(
            f"{path}: no such file",
            need,
            fix,
            "only the SDK's runtime is installed, or the SDK is incomplete",
        )
    done = _run([path, "--version"])
    if done.returncode == 0:
        return f"{path} runs: {_first_lines(done, 1)}."
    have = f"{path} --version ended with status {done.returncode}: {_first_lines(done)}"
    if shutil.which("python3") is None:
        causes = "mcc is a Python program in some SDKs, and PATH has no python3"
        raise Warn(have, need, _extend_path(sys.executable), causes)
    raise Warn(have, need, "", "the C++ compiler that mcc calls is missing; the SDK is incomplete")


def build_folder():
    """Checks that the default build folder of extensions is writable."""
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    if not folder:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        # As in torch.utils.cpp_extension, which is slow to import.
        folder = os.path.join(cache, "torch_extensions")
    existing = os.path.abspath(folder)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    try:
        with tempfile.TemporaryFile(dir=existing):
            return folder
    except OSError as error:
        raise Warn(
            f"{folder} cannot be written: {error.strerror} ({existing})",
            "a folder to build extensions in",
            'export TORCH_EXTENSIONS_DIR="$(mktemp -d)"',
            "the home folder is read-only or belongs to another user; a wrong TORCH_EXTENSIONS_DIR",
        ) from error


def encoding():
    """Checks that paths and messages are encoded as UTF-8."""
    name = sys.getfilesystemencoding()
    if name.lower().replace("-", "") == "utf8":
        return name
    raise Warn(
        f"paths and messages are encoded as {name}",
        "UTF-8, so that names with non-ASCII characters can be read, printed and compiled",
        "export PYTHONUTF8=1",
        "LC_ALL, LC_CTYPE or LANG is a locale without UTF-8, or PYTHONUTF8 is 0",
    )


CHECKS = [
    ("compiler", compiler, ()),
    ("ninja", ninja, ()),
    ("mcc", mcc, ("MUSA SDK",)),
    ("build folder", build_folder, ()),
    ("text encoding", encoding, ()),
]


def _extend_path(program):
    return f'export PATH="$PATH:{os.path.dirname(program)}"'


def _run(command, text=None):
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, errors="replace", timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def _first_lines(done, count=3):
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return "\n".join(lines[:count]) or "no output"
