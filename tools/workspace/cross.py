# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the packages for another processor and tests them: `dev.py matrix --machine aarch64`.

debootstrap makes a Debian system of that processor. It is the sysroot of Debian's cross compiler, and runs
the tests: the kernel starts its programs in QEMU by binfmt_misc. Compilers are slow under emulation, so the
wheels are built on this machine, by a Python that finds the packages of the other system after its own:
torch's headers and libraries, the SDK, and the packages built before.
"""

import os
import platform
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

from . import ROOT, WorkspaceError, image_steps, matrix, packages, prerequisites
from .progress import run_logged

SUITE = "bookworm"
PYTHON = "3.11"  # the version in that suite
# Maps the processor's name in wheels and compiler names to Debian's architecture.
MACHINES = {"aarch64": "arm64"}
# Files in /sys that describe the processor to torch's libraries, which print warnings without them.
# This machine's /sys describes another processor. The number is that of the Cortex-A57.
PROCESSOR = {
    "possible": "0-1\n",
    "present": "0-1\n",
    "cpu0/regs/identification/midr_el1": "0x00000000410fd070\n",
    "cpu1/regs/identification/midr_el1": "0x00000000410fd070\n",
}
# g++ for mcc, which tests run; binutils and gcc to build stand-ins for CUDA's libraries.
INCLUDED = ("binutils", "ca-certificates", "g++", "libgomp1", "python3", "python3-dev", "python3-venv")
# Limit of address space per program, in bytes. QEMU 7.2 keeps a table of all reserved pages: 14 GB
# of memory for the 2 TB of the emulated devices. It ignores limits that the emulated program sets.
ADDRESSES = 150 * 10**9
ENVIRONMENT = Path("/opt/musa")  # inside the system


class Cell(matrix.Cell):
    """A combination that runs on another processor.

    Attributes:
        machine (str): a key of MACHINES.
    """

    takes_shared = False

    def __init__(self, torch: str, python: str, machine: str) -> None:
        super().__init__(torch, python)
        self.machine = machine

    @property
    def name(self) -> str:
        return f"{super().name}-{self.machine}"

    @property
    def root(self) -> Path:
        """The root folder of the system; `cell.folder` is outside of it."""
        return matrix.FOLDER / f"{SUITE}-{self.machine}"

    @property
    def executable(self) -> Path:
        return ENVIRONMENT / "bin" / "python"

    @property
    def environment_outside(self) -> Path:
        """The path of the environment on this machine."""
        return self.root / ENVIRONMENT.relative_to("/")

    @property
    def stamps(self) -> Path:
        return self.environment_outside / packages.STAMPS.name

    @property
    def builder(self) -> Path:
        """The environment of the building Python."""
        return self.folder / "builder"

    def has_environment(self) -> bool:
        return (self.environment_outside / "bin" / "python").is_symlink()  # points to a file of the system

    def prepare(self) -> str:
        if self.python != PYTHON:
            raise WorkspaceError(f"{SUITE} has Python {PYTHON}, so there are no tests with {self.python}")
        prerequisites.ensure(required(self.machine))
        make_system(self.root, self.machine, self.folder / "logs" / "debootstrap.log")
        return "python3"

    def environment(self) -> dict[str, str]:
        """Returns the environment variables of a command in the system."""
        return {
            "PATH": f"{ENVIRONMENT}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LANG": "C.UTF-8",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def run(self, title: str, command: Sequence[str | Path]) -> str:
        """Runs a command of the system in the copied tree; returns its output."""
        log = self.folder / "logs" / f"{title.replace(' ', '_')}.log"
        words = [str(word) for word in command]
        inside = image_steps.command_in(
            self.root, words, self.environment(), {}, folder=str(self.tree), changed=[self.folder]
        )
        limited = ["prlimit", f"--as={ADDRESSES}", *inside]
        title = f"torch {self.torch} for {self.machine}: {title}"
        run_logged(title, limited, log, dict(os.environ), cwd=ROOT)
        return log.read_text(errors="replace").partition("\n")[2]

    def build(self, python: str, shared: Sequence[str]) -> None:
        """Builds the wheels on this machine in separate build folders, and installs each before the next."""
        pip = [self.executable, "-m", "pip", "install"]
        self.run("requirements", [*pip, "-r", self.tree / packages.REQUIREMENTS.name])
        make_builder(self)
        wheels = self.folder / "wheels"
        wheels.mkdir(exist_ok=True)
        self.stamps.mkdir(exist_ok=True)
        for name in packages.package_names():
            (self.stamps / name).unlink(missing_ok=True)
            wheel = packages.build_wheel(
                name,
                packages.Options(),
                wheels,
                env=build_environment(self),
                python=self.builder / "bin" / "python",
                settings=cmake_settings(self.root, self.machine),
            )
            check_modules(wheel, self.machine)
            self.run(f"wheel of {name}", [*pip, "--force-reinstall", "--no-deps", wheel])
            (self.stamps / name).write_text("from a wheel")


def compiler(machine: str) -> str:
    return f"{machine}-linux-gnu-g++"


def required(machine: str) -> list[prerequisites.Prerequisite]:
    """Returns the prerequisites of a combination on this machine."""

    def cross_compiler() -> str | None:
        return None if shutil.which(compiler(machine)) else f"{compiler(machine)} is missing"

    def emulation() -> str | None:
        if platform.machine() == machine:
            return None
        file = Path(f"/proc/sys/fs/binfmt_misc/qemu-{machine}")
        text = file.read_text() if file.is_file() else ""
        # F: the kernel opened QEMU on registration, so the system needs no copy of it.
        found = text.startswith("enabled") and "F" in text.partition("flags:")[2].partition("\n")[0]
        return None if found else f"the kernel does not start programs for {machine} (binfmt_misc)"

    def root() -> str | None:
        return None if os.geteuid() == 0 else "programs of another system need root: run dev.py with sudo"

    def debootstrap() -> str | None:
        return None if shutil.which("debootstrap") else "debootstrap is missing"

    return [
        prerequisites.Prerequisite("root", root),
        prerequisites.Prerequisite("debootstrap", debootstrap, ["debootstrap"]),
        prerequisites.Prerequisite("cross compiler", cross_compiler, [f"g++-{machine}-linux-gnu"]),
        prerequisites.Prerequisite("emulation", emulation, ["qemu-user-static"]),
    ]


def make_system(root: Path, machine: str, log: Path) -> None:
    """Makes the Debian system unless it exists."""
    if not (root / "etc").is_dir() or (root / "debootstrap").exists():  # missing, or interrupted
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", f"--arch={MACHINES[machine]}", "--variant=minbase"]
        command += [f"--include={','.join(INCLUDED)}", SUITE, str(root)]
        run_logged(f"debootstrap {SUITE} {machine}", command, log, cwd=ROOT)
    for name, text in PROCESSOR.items():
        file = root / "sys" / "devices" / "system" / "cpu" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def make_builder(cell: Cell) -> None:
    """Makes the build environment, with the requirements that must run on this machine."""
    site = cell.builder / "lib" / f"python{cell.python}" / "site-packages"
    if not site.is_dir():
        command = [matrix.find_python(cell.python), "-m", "venv", str(cell.builder)]
        run_logged("making the environment that builds", command, cell.folder / "logs" / "builder.log")
    pip = [str(cell.builder / "bin" / "python"), "-m", "pip", "install"]
    command = [*pip, "-r", str(cell.tree / packages.REQUIREMENTS.name)]
    log = cell.folder / "logs" / "builder.requirements.log"
    run_logged("installing requirements", command, log, packages.build_environment())
    # Searched after its own packages, some of which have libraries for this machine.
    other = cell.environment_outside / "lib" / f"python{cell.python}" / "site-packages"
    (site / "other_machine.pth").write_text(f"{other}\n")


def build_environment(cell: Cell) -> dict[str, str]:
    environment = packages.build_environment()
    return {
        **{name: value for name, value in environment.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
        "PATH": f"{cell.builder / 'bin'}{os.pathsep}{environment['PATH']}",
        # In CXX instead of a CMake file, because mcc reads it too.
        "CXX": f"{compiler(cell.machine)} --sysroot={cell.root}",
        "_PYTHON_HOST_PLATFORM": f"linux-{cell.machine}",  # for wheel tags
    }


def cmake_settings(root: Path, machine: str) -> list[str]:
    """Returns pip arguments with CMake settings."""
    definitions = {
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": machine,
        "Python_INCLUDE_DIR": root / "usr" / "include" / f"python{PYTHON}",
        "PYTHON_MODULE_EXTENSION": f".cpython-{PYTHON.replace('.', '')}-{machine}-linux-gnu.so",
    }
    return [f"--config-settings=cmake.define.{name}={value}" for name, value in definitions.items()]


def check_modules(wheel: Path, machine: str) -> None:
    """Raises WorkspaceError if an extension module has the suffix of another processor's Python.

    Python ignores such a file, so importing the module of the installed package would fail.
    """
    with zipfile.ZipFile(wheel) as archive:
        modules = [name for name in archive.namelist() if ".cpython-" in name and name.endswith(".so")]
    if wrong := [name for name in modules if not name.endswith(f"-{machine}-linux-gnu.so")]:
        raise WorkspaceError(
            f"{wheel.name} has {wrong[0]}, which Python on {machine} does not import.\n"
            "Likely cause: the module's CMakeLists.txt ignores PYTHON_MODULE_EXTENSION.\n"
            "Fix: set_target_properties(<module> PROPERTIES SUFFIX ${PYTHON_MODULE_EXTENSION}) if it is set"
        )


def run(torches: Sequence[str], machine: str) -> int:
    """Runs the combinations of these torch versions; returns 1 unless all passed."""

    def make(torch: str, python: str) -> Cell:
        return Cell(torch, python, machine)

    return matrix.run(torches, [PYTHON], make=make)
