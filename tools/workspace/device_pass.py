# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiles this tree's kernels with clang's host and device pass: `dev.py lint --device-pass`.

Checks kernels that the branch changes, some that include a changed header, and a sample that differs from
commit to commit. Needs torch in .venv and clang, but no built package: headers are ported and generated in
build/device_pass.
"""

import concurrent.futures
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness import records, tier

from . import ROOT, WorkspaceError, packages, prerequisites


def _module_of_mcc(name: str):
    """Imports a module of the emulator's mcc, whose folder is not a package."""
    path = ROOT / "packages" / "musa-emulator" / "mcc" / "lib" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


two_pass = _module_of_mcc("two_pass")
FOLDER = ROOT / "build" / "device_pass"
PACKAGES = ROOT / "packages"
HEADERS = two_pass.Headers(
    shim=PACKAGES / "musa-emulator" / "mcc" / "include" / "two_pass",
    sdk=PACKAGES / "musa-emulator" / "csrc" / "include",
)
ARCH = 31
MOST_BY_HEADER = 8  # files checked because a header changed; --all checks all of them
SAMPLE = 4  # further files
# All kernels depend on them.
COMMON = ("packages/musa-emulator/csrc/include/", "packages/musa-emulator/mcc/", "packages/musa-port/src/")
_LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def clang_missing() -> str | None:
    """Returns why clang cannot be used, or None."""
    try:
        two_pass.find_clang()
    except two_pass.ClangMissingError as error:
        return str(error).splitlines()[0]
    return None


CLANG = prerequisites.Prerequisite("clang", clang_missing, [f"clang-{two_pass.OLDEST}"])


def kernel_files(root: Path = ROOT) -> list[str]:
    """Returns all .mu files of the packages and examples, as paths relative to the root."""
    found = [path for top in ("packages", "examples") for path in (root / top).rglob("*.mu")]
    names = (path.relative_to(root) for path in found)
    return sorted(str(name) for name in names if not packages.GENERATED & set(name.parts))


def included(path: Path, folders: Sequence[Path]) -> set[Path]:
    """Returns the file and all files of this tree that it includes in quotes, at any depth."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        current = waiting.pop()
        if current in found:
            continue
        found.add(current)
        for name in _LOCAL_INCLUDE.findall(current.read_text(encoding="utf-8")):
            candidates = [folder / name for folder in (current.parent, *folders)]
            waiting += [candidate for candidate in candidates if candidate.is_file()][:1]
    return found


def includes_changed(name: str, changed: set[str]) -> bool:
    """Returns whether a header of this tree that the kernel file needs is among the changed files."""
    if any(file.startswith(COMMON) for file in changed):
        return True
    path = ROOT / name
    folders = [PACKAGES / Path(name).parts[1] / "csrc"] if name.startswith("packages/") else []
    return any(str(header.relative_to(ROOT)) in changed for header in included(path, folders))


def chosen(names: Sequence[str], changed: set[str], turn: int) -> tuple[list[str], int]:
    """Returns files to check, and the number of skipped files with a changed header.

    turn: the number of the commit; successive commits take successive files.
    """
    start = turn * SAMPLE % max(1, len(names))
    others = [name for name in (*names[start:], *names[:start]) if name not in changed]
    by_header = [name for name in others if includes_changed(name, changed)]
    kept = by_header[:: max(1, -(-len(by_header) // MOST_BY_HEADER))]
    sample = [name for name in others if name not in by_header][:SAMPLE]
    return sorted([*changed.intersection(names), *kept, *sample]), len(by_header) - len(kept)


# The generators run from their sources, because the check needs no package that is built.
GENERATORS = ("musa-port", "musa-ops-ported", "musa-runtime")


def generator_environment() -> dict[str, str]:
    source = os.pathsep.join(str(PACKAGES / name / "src") for name in GENERATORS)
    return {**packages.build_environment(), "PYTHONPATH": source}


def _run(*command: str | Path) -> None:
    env = generator_environment()
    done = subprocess.run([packages.PYTHON, *command], env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkspaceError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def torch_include() -> Path:
    code = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('torch').origin))"
    found = subprocess.run([packages.PYTHON, "-c", code], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / "include"


def prepare() -> list[str]:
    """Ports torch's headers and generates operator headers; returns options for files that include torch."""
    ported, generated = FOLDER / "ported", FOLDER / "generated"
    _run("-m", "musa_port", "-o", ported, "--quiet")
    _run("-m", "musa_ops_ported.codegen", "--out", generated, "--shards", "1")
    port_include = PACKAGES / "musa-port" / "src" / "musa_port" / "include"
    torch = torch_include()
    return [
        f"-I{ported / 'overlay'}", f"-I{port_include}", f"-I{generated}",
        f"-isystem{PACKAGES / 'musa-runtime' / 'csrc'}",
        f"-isystem{PACKAGES / 'musa-runtime' / 'csrc' / 'pack_sdk'}", f"-isystem{torch}",
        f"-isystem{torch / 'torch' / 'csrc' / 'api' / 'include'}", f"-idirafter{ported}",
        "-DAT_PER_OPERATOR_HEADERS", "-DUSE_DISTRIBUTED", "-DUSE_C10D_GLOO", "-DUSE_RPC", "-DUSE_TENSORPIPE",
        "-DAT_DISABLE_JITERATOR", "-include", str(port_include / "prelude.h"),
    ]  # fmt: skip


def options_of(name: str, of_torch: Sequence[str]) -> list[str]:
    """Returns the compiler options, as in the package's CMakeLists.txt."""
    own = [f"-I{PACKAGES / Path(name).parts[1] / 'csrc'}"] if name.startswith("packages/") else []
    torch = [] if name.startswith("packages/musa-amp/") else of_torch
    return ["-std=c++20", "-DNDEBUG", *own, *torch]


def check(names: Sequence[str], jobs: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields each file when it is done, with the errors of the passes; prints a line for it."""
    of_torch = prepare()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = {
            pool.submit(two_pass.check, str(ROOT / name), options_of(name, of_torch), ARCH, HEADERS): name
            for name in names
        }
        for count, done in enumerate(concurrent.futures.as_completed(waiting), 1):
            name, found = waiting[done], done.result()
            said = f"refused by the {' and the '.join(found)} pass" if found else "both passes"
            print(f"[{count}/{len(names)}] {name}: {said}", flush=True)
            for messages in found.values():
                print(messages)
            yield name, found


def run(everything: bool, jobs: int | None = None) -> int:
    """Checks the files; returns the number of rejected ones. A check of all files is recorded."""
    prerequisites.ensure((CLANG,))
    names = kernel_files()
    selected, left_out = (
        (names, 0) if everything else chosen(names, tier.changed_files(), tier.commit_number())
    )
    found = dict(check(selected, jobs or max(1, len(os.sched_getaffinity(0)))))
    refused = sorted(name for name, passes in found.items() if passes)
    result = f"{len(selected) - len(refused)} of {len(selected)} files accepted"
    print(f"two passes: {result}", flush=True)
    if left_out:
        print(f"{left_out} more include a changed header: python3 tools/dev.py lint --device-pass --all")
    if everything:
        version = two_pass.clang_version(two_pass.find_clang())
        records.write(
            "two_pass", "python3 tools/dev.py lint --all", f"clang {version}: {result}", refused=refused
        )
    return len(refused)
