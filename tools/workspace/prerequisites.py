# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the machine's prerequisites for pip, and installs missing ones."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ROOT, WorkspaceError

MIN_PYTHON = (3, 10)
MIN_GXX = 11
SETUP_BYTES = 6 * 10**9  # for torch and the other requirements, build folders and logs
BUILD_BYTES = 10**9  # if the requirements are already in .venv


@dataclass(frozen=True)
class Prerequisite:
    """``probe`` returns None or the problem, which installing the ``debian`` packages fixes."""

    name: str
    probe: Callable[[], str | None]
    debian: Sequence[str] = ()


def compiler() -> str:
    return os.environ.get("CXX", "g++")


def compiles(source: str) -> bool:
    command = [*compiler().split(), "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    try:
        return subprocess.run(command, input=source.encode(), capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def python_version(version: Sequence[int] = sys.version_info) -> str | None:
    if tuple(version[:2]) >= MIN_PYTHON:
        return None
    return f"Python {version[0]}.{version[1]} is too old; {MIN_PYTHON[0]}.{MIN_PYTHON[1]} or newer is needed"


def python_headers(include: str | None = None) -> str | None:
    folder = Path(include or sysconfig.get_path("include"))
    return None if (folder / "Python.h").is_file() else f"Python.h is not in {folder}"


def venv_module(find=importlib.util.find_spec) -> str | None:
    # On Debian, venv has no ensurepip unless python3-venv is installed.
    missing = [name for name in ("venv", "ensurepip") if find(name) is None]
    return f"Python module {' and '.join(missing)} is missing" if missing else None


def cxx_compiler() -> str | None:
    executable = compiler().split()[0]
    if shutil.which(executable) is None:
        return f"no C++ compiler: {executable} is not on PATH"
    old = f"defined(__GNUC__) && !defined(__clang__) && __GNUC__ < {MIN_GXX}"
    if compiles(f"#if {old}\n#error too old\n#endif\n#include <concepts>"):
        return None
    return f"{executable} is too old or has no C++20 library; g++ {MIN_GXX} or newer is needed"


def googletest() -> str | None:
    return None if compiles("#include <gtest/gtest.h>") else "the GoogleTest headers are missing"


def ip_tool(which=shutil.which) -> str | None:
    return None if which("ip") else "the program ip is missing, which tests of several hosts use"


def find_browser() -> str | None:
    """Returns the path of Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


def browser(find=find_browser) -> str | None:
    return None if find() else "there is no Chromium or Chrome, in which the pages of the manual are opened"


def chinese_font(run=subprocess.run) -> str | None:
    command = ["fc-list", "--quiet", ":lang=zh-cn"]
    try:
        found = run(command).returncode == 0
    except FileNotFoundError:
        found = False
    return None if found else "there is no font with Chinese characters, which pages of the manual have"


def doxygen(which=shutil.which) -> str | None:
    return (
        None
        if which("doxygen")
        else "the program doxygen is missing, which reads the C++ headers for the manual"
    )


def disk_space(needed: int | None = None, folder: Path = ROOT) -> str | None:
    if needed is None:
        needed = BUILD_BYTES if (ROOT / ".venv").exists() else SETUP_BYTES
    free = shutil.disk_usage(folder).free
    if free >= needed:
        return None
    return f"{free / 1e9:.1f} GB free under {folder}, {needed / 1e9:.0f} GB needed; free some space"


BASIC = (Prerequisite("Python", python_version), Prerequisite("venv", venv_module, ["python3-venv"]))
DISK = Prerequisite("disk", disk_space)
BUILD = (
    *BASIC,
    Prerequisite("Python headers", python_headers, ["python3-dev"]),
    Prerequisite("C++ compiler", cxx_compiler, ["g++"]),
    DISK,
)
TEST = (
    *BUILD,
    Prerequisite("GoogleTest", googletest, ["libgtest-dev"]),
    Prerequisite("iproute2", ip_tool, ["iproute2"]),
)

DOCS = (
    *BASIC,
    Prerequisite("browser", browser, ["chromium"]),
    Prerequisite("Chinese font", chinese_font, ["fontconfig", "fonts-wqy-microhei"]),
    Prerequisite("Doxygen", doxygen, ["doxygen"]),
)


def problems(required: Sequence[Prerequisite]) -> list[tuple[Prerequisite, str]]:
    found = ((item, item.probe()) for item in required)
    return [(item, problem) for item, problem in found if problem]


def describe(found: Sequence[tuple[Prerequisite, str]]) -> str:
    lines = ["The machine lacks what the build needs:"]
    lines += [f"  {item.name}: {problem}" for item, problem in found]
    packages = sorted({package for item, _ in found for package in item.debian})
    if packages:
        lines.append(
            f"On Debian or Ubuntu: sudo apt-get update && sudo apt-get install -y {' '.join(packages)}"
        )
    if any(item.name == "Python headers" for item, _ in found):
        lines.append(
            f"This Python is {sys.executable}; one that is not the distribution's needs headers of its own."
        )
    return "\n".join(lines)


def apt_install(packages: Sequence[str]) -> None:
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-q"],
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages],
    ):
        result = subprocess.run(command, env=env, capture_output=True, text=True)
        if result.returncode != 0:
            raise WorkspaceError(
                f"{result.stdout}{result.stderr}\n{' '.join(command)} failed; see its output above"
            )


def may_install(packages: Sequence[str]) -> bool:
    """Asks a user at a terminal whether to install packages. Returns True in CI and scripts."""
    if os.environ.get("CI") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    answer = input(f"Install {' '.join(packages)} with apt-get? [y/N] ")
    return answer.strip().lower() in ("y", "yes")


def ensure(required: Sequence[Prerequisite]) -> None:
    """Installs missing prerequisites if possible (as root on Debian), otherwise raises and lists them.

    At a terminal it asks first.
    """
    found = problems(required)
    packages = sorted({package for item, _ in found for package in item.debian})
    if packages and os.geteuid() == 0 and shutil.which("apt-get") and may_install(packages):
        print(f"installing {' '.join(packages)} with apt-get ...", flush=True)
        apt_install(packages)
        found = problems(required)
    if found:
        raise WorkspaceError(describe(found))
