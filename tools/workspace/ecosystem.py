# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs real packages, unmodified, on the musa device: `dev.py ecosystem`.

The packages are installed in build/ecosystem/site-packages, in the versions of
tests/ecosystem/requirements.txt. They use the torch and the packs of .venv, so there is no second torch.
All cases run in one process; if it crashes, the running case has failed, and a new process runs the rest. A
complete run writes the record next to the cases.
"""

import datetime
import hashlib
import json
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, packages
from .progress import run_logged

CASES = ROOT / "tests" / "ecosystem"
REQUIREMENTS = CASES / "requirements.txt"
RECORD = CASES / "last_run.json"
FOLDER = ROOT / "build" / "ecosystem"
# dill, which datasets uses, regards modules outside a folder of this name as user code and pickles
# their contents.
SITE = FOLDER / "site-packages"
# The run uses torch from .venv, and these are part of it.
FORBIDDEN = re.compile(r"(torch|triton|nvidia-.*|cuda-.*|torch[-_]musa|musa-.*)$", re.IGNORECASE)
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
# The run is aborted when this number of cases have crashed their process.
CRASHES = 10
# Files whose cases start processes of two ranks, or wait for a compiler; the other files run in
# parallel with them.
LAUNCHING = {
    "test_accelerate.py",
    "test_deepspeed.py",
    "test_lightning.py",
    "test_ray.py",
    "test_transformers_distributed.py",
    "test_transformers_serving.py",
}
NOTHING_CHOSEN = "failed with exit status 5"  # pytest's status if no test was selected


def pinned(text: str) -> dict[str, str]:
    """Returns names and versions of a requirements file; raises WorkspaceError for a line that is not
    `name==version`."""
    found = {}
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line)
        if match is None:
            raise WorkspaceError(f"{REQUIREMENTS.name}: {line!r} is not pinned as name==version")
        if FORBIDDEN.match(match[1]):
            raise WorkspaceError(f"{REQUIREMENTS.name}: {match[1]} comes from .venv and must not be listed")
        found[match[1]] = match[2]
    return found


def install() -> dict[str, str]:
    """Installs the packages unless they are up to date; returns their versions."""
    text = REQUIREMENTS.read_text()
    wanted = pinned(text)
    digest = hashlib.sha256(f"{sys.version_info[:2]}{metadata_of_torch()}{text}".encode()).hexdigest()
    stamp = FOLDER / "installed"
    if not (stamp.is_file() and stamp.read_text() == digest):
        stamp.unlink(missing_ok=True)
        shutil.rmtree(SITE, ignore_errors=True)
        # Dependencies are not resolved: the list is complete, and does not contain torch. DeepSpeed
        # is built from source and imports torch for that; without DS_BUILD_OPS=0 it might compile
        # CUDA operators.
        command = [packages.PYTHON, "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
        command += ["--target", SITE, "-r", REQUIREMENTS]
        # pip moves packages from its temporary folder, but copies them if that is on another file
        # system.
        temporary = FOLDER / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "DS_BUILD_OPS": "0", "TMPDIR": str(temporary)}
        log = packages.LOGS / "ecosystem.log"
        run_logged(f"{len(wanted)} packages", [str(word) for word in command], log, environment)
        stamp.write_text(digest)
    return wanted


def metadata_of_torch() -> str:
    return next(iter(metadata.distributions(name="torch", path=[str(packages.SITE)]))).version


def environment(results: Path) -> dict[str, str]:
    """Returns the environment of a process that runs cases."""
    home = FOLDER / "home"
    return {
        **os.environ,
        **dict.fromkeys(OFFLINE, "1"),
        "PYTHONPATH": os.pathsep.join([str(SITE), str(ROOT)]),
        "MUSA_ECOSYSTEM_RESULTS": str(results),
        # Sums over several threads differ by rounding between runs, and spinning threads slow small
        # models down.
        "OMP_NUM_THREADS": "1",
        "HF_HOME": str(home / "hf"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TORCH_HOME": str(home / "torch"),
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "MPLBACKEND": "Agg",
        "TOKENIZERS_PARALLELISM": "false",
    }


@dataclass
class Run:
    """Completed cases, and the case that was running when a process ended."""

    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    running: str = ""

    def read(self, lines: Iterable[str]) -> None:
        """Parses the lines that a process wrote."""
        self.running = ""
        for line in lines:
            entry = json.loads(line)
            if "started" in entry:
                self.running = entry["started"]
                continue
            case = entry.pop("case")
            # A teardown can fail after the case has passed.
            if entry["outcome"] != "passed" or case not in self.ended:
                self.ended[case] = entry
            self.running = ""

    def crashed(self, case: str, why: str) -> None:
        self.ended[case] = {
            "outcome": "failed",
            "seconds": 0.0,
            "reason": f"the process of the case ended: {why}",
        }

    def counts(self) -> Counter[str]:
        return Counter(entry["outcome"] for entry in self.ended.values())


def groups() -> dict[str, list[str]]:
    """Returns the files of cases per process: those that start many processes, and the rest."""
    files = sorted(path.name for path in CASES.glob("test_*.py"))
    return {
        "launching": [name for name in files if name in LAUNCHING],
        "others": [name for name in files if name not in LAUNCHING],
    }


def run_cases(name: str, files: Sequence[str], arguments: Sequence[str]) -> Run:
    """Runs the cases of the files, in a new process after each crash; `arguments` are pytest's."""
    found = Run()
    results = FOLDER / f"{name}.jsonl"
    results.unlink(missing_ok=True)
    for attempt in range(CRASHES + 1):
        command = [
            packages.PYTHON,
            "-m",
            "pytest",
            *(CASES / file for file in files),
            "--ecosystem",
            "-q",
            *arguments,
        ]
        command += [f"--deselect=tests/ecosystem/{case}" for case in found.ended]
        log = FOLDER / f"{name}_{attempt}.log"
        try:
            run_logged(name, [str(word) for word in command], log, environment(results), cwd=ROOT)
        except WorkspaceError as error:
            problem = str(error)
        else:
            problem = ""
        if not results.is_file():
            if NOTHING_CHOSEN in problem:
                return found
            raise WorkspaceError(f"no case ran\n{problem}")
        found.read(results.read_text().splitlines())
        if not found.running:
            if problem and "failed" not in found.counts():
                raise WorkspaceError(f"pytest failed, but no case did\n{problem}")
            return found
        found.crashed(found.running, f"{problem[-600:]}")
    raise WorkspaceError(f"{CRASHES} cases crashed their process; the last is {found.running}\n{problem}")


def table(ended: dict[str, dict[str, Any]]) -> str:
    """Returns outcomes per file, then each case that did not pass, with its reason."""
    files: dict[str, Counter[str]] = {}
    for case, entry in ended.items():
        files.setdefault(case.partition("::")[0], Counter())[entry["outcome"]] += 1
    width = max(map(len, files))
    lines = [f"{'':{width}}  passed  known  failed"]
    for name, counts in sorted(files.items()):
        failed = counts["failed"] + counts["skipped"]
        lines.append(f"{name:{width}}  {counts['passed']:6}  {counts['known']:5}  {failed:6}")
    for outcome in ("known", "skipped", "failed"):
        for case, entry in ended.items():
            if entry["outcome"] == outcome:
                lines.append(f"{outcome}: {case}: {' '.join(entry['reason'].split())[:300]}")
    return "\n".join(lines)


def record(
    ended: dict[str, dict[str, Any]], versions: dict[str, str], previous: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the content of the record.

    Args:
        ended (dict): outcomes of the cases of this run.
        versions (dict): versions of the packages.
        previous (dict): a record whose other cases are kept; None after a complete run. Its packages must
            have the same versions; this run may have further packages.
    """
    cases = dict(previous["cases"]) if previous else {}
    torch = metadata_of_torch()
    if previous and (previous["torch"] != torch or not previous["packages"].items() <= versions.items()):
        raise WorkspaceError(
            f"{RECORD.name} is of other versions of packages or of torch. "
            "Fix: python3 tools/dev.py ecosystem --all"
        )
    today = datetime.date.today().isoformat()
    cases |= {case: {"date": today, **entry} for case, entry in ended.items()}
    counts = Counter(entry["outcome"] for entry in cases.values())
    return {
        "device": "the SDK in MUSA_HOME" if "MUSA_HOME" in os.environ else "the emulator",
        "torch": torch,
        "counts": dict(sorted(counts.items())),
        "packages": versions,
        "cases": dict(sorted(cases.items())),
    }


def text_of(content: dict[str, Any]) -> str:
    """Returns JSON with one line per package and case."""
    parts = []
    for name, value in content.items():
        if name in ("packages", "cases"):
            lines = (f" {json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items())
            parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def run(versions: dict[str, str], only: str, full: bool, recorded: bool, rest: Sequence[str]) -> int:
    """Runs the cases; returns 1 if a case failed.

    Args:
        versions (dict): versions of the packages, from `install`.
        only (str): a shell-style pattern of a part of case names; empty for all cases.
        full (bool): also run cases marked with `full`. A run of all cases writes the record.
        recorded (bool): add the outcomes of a partial run to the record.
        rest (list of str): further arguments of pytest.
    """
    arguments = [*rest, *(["--full"] if full else []), *([f"--ecosystem-only={only}"] if only else [])]
    with ThreadPoolExecutor() as pool:
        runs = pool.map(lambda group: run_cases(*group, arguments), groups().items())
        found = Run({case: entry for each in runs for case, entry in each.ended.items()})
    if not found.ended:
        raise WorkspaceError(f"no case matches {only!r}. Fix: name a part of a case, as --only transformers")
    counts = found.counts()
    print(table(found.ended))
    complete = full and not only and not rest
    if complete or recorded:
        previous = None if complete or not RECORD.is_file() else json.loads(RECORD.read_text())
        RECORD.write_text(text_of(record(found.ended, versions, previous)))
        print(f"record: {RECORD.relative_to(ROOT)}")
    failed = counts["failed"] + counts["skipped"]
    print(f"{counts['passed']} passed, {counts['known']} known failures, {failed} failed")
    return int(failed > 0)
