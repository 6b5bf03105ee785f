# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs the public CUDA scripts of scripts.yaml unmodified on musa, and compares them with the CPU.

    python -m tests.musa_as_cuda.run_scripts FOLDER [--only NAME ...]

FOLDER holds git clones named owner+name. Each script is written from its clone at the commit in the list into
a scratch folder in FOLDER and runs twice: with torch alone on the CPU, and by `python -m torch_musa run
--as-cuda`. A script passes if it ends with status 0, musa's kernels were called, and the numbers that it
prints are alike. A run of all scripts is recorded in build/records/as_cuda_scripts.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from tests.harness import records

from . import stand_in_data

HERE = Path(__file__).parent
SCRIPTS = HERE / "scripts.yaml"
TIMEOUT = 900


@dataclass
class Script:
    """An entry of scripts.yaml, which explains the fields."""

    name: str
    repository: str
    commit: str
    script: str
    arguments: list[str] = field(default_factory=list)
    cpu_arguments: list[str] | None = None
    files: list[str] = field(default_factory=list)
    directory: str | None = None
    data: list[str] = field(default_factory=list)
    before: list[list[str]] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    ranks: int = 0
    values: str = ""
    tolerance: float = 0.0
    no_comparison: str = ""


@dataclass
class Outcome:
    """The result of a script.

    Attributes:
        sha256 (str): hash of the script that ran.
        status (str): `"passed"`, or `"failed"` with `why`.
        calls (dict): calls of kernels by provider, of all processes.
        on_host_copies (int): calls that ran on copies in host memory.
        values (int): count of the compared numbers; worst (float): their greatest relative difference.
        last (list): the last number on the CPU and on musa.
    """

    name: str
    repository: str
    commit: str
    script: str
    arguments: list[str]
    sha256: str
    status: str = "passed"
    why: str = ""
    calls: dict[str, int] = field(default_factory=dict)
    on_host_copies: int = 0
    values: int = 0
    worst: float = 0.0
    last: list[float] = field(default_factory=list)
    seconds: float = 0.0


def listed() -> list[Script]:
    return [Script(**entry) for entry in yaml.safe_load(SCRIPTS.read_text())]


def export(script: Script, clone: Path, target: Path) -> str:
    """Writes the script's files from the clone at its commit. Returns the script's SHA-256."""
    git = ["git", "-C", str(clone)]
    wanted = script.files or [str(Path(script.script).parent)]
    listing = subprocess.run(
        [*git, "ls-tree", "-r", script.commit, "--", *wanted], check=True, capture_output=True, text=True
    )
    for line in listing.stdout.splitlines():
        meta, name = line.split("\t")
        blob = subprocess.run([*git, "cat-file", "blob", meta.split()[2]], capture_output=True)
        if blob.returncode == 0:  # a clone may lack large data files, which the stand-ins replace
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(blob.stdout)
    return hashlib.sha256((target / script.script).read_bytes()).hexdigest()


def command(script: Script, arguments: list[str], as_cuda: bool) -> list[str]:
    """The command line of a run. With torchrun, the processes read TORCH_MUSA_AS_CUDA."""
    directory = Path(script.directory or Path(script.script).parent)
    program = os.path.relpath(script.script, directory)
    run = ["-m", "torch_musa", "run", "--as-cuda"] if as_cuda else []
    if script.ranks:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={script.ranks}"]
        run = [*run, *torchrun] if as_cuda else torchrun
    return [sys.executable, *run, program, *arguments]


def environment(script: Script, folder: Path, as_cuda: bool, counts: Path) -> dict[str, str]:
    places = [str(HERE / "counting"), *(str(folder / place) for place in script.path)]
    changed = {
        "PYTHONPATH": os.pathsep.join([*places, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "MUSA_CALL_COUNTS": str(counts),
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",  # scripts that number the members of a set do it alike in both runs
    }
    if not as_cuda:
        changed["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    return {**os.environ, **changed, **script.environment}


def execute(
    script: Script, clone: Path, scratch: Path, as_cuda: bool
) -> tuple[subprocess.CompletedProcess, str]:
    """Runs a script in a checkout of its own. Returns the process with its output, and the SHA-256."""
    folder, counts = scratch / "checkout", scratch / "counts"
    folder.mkdir(parents=True)
    counts.mkdir()
    digest = export(script, clone, folder)
    for maker in script.data:
        getattr(stand_in_data, maker)(folder)
    directory = folder / (script.directory or Path(script.script).parent)
    variables = environment(script, folder, as_cuda, counts)
    arguments = script.arguments if as_cuda or script.cpu_arguments is None else script.cpu_arguments
    before = [[sys.executable, *line] for line in script.before]
    if as_cuda:  # a step that trains the model that the script loads, likewise
        before = [[sys.executable, "-m", "torch_musa", "run", "--as-cuda", *line] for line in script.before]
    for line in [*before, command(script, arguments, as_cuda)]:
        done = subprocess.run(
            line,
            cwd=directory,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
        if done.returncode:
            break
    return done, digest


def numbers(script: Script, output: str) -> list[float]:
    """The numbers that the script's pattern matches, in order."""
    return [float(match.group(1)) for match in re.finditer(script.values, output)] if script.values else []


def compare(script: Script, outcome: Outcome, cpu: str, musa: str) -> str:
    """The reason why the numbers of both runs are not alike; empty if they are."""
    expected, found = numbers(script, cpu), numbers(script, musa)
    if len(expected) != len(found) or not found:
        return f"{len(found)} numbers were printed, but {len(expected)} on the CPU"
    differences = [abs(a - b) / max(abs(a), 1e-6) for a, b in zip(expected, found, strict=True)]
    outcome.values, outcome.last = len(found), [expected[-1], found[-1]]
    outcome.worst = float(f"{max(differences):.3g}")
    if not max(differences) <= script.tolerance:  # also for NaN
        return f"numbers differ by {max(differences):.3g}, more than {script.tolerance}"
    return ""


def last_words(output: str) -> str:
    lines = [line for line in output.strip().splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(\[rank\d\]:\s*)?\w*(\.\w+)*(Error|Exception)\b", line)]
    return (errors or lines or [""])[-1][:300]


def try_script(script: Script, clone: Path, scratch: Path) -> Outcome:
    began = time.monotonic()
    outcome = Outcome(script.name, script.repository, script.commit, script.script, script.arguments, "")
    musa, outcome.sha256 = execute(script, clone, scratch / "musa", as_cuda=True)
    (scratch / "musa.log").write_text(musa.stdout)
    outcome.seconds = round(time.monotonic() - began, 1)
    for path in sorted((scratch / "musa" / "counts").iterdir()):
        counted = json.loads(path.read_text())
        outcome.on_host_copies += counted["on_host_copies"]
        for provider, count in counted["calls"].items():
            if count:
                outcome.calls[provider] = outcome.calls.get(provider, 0) + count
    if musa.returncode:
        outcome.why = f"exit status {musa.returncode}: {last_words(musa.stdout)}"
        if not script.ranks:
            cpu, _ = execute(script, clone, scratch / "cpu", as_cuda=False)
            if last_words(cpu.stdout) == last_words(musa.stdout):
                outcome.why += " (with torch alone on the CPU too)"
    elif not outcome.calls:
        outcome.why = "no kernel of musa was called"
    elif not script.no_comparison:
        cpu, _ = execute(script, clone, scratch / "cpu", as_cuda=False)
        (scratch / "cpu.log").write_text(cpu.stdout)
        if cpu.returncode:
            outcome.why = f"on the CPU, exit status {cpu.returncode}: {last_words(cpu.stdout)}"
        else:
            outcome.why = compare(script, outcome, cpu.stdout, musa.stdout)
    if outcome.why:
        outcome.status = "failed"
    return outcome


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.musa_as_cuda.run_scripts", description=__doc__)
    parser.add_argument("folder", type=Path, help="holds git clones named owner+name")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of scripts")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where checkouts and logs stay")
    options = parser.parse_args(arguments)
    outcomes = []
    for script in listed():
        if options.only and script.name not in options.only:
            continue
        clone = options.folder / script.repository.replace("/", "+")
        if not clone.exists():
            address = f"https://github.com/{script.repository}"
            sys.exit(f"{clone}: no clone of {script.repository}\nFix: git clone {address} {clone}")
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="run-") as temporary:
            scratch = options.keep / script.name if options.keep else Path(temporary)
            outcome = try_script(script, clone, scratch)
        outcomes.append(outcome)
        print(f"{outcome.status} {outcome.name} {outcome.seconds} s {outcome.why}", flush=True)
    passed = sum(outcome.status == "passed" for outcome in outcomes)
    result = f"{passed} of {len(outcomes)} scripts passed"
    print(result)
    if not options.only:
        command = "python -m tests.musa_as_cuda.run_scripts FOLDER"
        records.write("as_cuda_scripts", command, result, scripts=[asdict(outcome) for outcome in outcomes])
    return int(passed != len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
