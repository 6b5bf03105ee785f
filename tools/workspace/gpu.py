# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds the packs with musa-cuda as the SDK and runs the tests on an NVIDIA GPU: `dev.py gpu`.

A copy of the tree in build/gpu has its own .venv, which shares torch with the running Python, so the .venv
and the build folders of this tree do not change. The packages are those in PACKAGES, without the emulator
and packages based on its muDNN. Without a GPU everything is built and imported, but no test runs.
"""

import json
import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.harness import records

from . import ROOT, WorkspaceError, legs, packages
from .progress import run_logged, tail
from .tree_rules import tracked_files

FOLDER = ROOT / "build" / "gpu"
CAUSES = ROOT / "tests" / "gpu" / "causes.json"
# In build order, and the packages that each is built with in addition to its dependencies.
PACKAGES = (
    "musa-cuda",
    "musa-runtime",
    "torch-musa",
    "musa-cuda-mudnn",
    "musa-ops-mudnn",
    "musa-port",
    "musa-ops-ported",
    "musa-amp",
    "musa-distributed",
    "musa-compile",
    "musa-ops-vision",
    "musa-ops-math",
    "musa-ops-serving",
)
BUILT_WITH = {
    "musa-runtime": ["musa-cuda"],
    "musa-cuda-mudnn": ["musa-cuda"],
    "musa-ops-mudnn": ["musa-cuda-mudnn"],
    "musa-ops-ported": ["musa-port"],
    "musa-ops-vision": ["musa-port"],
    "musa-distributed": ["musa-cuda"],
    "musa-ops-math": ["musa-cuda"],
    "musa-ops-serving": ["musa-cuda"],
}
# Large build tools, for which the machine's version is used. Other requirements are installed as
# pinned.
ANY_VERSION = ("cmake", "ninja", "numpy", "setuptools", "wheel", "build")
# Name, pytest arguments, number of processes, environment. Operators that the packs lack are
# computed on the host.
MUDNN = {"TORCH_MUSA_OPS": "mudnn,ported,host-copy"}
PORTED = {"TORCH_MUSA_OPS": "ported,host-copy"}
# Triton's backend for musa. Names in braces are the copy's folders.
TRITON = {"PYTHONPATH": "{tree}/tests/gpu/triton_backend"}
SUITES: tuple[tuple[str, list[str], int, dict[str, str]], ...] = (
    ("conformance", ["tests/conformance"], 12, MUDNN),
    ("conformance_ported", ["tests/conformance"], 12, PORTED),
    ("runtime", ["tests/musa_runtime"], 14, {}),
    ("ops_mudnn", ["tests/musa_ops_mudnn"], 4, {}),
    ("ops_ported", ["tests/musa_ops_ported"], 2, {}),
    ("amp", ["tests/musa_amp"], 1, {}),
    ("distributed", ["tests/musa_distributed"], 4, {}),
    ("vision", ["tests/musa_ops_vision"], 2, {}),
    ("math", ["tests/musa_ops_math"], 1, {}),
    ("serving", ["tests/musa_ops_serving"], 1, {}),
    ("compile", ["tests/musa_compile", "--full"], 16, TRITON),
    ("umbrella", ["tests/torch_musa"], 3, {}),
    ("cuda", ["tests/gpu"], 1, PORTED),  # counts kernel launches, and compares random numbers with CUDA's
)
# Suites whose processes use all GPUs. The processes of the others have one each, in turn.
ALL_GPUS = ("runtime", "distributed", "umbrella", "compile", "cuda")
# Files that are not collected, with the reason, which is copied to the record.
IGNORED = {
    "*/test_cpp_suite.py": "C++ suites are built against the emulator, by whose folders they are found",
    "*/musa_ops_mudnn/test_sdk_layouts.py": "makes SDKs out of the emulator's",
    "*/musa_ops_ported/test_races.py": "compiles kernels with the emulator's mcc, whose warps it steers",
    "*/torch_musa/test_doctor_states.py": "makes installations with the emulator's wheels",
    "*/musa_compile/test_triton.py": "uses an interpreter of kernels, which reads memory of the host",
    **{
        f"*/musa_compile/test_{name}.py": "AOTInductor and the C++ wrapper do not support Triton on musa"
        for name in ("ahead_of_time", "cpp_wrapper")
    },
}
TEST_LIMIT_S = 120
# Prints the record's description of the machine.
DEVICE = """
import json, shutil, subprocess, torch
def smi(what):
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader"]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.splitlines()[0].strip() if done.returncode == 0 and done.stdout else None
print(json.dumps({
    "torch": torch.__version__, "cuda": torch.version.cuda, "gpus": torch.cuda.device_count(),
    "device": smi("name"), "driver": smi("driver_version"),
}))
"""
AVAILABLE = """
import json, torch, torch_musa
print(json.dumps({"available": torch.musa.is_available(), "devices": torch.musa.device_count()}))
"""


def record_name(found: dict[str, Any]) -> str:
    """Returns the record's name for a machine, as gpu_4x_h200, from the output of DEVICE."""
    model = found["device"].removeprefix("NVIDIA ").split()[0].lower()
    return f"gpu_{found['gpus']}x_{model}"


def missing_gpu(found: dict[str, Any]) -> str | None:
    """Returns why no test can run, from the output of DEVICE; None if there is a GPU."""
    if found["device"] is None:
        return "nvidia-smi finds no GPU: the machine has none, or no driver"
    return None


def for_gpu(text: str, names: Sequence[str] = PACKAGES) -> str:
    """Returns pyproject.toml with the packages of the GPU build, or with those of them in `names`.

    Raises:
        WorkspaceError: if the text has no list of packages, or no [tool.musa.built-with].
    """
    listed = ", ".join(f'"{name}"' for name in names)
    text, lists = re.subn(
        r"^packages = \[[^\]]*\]", f"packages = [{listed}]", text, count=1, flags=re.MULTILINE
    )
    text, cores = re.subn(r"^core = \d+$", f"core = {len(names)}", text, count=1, flags=re.MULTILINE)
    rows = "".join(
        "{} = [{}]\n".format(name, ", ".join(f'"{other}"' for other in others))
        for name, others in BUILT_WITH.items()
        if name in names
    )
    text, tables = re.subn(
        r"^\[tool\.musa\.built-with\]\n(?:[^\n]+\n)*",
        f"[tool.musa.built-with]\n{rows}",
        text,
        count=1,
        flags=re.MULTILINE,
    )
    if (lists, cores, tables) != (1, 1, 1):
        raise WorkspaceError(
            "pyproject.toml has not the packages, core and [tool.musa.built-with] that are replaced"
        )
    return text


# Sections of requirements-dev.txt, by title, that the packs and their tests do not need.
NOT_NEEDED_TITLES = ("# sessions", "# examples")
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


class Cell:
    """The copy of the tree, and its environment."""

    @property
    def folder(self) -> Path:
        return FOLDER

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def executable(self) -> Path:
        """The Python of the copy's environment."""
        return self.tree / ".venv" / "bin" / "python"

    @property
    def site(self) -> Path:
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return self.tree / ".venv" / "lib" / version / "site-packages"

    @property
    def home(self) -> Path:
        """MUSA_HOME for all builds and runs."""
        return self.site / "musa_cuda" / "sdk"

    def environment(self) -> dict[str, str]:
        dropped = ("VIRTUAL_ENV", "PYTHONPATH", "TORCH_MUSA_ARCH_LIST", "MUSA_EMULATOR_SDK")
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "MUSA_HOME": str(self.home)}

    def run(self, title: str, command: Sequence[str | Path]) -> str:
        """Runs a command in the copied tree; returns its output."""
        log = self.folder / "logs" / f"{title.replace(' ', '_')}.log"
        run_logged(title, [str(word) for word in command], log, self.environment(), cwd=self.tree)
        return log.read_text(errors="replace").partition("\n")[2]


def copy_tree(root: Path, target: Path, names: Iterable[str]) -> None:
    """Copies the named files of `root` to `target`; an unchanged file keeps its modification time.

    Other folders of the copy (.venv, builds) are kept. Files that are no longer named are deleted.
    """
    names = set(names)
    manifest = target / "build" / "copied_files.json"
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


def share_torch(cell: Cell, python: str) -> None:
    """Links torch and its requirements from `python` into the copy's environment.

    Other packages of that Python are not linked: pip would regard them as installed and skip files that the
    build expects in the environment's own folders.
    """
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(cell.run("folder of packages", [cell.executable, "-c", code]).splitlines()[-1])
    for path in json.loads(cell.run("files of torch", [python, "-c", SHARED_PATHS]).splitlines()[-1]):
        link = own / Path(path).name
        if not link.exists():
            link.symlink_to(path)


def wanted(requirements: str, installed: dict[str, str]) -> list[str]:
    """Returns lines of requirements-dev.txt to install, given the `installed` distributions."""
    lines = [line.strip() for line in without_torch(requirements).splitlines()]
    chosen = []
    for line in lines:
        if not line or line.startswith("#"):
            continue
        name = re.split(r"[=<>;\s]", line, maxsplit=1)[0].lower()
        if not (name in ANY_VERSION and name in installed):
            chosen.append(line)
    return chosen


INSTALLED = """
import importlib.metadata as m, json
print(json.dumps({(d.metadata["Name"] or "").lower(): d.version for d in m.distributions()}))
"""


def make_environment(cell: Cell) -> None:
    """Makes the copy's .venv: torch and large tools of the running Python, and other requirements."""
    if not cell.executable.exists():
        cell.run("venv", [sys.executable, "-m", "venv", cell.tree / ".venv"])
    share_torch(cell, sys.executable)
    (cell.site / "machine.pth").unlink(missing_ok=True)
    installed = json.loads(cell.run("installed packages", [sys.executable, "-c", INSTALLED]).splitlines()[-1])
    pip = [cell.executable, "-m", "pip", "install"]
    cell.run("requirements", [*pip, *wanted(packages.REQUIREMENTS.read_text(), installed)])
    # Last, because pip would regard the machine's packages as installed, while CMake searches the
    # environment's own folders.
    use_packages_of_this_python(cell)


def use_packages_of_this_python(cell: Cell) -> None:
    """Makes the running Python's packages importable in the copy, and `dev.py setup` install no others."""
    # Not --system-site-packages, because the running Python may itself belong to an environment.
    (cell.site / "machine.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    stamp = cell.tree / ".venv" / packages.STAMPS.name / "requirements"
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(packages.environment_context())  # as `dev.py setup` writes it


def build(cell: Cell) -> list[str]:
    """Builds all packages in the copy; returns their names."""
    copy_tree(ROOT, cell.tree, [str(path.relative_to(ROOT)) for path in tracked_files(ROOT)])
    (cell.tree / "pyproject.toml").write_text(for_gpu((ROOT / "pyproject.toml").read_text()))
    make_environment(cell)
    cell.run("build", [sys.executable, "tools/dev.py", "setup"])
    return packages.package_names(cell.tree)


def commands(chosen: Sequence[str], gpus: int = 1) -> list[tuple[str, list[str], dict[str, str]]]:
    """Returns title, pytest arguments and environment of each process."""
    if unknown := set(chosen) - {name for name, *_ in SUITES}:
        raise WorkspaceError(f"{sorted(unknown)[0]} is no suite: {', '.join(name for name, *_ in SUITES)}")
    found = []
    for name, arguments, parts, env in SUITES:
        if not chosen or name in chosen:
            for part in range(1, parts + 1):
                share = [f"--part={part}/{parts}"] if parts > 1 else []
                one = {} if gpus < 2 or name in ALL_GPUS else {"CUDA_VISIBLE_DEVICES": str(len(found) % gpus)}
                found.append((f"{name}_{part}" if parts > 1 else name, [*arguments, *share], {**env, **one}))
    return found


def told(text: str) -> str:
    """Returns a failure's message as one line without paths, so that it is equal on every machine."""
    lines = text.strip().splitlines()
    errors = [line for line in lines if line.startswith("E ")]
    said = errors[:2] + [line for line in errors[2:] if "Greatest" in line] or lines[-1:]
    return re.sub(r"(?<![\w.])/(?:tmp|root|home|work)/[^\s'\",:]*", "<path>", " ".join(said))[:500]


def run_suites(
    cell: Cell, chosen: Sequence[str], jobs: int, limit: float, gpus: int = 1
) -> dict[str, dict[str, Any]]:
    """Runs the suites in `jobs` processes; returns counts and failures with messages.

    limit: seconds after which a process is ended, which is recorded in its suite.
    """
    reports = cell.folder / "reports"
    reports.mkdir(parents=True, exist_ok=True)

    def run(title: str, arguments: list[str], env: dict[str, str]) -> tuple[Path | None, str]:
        """Returns pytest's report, and a message if the process wrote none or was ended by the limit."""
        report, log = reports / f"{title}.xml", cell.folder / "logs" / f"{title}.log"
        report.unlink(missing_ok=True)
        command = [
            str(cell.executable),
            "-m",
            "pytest",
            "-q",
            "--disable-warnings",
            f"--timeout={TEST_LIMIT_S}",
        ]
        command += ["--continue-on-collection-errors", *(f"--ignore-glob={pattern}" for pattern in IGNORED)]
        # On SIGINT pytest writes a report of the tests that ran.
        command = ["timeout", "-s", "INT", "-k", "30", str(int(limit)), *command]
        command += [f"--junitxml={report}", *arguments]
        env = {name: value.format(tree=cell.tree) for name, value in env.items()}
        start = time.monotonic()
        try:
            run_logged(title, command, log, {**legs.WAIT_POLICY, **cell.environment(), **env}, cwd=cell.tree)
        except WorkspaceError:  # failed tests are in the report
            if not report.is_file():
                return None, f"{title}: ended without a report: {tail(log, 3)[-400:]}"
            if time.monotonic() - start >= limit:
                return report, f"{title}: ended by the limit of {limit:g} s"
        return report, ""

    results: dict[str, dict[str, Any]] = {}
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            (title, pool.submit(run, title, arguments, env))
            for title, arguments, env in commands(chosen, gpus)
        ]
        for title, future in futures:
            name = re.sub(r"_\d+$", "", title)
            row = results.setdefault(
                name, {"passed": 0, "failed": 0, "skipped": 0, "stopped": [], "failures": []}
            )
            report, stopped = future.result()
            if stopped:
                row["stopped"].append(stopped)
            for case, result, text in legs.outcomes(report) if report else ():
                row[result] += 1
                if result == "failed":
                    test = f"{case.get('classname')}::{case.get('name')}"
                    row["failures"].append({"test": test, "said": told(text)})
    return results


def explain(results: dict[str, dict[str, Any]], causes: Sequence[dict[str, str]]) -> int:
    """Adds to each failure its cause from CAUSES; returns the number of failures without one.

    A cause has a regular expression `test` or `said`, or both, which must match.
    """
    unknown = 0
    for row in results.values():
        for failure in row["failures"]:
            found = [
                cause["cause"]
                for cause in causes
                if re.search(cause.get("test", ""), failure["test"])
                and re.search(cause.get("said", ""), failure["said"])
            ]
            failure["cause"] = found[0] if found else "not looked into"
            unknown += not found
    return unknown


def table(record: dict[str, Any]) -> str:
    lines = [f"{record['device']}, driver {record['driver']}, torch {record['torch']}"]
    for name, row in record["suites"].items():
        lines.append(f"{name:14}{row['passed']} passed, {row['failed']} failed, {row['skipped']} skipped")
        lines += [f"  {text}" for text in row["stopped"]]
        lines += [f"  failed: {failure['test']}: {failure['cause']}" for failure in row["failures"]]
    return "\n".join(lines)


def summary(record: dict[str, Any]) -> str:
    rows = record["suites"].values()
    counts = ", ".join(f"{sum(row[key] for row in rows):,} {key}" for key in ("passed", "failed", "skipped"))
    machine = f"{record['device']}, driver {record['driver']}, torch {record['torch']}"
    return f"{machine}: {counts} in {', '.join(record['suites'])}"


def prepare(cell: Cell) -> dict[str, Any]:
    """Builds all packages in the copy; returns the output of DEVICE, and the build time."""
    start = time.monotonic()
    built = build(cell)
    seconds = round(time.monotonic() - start)
    print(f"built in {seconds} s: {', '.join(built)}", flush=True)
    found = json.loads(cell.run("device", [cell.executable, "-c", DEVICE]).splitlines()[-1])
    musa = json.loads(cell.run("import", [cell.executable, "-c", AVAILABLE]).splitlines()[-1])
    print(f"{found['device'] or 'no GPU'}; torch.musa.is_available() is {musa['available']}", flush=True)
    return {**found, "available": musa["available"], "build_seconds": seconds}


def refuse_without_gpu(cell: Cell, found: dict[str, Any]) -> None:
    """Raises WorkspaceError if no test can run on the machine that `prepare` found."""
    if reason := missing_gpu(found):
        raise WorkspaceError(
            f"the packages are built, and no test can run: {reason}.\n"
            "Fix: run it on a machine with an NVIDIA GPU, or with --build"
        )
    if not found["available"]:
        raise WorkspaceError(
            f"there is {found['device']}, and torch.musa.is_available() is False.\n"
            f"Fix: MUSA_HOME={cell.home} {cell.executable} -m torch_musa doctor"
        )


def joined(before: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record, with further suites from `before` if that is of the same kind of machine."""
    if any(before.get(name) != record[name] for name in ("device", "driver", "torch", "cuda", "gpus")):
        return record
    return {**record, "suites": {**before["suites"], **record["suites"]}}


def run(chosen: Sequence[str], *, build_only: bool, jobs: int, limit: float) -> int:
    """Builds, tests and writes the record; returns 1 if a test failed for an unlisted cause.

    chosen: names of suites; all if empty. The record keeps other suites' results of the same kind of machine.
    """
    cell = Cell()
    found = prepare(cell)
    if build_only:
        return 0
    refuse_without_gpu(cell, found)
    results = run_suites(cell, chosen, jobs, limit, found["gpus"])
    causes = json.loads(CAUSES.read_text())
    unknown = explain(results, causes)
    record = {
        **found,
        "not_collected": IGNORED,
        "suites": {name: {"date": time.strftime("%Y-%m-%d"), **row} for name, row in results.items()},
    }
    name = record_name(found)
    if chosen:
        record = joined(records.read(name), record)
    records.write(name, "python3 tools/dev.py gpu", summary(record), **record)
    explained = {failure["cause"] for row in results.values() for failure in row["failures"]}
    for cause in causes if not chosen else ():
        if cause["cause"] not in explained:
            print(f"explains no failure on this machine: {cause['cause']}")
    kept = shutil.make_archive(str(cell.folder / "reports"), "gztar", cell.folder / "reports")
    print(table({**record, "suites": results}))
    print(f"pytest's reports: {kept}")
    return int(unknown > 0 or any(row["stopped"] for row in results.values()))
