# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds a program, runs it, and judges whether it ran right."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from musa_port import rules
from musa_port.engine import Engine

from .programs import Program, sample_sources

COMPILED = "compiled"
RIGHT = "ran right"
NOT_BUILT = "did not compile"
WRONG = "ran wrong"
ENDLESS = "did not end"
# A diagnostic of the compiler, the linker, CMake or mcc.
_DIAGNOSTIC = re.compile(r"(fatal error|error|Error|undefined reference|not supported)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program: a verdict above, the reason unless it is right, and the cases that it
    counted."""

    verdict: str
    why: str = ""
    seconds: float = 0.0
    passed: int = 0
    cases: int = 0

    @property
    def good(self) -> bool:
        return self.verdict in (COMPILED, RIGHT)


@dataclass(frozen=True)
class Ended:
    """The end of a command. `status` is None if it was stopped at its time limit."""

    status: int | None
    output: str
    seconds: float


def _environment(home: Path, program: Program | None = None) -> dict[str, str]:
    """The environment of builds and runs: MUSA_HOME on every search path, no other setting of the SDK."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSA_")}
    settings = {
        "MUSA_HOME": str(home),
        "MUSA_PATH": str(home),
        "LIBRARY_PATH": str(home / "lib"),
        "LD_LIBRARY_PATH": os.pathsep.join([str(home / "lib"), *filter(None, [kept.get("LD_LIBRARY_PATH")])]),
        "PATH": os.pathsep.join([str(home / "bin"), str(Path(sys.executable).parent), kept.get("PATH", "")]),
    }
    return {**kept, **settings, **dict(program.environment if program else ())}


def execute(command: tuple[str, ...], folder: Path, environment: dict[str, str], limit: float) -> Ended:
    """Run a command in its own process group, which is killed as a whole at the time limit."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        status = None
    return Ended(status, output, time.monotonic() - begin)


def _fill(words: tuple[str, ...], places: dict[str, str], lists: dict[str, list[str]]) -> tuple[str, ...]:
    """A command with its placeholders replaced; the placeholder of a list becomes several words."""
    result: list[str] = []
    for word in words:
        if word in lists:
            result += lists[word]
            continue
        for name, value in places.items():
            word = word.replace(name, value)
        result.append(word)
    return tuple(result)


class Judge:
    """Judges programs with one MUSA SDK. Builds are below `work`, and each judge builds again."""

    def __init__(self, root: Path, work: Path, home: Path) -> None:
        self.root, self.work, self.home = root.resolve(), work.resolve(), home.resolve()
        self._built: dict[str, str] = {}

    def _places(self, program: Program) -> tuple[dict[str, str], dict[str, list[str]]]:
        source = program.source.folder(self.root)
        build = self.work / re.sub(r"[^\w.+-]+", "-", program.shared_build or program.name)
        places = {
            "{mcc}": str(self.home / "bin" / "mcc"),
            "{home}": str(self.home),
            "{python}": sys.executable,
            "{root}": str(self.root),
            "{source}": str(source),
            "{folder}": str(source / program.folder),
            "{sample}": Path(program.folder).name,
            "{build}": str(build),
            "{file}": str(source / program.file),
        }
        lists: dict[str, list[str]] = {}
        if any("{ported_sources}" in command for command in program.build):
            names = Engine(rules.load("cuda")).path  # musa-port's names of its results
            lists["{ported_sources}"] = [
                f"{build}/Samples/0/{Path(program.folder).name}/{names(name)}"
                for name in sample_sources(source / program.folder)
            ]
        return places, lists

    def _build(self, program: Program, places: dict[str, str], lists: dict[str, list[str]]) -> str:
        """Run the steps of the build, and return the reason why one failed, or an empty string."""
        folder = Path(places["{build}"])
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        environment = _environment(self.home, program)
        for command in program.build:
            filled = _fill(command, places, lists)
            done = execute(filled, folder, environment, program.build_timeout)
            with (folder / "build.log").open("a", encoding="utf-8") as log:
                print("$", *filled, file=log)
                print(done.output, file=log)
            if done.status is None:
                return f"{Path(filled[0]).name} did not end in {program.build_timeout:g} s"
            if done.status:
                found = _DIAGNOSTIC.search(done.output)
                return found[0][:200] if found else f"{Path(filled[0]).name}: exit status {done.status}"
        return ""

    def _run(self, program: Program, places: dict[str, str], lists: dict[str, list[str]]) -> Outcome:
        folder = Path(places["{build}"])
        where = Path(_fill((program.where,), places, lists)[0])
        filled = _fill(program.run, places, lists)
        done = execute(filled, where, _environment(self.home, program), program.timeout)
        log = folder / (re.sub(r"[^\w.+-]+", "-", program.name.rpartition("/")[2]) + ".run.log")
        log.write_text(f"$ {' '.join(filled)}\n{done.output}\nexit status {done.status}\n", encoding="utf-8")
        passed = cases = 0
        counts = re.findall(program.cases, done.output) if program.cases else []
        if counts:
            passed, cases = (int(number) for number in counts[-1])
        elif program.passed:
            passed = len(re.findall(program.passed, done.output))
            cases = passed + len(re.findall(program.failed, done.output))
        outcome = {"seconds": round(done.seconds, 1), "passed": passed, "cases": cases}
        if done.status is None:
            return Outcome(ENDLESS, f"stopped after {program.timeout:g} s", **outcome)
        if done.status != program.status:
            if done.status < 0:
                return Outcome(WRONG, f"ended by {signal.Signals(-done.status).name}", **outcome)
            return Outcome(WRONG, f"exit status {done.status}, {program.status} is right", **outcome)
        for pattern in program.output:
            if not re.search(pattern, done.output, re.MULTILINE):
                return Outcome(WRONG, f"no output matches {pattern!r}", **outcome)
        for pattern in program.refuse:
            found = re.search(pattern, done.output, re.MULTILINE)
            if found:
                return Outcome(WRONG, f"the output says {found[0]!r}", **outcome)
        if program.cases and not counts:
            return Outcome(WRONG, f"no output matches {program.cases!r}", **outcome)
        if program.cases and cases == 0:
            return Outcome(WRONG, "no case was run", **outcome)
        if passed < cases:
            return Outcome(WRONG, f"{cases - passed} of {cases} cases failed", **outcome)
        return Outcome(RIGHT, **outcome)

    def judge(self, program: Program) -> Outcome:
        """Build the program, once if it shares its build, and run it."""
        places, lists = self._places(program)
        begin = time.monotonic()
        key = program.shared_build or program.name
        if key not in self._built:
            self._built[key] = self._build(program, places, lists)
        if self._built[key]:
            return Outcome(NOT_BUILT, self._built[key], round(time.monotonic() - begin, 1))
        if not program.run:
            return Outcome(COMPILED, seconds=round(time.monotonic() - begin, 1))
        return self._run(program, places, lists)
