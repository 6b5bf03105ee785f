# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds and tests this tree with other torch and Python versions: `dev.py matrix`.

Each combination has a copy of the tree with its own .venv in build/matrix/<torch>-<python>, so the .venv
and the build folders of this tree do not change, and a second run compiles only differences. torch is
installed without the CUDA libraries that its wheel requires; `cuda_stubs` replaces them. The record is
written after each combination; a combination that was not run has no entry.

A combination with this tree's own torch version differs only in Python. As for a user of a release, the
wheels that fit every Python are installed, made from this tree's build, and only the packages that are
bound to one Python version are compiled.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, legs, packages, versions
from .progress import run_logged

FOLDER = ROOT / "build" / "matrix"
WHEELS = FOLDER / "wheels"
RECORD = ROOT / "tests" / "data" / "last_matrix_run.json"
# Some tests of each part of the product: loading, device API, memory, views, streams, graphs,
# random numbers, autograd, the profiler, each pack. Tests of the tools and the emulator do not
# depend on torch's version.
QUICK = (
    "tests/torch_musa/test_import.py",
    "tests/torch_musa/test_device_api.py",
    "tests/torch_musa/test_memory_api.py",
    "tests/torch_musa/test_no_monkeypatch.py",
    "tests/musa_runtime/test_loading.py",
    "tests/musa_runtime/test_accelerator.py",
    "tests/musa_runtime/test_autograd.py",
    "tests/musa_runtime/test_caching_allocator.py",
    "tests/musa_runtime/test_copies.py",
    "tests/musa_runtime/test_events.py",
    "tests/musa_runtime/test_graphs.py",
    "tests/musa_runtime/test_profiler.py",
    "tests/musa_runtime/test_random.py",
    "tests/musa_runtime/test_serialization.py",
    "tests/musa_runtime/test_streams.py",
    "tests/musa_runtime/test_tensors.py",
    "tests/musa_runtime/test_views.py",
    "tests/musa_ops_mudnn/test_small.py",
    "tests/musa_ops_ported/test_library.py",
    "tests/musa_amp/test_autocast.py",
    "tests/musa_amp/test_scaling.py",
    "tests/musa_distributed/test_pack.py",
    "tests/musa_compile/test_pack.py",
    "tests/musa_compat/test_names.py",
    "tests/musa_as_cuda/test_switch.py",
)
# Files of which one case in so many runs: the operator database, compiled programs, torchvision's operators.
SAMPLED = {
    "tests/conformance/test_ops.py": "1/40",
    "tests/musa_compile/test_programs.py": "1/6",
    "tests/musa_ops_vision/test_operators.py": "1/6",
}
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
IMPORT = """
import torch, torch_musa
assert torch.equal((torch.arange(4, device="musa") * 2).cpu(), torch.arange(0, 8, 2))
print(torch.__version__)
"""
# Tests in those files that run examples, which need packages that are not installed in
# combinations.
LEFT_OUT = tuple(
    f"tests/musa_distributed/test_pack.py::{name}"
    for name in (
        "test_the_example_under_torchrun",
        "test_the_example_says_how_it_is_started",
        "test_the_digits_network_learns_as_in_one_process",
    )
)
# Sections of requirements-dev.txt, by title, that the build and the quick suite do not need.
NOT_NEEDED_TITLES = ("# lint", "# examples")
# Versions with a wheel for free-threaded Pythons, instead of those in requirements-dev.txt, which have none.
FREE_THREADED = {"hypothesis": "6.155.7"}
# Prints the files and folders in site-packages of torch and its requirements, except setuptools,
# which the environment has itself.
SHARED_PATHS = """
import importlib.metadata as m, json, re
waiting, seen, paths = ["torch"], set(), set()
while waiting:
    name = waiting.pop()
    if name in seen or name == "setuptools":
        continue
    seen.add(name)
    try:
        found = m.distribution(name)
    except m.PackageNotFoundError:
        continue  # needed on another system
    tops = {file.parts[0] for file in found.files} - {"..", "__pycache__"}
    paths |= {str(found.locate_file(top)) for top in tops}
    waiting += [re.match(r"[\\w.-]+", text)[0] for text in found.requires or () if "extra ==" not in text]
print(json.dumps(sorted(paths)))
"""
# Requirements of torch's wheel that are needed only for CUDA devices.
CUDA_REQUIREMENT = re.compile(r"(nvidia|cuda)-|(pytorch-)?triton\b")


class Cell:
    """One combination of torch and Python.

    Attributes:
        torch (str): the minor version, such as "2.12".
        python (str): such as "3.12"; "3.13t" is a free-threaded one.
    """

    takes_shared = True  # whether wheels built on this machine can be installed

    def __init__(self, torch: str, python: str) -> None:
        self.torch = torch
        self.python = python

    @property
    def name(self) -> str:
        return f"{self.torch}-{self.python}"

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def executable(self) -> Path:
        """The Python of the combination's environment."""
        return self.tree / ".venv" / "bin" / "python"

    @property
    def stamps(self) -> Path:
        """The folder with one file per installed package."""
        return self.tree / ".venv" / packages.STAMPS.name

    def prepare(self) -> str:
        """Returns the Python that makes the environment, after checking that it starts."""
        return find_python(self.python)

    def has_environment(self) -> bool:
        return self.executable.exists()

    def build(self, python: str, shared: Sequence[str]) -> None:
        """Builds and installs all packages. shared: packages to install from their wheels in WHEELS."""
        wheels = ["--wheels", WHEELS] if shared else []
        self.run("build", [python, "tools/dev.py", "setup", *wheels])

    def environment(self) -> dict[str, str]:
        dropped = ("VIRTUAL_ENV", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        # A CUDA build of torch that finds a GPU would use "cuda" as the machine's accelerator.
        return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "CUDA_VISIBLE_DEVICES": ""}

    def run(self, title: str, command: Sequence[str | Path]) -> str:
        """Runs a command in the copied tree; returns its output."""
        log = self.folder / "logs" / f"{title.replace(' ', '_')}.log"
        title = f"torch {self.torch}, Python {self.python}: {title}"
        run_logged(title, [str(word) for word in command], log, self.environment(), cwd=self.tree)
        return log.read_text(errors="replace").partition("\n")[2]


def tracked_and_new(root: Path) -> list[str]:
    """Returns files of the tree that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True
    )
    names = os.fsdecode(listed.stdout).split("\0")
    return sorted(name for name in names if name and (root / name).is_file())


def copy_tree(root: Path, target: Path, names: Iterable[str]) -> None:
    """Copies the named files of `root` to `target`; an unchanged file keeps its modification time.

    Other folders of the copy (.venv, builds) are kept. Files that are no longer named are deleted.
    """
    names = set(names)
    manifest = target / "build" / "matrix_files.json"
    before = set(json.loads(manifest.read_text())) if manifest.is_file() else set()
    for name in sorted(before - names):
        (target / name).unlink(missing_ok=True)
    for name in sorted(names):
        source, copy = root / name, target / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps(sorted(names)))


def without_torch(requirements: str) -> str:
    """Returns requirements-dev.txt without the torch line and the sections in NOT_NEEDED_TITLES."""
    sections = [part for part in requirements.split("\n\n") if not part.startswith(NOT_NEEDED_TITLES)]
    lines = "\n\n".join(sections).splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("torch==")]
    if len(kept) != len(lines) - 1:
        raise WorkspaceError("requirements-dev.txt has no one line torch==X.Y.Z")
    return "".join(kept)


def for_free_threading(requirements: str) -> str:
    """Returns the requirements with the versions of FREE_THREADED, one line for each of its packages."""
    others = [line for line in requirements.splitlines() if line.partition("==")[0] not in FREE_THREADED]
    return "\n".join([*others, *(f"{name}=={version}" for name, version in FREE_THREADED.items())]) + "\n"


def needed_on_the_cpu(requirements: Iterable[str]) -> list[str]:
    """Returns the requirements of torch's wheel for pip, without the CUDA libraries."""
    return [
        text
        for text in requirements
        if not CUDA_REQUIREMENT.match(text) and not re.search(r";.*\bextra\s*==", text)
    ]


def find_python(version: str) -> str:
    """Returns the path of an interpreter of that version, after checking that it starts."""
    if version == RUNNING:
        return sys.executable
    found = shutil.which(f"python{version}")
    works = found and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    if not works:
        raise WorkspaceError(f"python{version} is not on PATH, or does not start")
    return found


def install_torch(cell: Cell, python: str, *, installed: bool) -> dict[str, Any]:
    """Makes the environment and installs torch; returns torch's version and the stand-ins made.

    installed: use this Python's torch; pip then finds it installed, or reports that the version is missing.
    """
    if not cell.has_environment():
        cell.run("venv", [python, "-m", "venv", cell.executable.parents[1]])
    pip = [cell.executable, "-m", "pip", "install"]
    if installed:
        share_torch(cell, python)
    cell.run("torch", [*pip, "--no-deps", f"torch=={cell.torch}.*"])
    stand_ins = []
    if not installed:
        code = "import importlib.metadata as m, json; print(json.dumps(m.requires('torch')))"
        listed = cell.run("requirements of torch", [cell.executable, "-c", code])
        cell.run("libraries of Python", [*pip, *needed_on_the_cpu(json.loads(listed))])
        stand_ins = make_stand_ins(cell)
    version = cell.run("import of torch", [cell.executable, "-c", "import torch; print(torch.__version__)"])
    return {"version": version.splitlines()[-1], "stand_ins": stand_ins}


def share_torch(cell: Cell, python: str) -> None:
    """Links torch and its requirements from `python` into the combination's environment.

    Other packages of that Python are not linked: pip would regard them as installed and skip files that the
    build expects in the environment's own folders.
    """
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(cell.run("folder of packages", [cell.executable, "-c", code]).splitlines()[-1])
    for path in json.loads(cell.run("files of torch", [python, "-c", SHARED_PATHS]).splitlines()[-1]):
        link = own / Path(path).name
        if not link.exists():
            link.symlink_to(path)


def make_stand_ins(cell: Cell) -> list[str]:
    """Makes replacements for the missing CUDA libraries; returns their names."""
    code = (
        "import importlib.util as u, json, pathlib as p, sys; sys.path.insert(0, 'tools'); "
        "from workspace import cuda_stubs; "
        "print(json.dumps(cuda_stubs.install(p.Path(u.find_spec('torch').origin).parent / 'lib')))"
    )
    return json.loads(cell.run("stand-ins for CUDA", [cell.executable, "-c", code]).splitlines()[-1])


def built(cell: Cell) -> list[str]:
    """Returns the packages that were installed successfully in the combination's environment."""
    return [name for name in packages.package_names(cell.tree) if (cell.stamps / name).is_file()]


def shared_wheels() -> list[str]:
    """Makes the wheels that fit every Python in WHEELS; returns their package names.

    They are not compiled, so they are made only if all packages in .venv are up to date.
    """
    options = packages.Options()
    stamps = packages.current_stamps(options)
    if not all(packages.matches(packages.STAMPS / name, stamp) for name, stamp in stamps.items()):
        print("the packages in .venv are not up to date (dev.py setup): each copy compiles all", flush=True)
        return []
    shutil.rmtree(WHEELS, ignore_errors=True)
    shared = []
    for name in packages.package_names():
        found = next(iter(metadata.distributions(name=name, path=[str(packages.SITE)])), None)
        if found and re.search(r"^Tag: py3-none-", found.read_text("WHEEL") or "", re.MULTILINE):
            packages.build_wheel(name, options, WHEELS)
            shared.append(name)
    return shared


def count(reports: Iterable[Path]) -> dict[str, Any]:
    """Returns numbers of tests in JUnit files, and the names of failed tests."""
    result: dict[str, Any] = {"passed": 0, "failed": 0, "skipped": 0, "failures": []}
    for report in reports:
        for case, outcome, _ in legs.outcomes(report):
            result[outcome] += 1
            if outcome == "failed":
                result["failures"].append(f"{case.get('classname')}::{case.get('name')}")
    return result


def test(cell: Cell) -> dict[str, Any]:
    """Runs the quick suite and the sampled part: one process per file, one per core at a time."""
    commands = {name: [name] for name in QUICK}
    commands.update({name: [name, "--part", part] for name, part in SAMPLED.items()})
    left_out = [f"--deselect={name}" for name in LEFT_OUT]

    def run_file(name: str) -> Path | str:
        """Returns the report, or the end of the output of a process that wrote none."""
        title = Path(name).with_suffix("").as_posix().replace("/", ".")
        report = cell.folder / "reports" / f"{title}.xml"
        report.unlink(missing_ok=True)
        command = [cell.executable, "-m", "pytest", "-q", f"--junitxml={report}", *left_out]
        command += commands[name]
        try:
            cell.run(title, command)
        except WorkspaceError as error:
            # Failed tests are in the report. Without a report, pytest ended before it ran all
            # tests.
            if not report.is_file():
                return f"{name}: {str(error)[-400:]}"
        return report

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        results = list(pool.map(run_file, commands))
    stopped = [result for result in results if isinstance(result, str)]
    return {**count(result for result in results if isinstance(result, Path)), "stopped": stopped}


def run_cell(cell: Cell, *, installed: bool, shared: Sequence[str] = ()) -> dict[str, Any]:
    """Runs the steps until one fails; returns the record's entry.

    shared: packages to install from their wheels in WHEELS.
    """
    start = time.monotonic()
    entry: dict[str, Any] = {"torch": None, "built": [], "imported": False, "tests": None, "stopped": None}
    entry["shared"] = list(shared)
    try:
        python = cell.prepare()
        copy_tree(ROOT, cell.tree, tracked_and_new(ROOT))
        requirements = without_torch(packages.REQUIREMENTS.read_text())
        if cell.python.endswith("t"):
            requirements = for_free_threading(requirements)
        (cell.tree / packages.REQUIREMENTS.name).write_text(requirements)
        entry["torch"] = install_torch(cell, python, installed=installed)
        try:
            cell.build(python, shared)
        finally:
            entry["built"] = built(cell)
        cell.run("import", [cell.executable, "-c", IMPORT])
        entry["imported"] = True
        entry["tests"] = test(cell)
    except WorkspaceError as error:
        entry["stopped"] = str(error)[-1500:]
    entry["seconds"] = round(time.monotonic() - start)
    return entry


def passed(entry: dict[str, Any]) -> bool:
    """Whether everything was built, imported and tested without failures."""
    tests = entry["tests"]
    return entry["stopped"] is None and bool(tests) and tests["failed"] == 0 and not tests["stopped"]


def table(cells: dict[str, dict[str, Any]], of: int) -> str:
    """Returns the record as text. of: the number of packages."""
    lines = [f"{'torch':10}{'Python':14}{'built':10}{'imported':10}tests"]
    for name, entry in sorted(cells.items()):
        torch, _, python = name.partition("-")
        tests = entry["tests"]
        result = "not run"
        if tests:
            result = f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped"
            result += "".join(f"; ended early: {part}" for part in tests["stopped"])
        imported = "yes" if entry["imported"] else "no"
        lines.append(f"{torch:10}{python:14}{len(entry['built'])} of {of:<5}{imported:10}{result}")
        if entry["stopped"]:
            lines.append(f"  stopped: {entry['stopped'].strip().splitlines()[-1]}")
        lines += [f"  failed: {failure}" for failure in (tests or {}).get("failures", [])]
    return "\n".join(lines)


def run(
    torches: Sequence[str],
    pythons: Sequence[str],
    *,
    installed: bool = False,
    make: Callable[[str, str], Cell] = Cell,
) -> int:
    """Runs the combinations and prints the table; returns 1 unless all passed.

    installed: use each Python's own torch. make: returns the combination of a torch and a Python.
    """
    served = versions.served_torch()
    if unknown := [torch for torch in torches if torch not in served]:
        raise WorkspaceError(f"torch {unknown[0]} is not served; [tool.musa] of pyproject.toml says {served}")
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {"cells": {}}
    chosen = {}
    shared: list[str] | None = None
    for torch in torches:
        for python in pythons:
            cell = make(torch, python)
            takes_shared = cell.takes_shared and torch == versions.own_torch()
            if takes_shared and shared is None:
                shared = shared_wheels()
            entry = run_cell(cell, installed=installed, shared=shared if takes_shared else ())
            chosen[cell.name] = record["cells"][cell.name] = entry
            record["quick"], record["sample"] = list(QUICK), SAMPLED
            RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(table(chosen, len(packages.package_names())))
    return int(not all(passed(entry) for entry in chosen.values()))
