# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiles this tree's kernels with clang's host and device pass: `dev.py lint --device-pass`.

Needs torch in .venv and clang, but no built package: headers are ported and generated in
build/device_pass.
"""

import concurrent.futures
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import ROOT, WorkspaceError, packages, prerequisites


def _module_of_mcc(name: str):
    """Imports a module of the emulator's mcc, whose folder is not a package."""
    path = ROOT / "packages" / "musa-emulator" / "mcc" / "lib" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


two_pass = _module_of_mcc("two_pass")
RECORD = ROOT / "tests" / "data" / "last_two_pass_run.json"
FOLDER = ROOT / "build" / "device_pass"
PACKAGES = ROOT / "packages"
HEADERS = two_pass.Headers(
    shim=PACKAGES / "musa-emulator" / "mcc" / "include" / "two_pass",
    sdk=PACKAGES / "musa-emulator" / "csrc" / "include",
)
ARCH = 31
# Files that are always checked: small ones that use different engines.
SAMPLE = (
    "packages/musa-amp/csrc/scaling_kernels.mu",
    "packages/musa-ops-ported/csrc/kernels/Assert.mu",
    "packages/musa-ops-ported/csrc/kernels/ScanKernels.mu",
    "packages/musa-ops-ported/csrc/kernels/Trace.mu",
)
MOST_BY_HEADER = 8  # files checked because a header changed; --all checks all of them
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


def digests(name: str) -> dict[str, str]:
    """Returns digests of a kernel file, and of this tree's headers that it includes."""
    path = ROOT / name
    folders = [PACKAGES / Path(name).parts[1] / "csrc"] if name.startswith("packages/") else []
    headers = hashlib.sha256()
    for header in sorted(included(path, folders) - {path}):
        headers.update(header.read_bytes())
    return {"file": hashlib.sha256(path.read_bytes()).hexdigest()[:16], "headers": headers.hexdigest()[:16]}


def chosen(names: Sequence[str], record: dict, everything: bool) -> tuple[list[str], int]:
    """Returns files to check, and the number of skipped files with a changed header."""
    if everything:
        return list(names), 0
    known = record.get("files", {})
    changed, by_header = [], []
    for name in names:
        now, then = digests(name), known.get(name, {})
        if now["file"] != then.get("file") or then.get("refused"):
            changed.append(name)
        elif now["headers"] != then.get("headers"):
            by_header.append(name)
    kept = by_header[:: max(1, -(-len(by_header) // MOST_BY_HEADER))]
    sample = [name for name in SAMPLE if name in names]
    return sorted({*changed, *kept, *sample}), len(set(by_header) - {*kept, *sample})


def _run(*command: str | Path) -> None:
    source = os.pathsep.join(str(PACKAGES / name / "src") for name in ("musa-port", "musa-ops-ported"))
    env = {**packages.build_environment(), "PYTHONPATH": source}
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
        f"-isystem{PACKAGES / 'musa-runtime' / 'csrc'}", f"-isystem{torch}",
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
    """Checks and records the files; returns the number of rejected files.

    The record is written after each file, so that an interrupted run can be continued.
    """
    prerequisites.ensure((CLANG,))
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    names = kernel_files()
    selected, left_out = chosen(names, record, everything)
    files = {name: entry for name, entry in record.get("files", {}).items() if name in names}
    version = two_pass.clang_version(two_pass.find_clang())
    bad = 0
    for name, found in check(selected, jobs or max(1, len(os.sched_getaffinity(0)))):
        bad += bool(found)
        files[name] = {**digests(name), "refused": sorted(found)}
        passes = list(two_pass.PASSES)
        record = {"clang": version, "arch": ARCH, "passes": passes, "files": dict(sorted(files.items()))}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(f"two passes: {len(selected) - bad} of {len(selected)} files accepted", flush=True)
    if left_out:
        print(f"{left_out} more include a changed header: python3 tools/dev.py lint --device-pass --all")
    return bad
