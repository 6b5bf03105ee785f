# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Outcomes of the doctor's checks, and the ways in which a check ends without a detail."""

from dataclasses import dataclass


class Problem(Exception):
    """A check that failed.

    Args:
        have (str): what was found.
        need (str): what is needed instead.
        command (str): the shell command that repairs it; empty if there is no single command.
        causes (str): likely causes.
    """

    status = "fail"

    def __init__(self, have, need="", command="", causes=""):
        super().__init__(have)
        self.have, self.need, self.command, self.causes = have, need, command, causes


class Warn(Problem):
    """A problem that does not keep the device from working."""

    status = "warn"


class Skip(Problem):
    """A check that cannot run, because the check that `have` names has failed."""

    status = "skip"


@dataclass
class Outcome:
    """One check's result. `status` is `"ok"`, `"warn"`, `"fail"` or `"skip"`."""

    title: str
    status: str
    detail: str = ""
    need: str = ""
    causes: str = ""
    command: str = ""

    def as_dict(self):
        return dict(self.__dict__)


def run(title, check):
    """Runs `check()`, which returns a detail or raises, and returns its outcome."""
    try:
        return Outcome(title, "ok", str(check() or ""))
    except Problem as problem:
        return Outcome(title, problem.status, problem.have, problem.need, problem.causes, problem.command)
    except Warning as warning:  # raised by packs, which do not import Warn
        return _from_error(title, warning, Warn.status)
    except Exception as error:  # noqa: BLE001 - must not hide the remaining checks
        return _from_error(title, error)


def _from_error(title, error, status=Problem.status):
    """Splits an error message into event, likely causes and the rest, which the command replaces."""
    happened, causes = [], ""
    # torch's dispatcher explains an error in a hundred lines; the first ones suffice.
    for line in f"{type(error).__name__}: {error}".splitlines()[:12]:
        if line.startswith("Likely cause"):
            causes = line.partition(": ")[2]
        elif line.startswith(("Fix:", "Or, ")):
            break
        else:
            happened.append(line)
    command = getattr(error, "command", None) or ""
    if not command:
        causes = causes or "unknown; please report it with the file that python -m torch_musa report writes"
        # A fix in words, if there is no single command.
        fixes = [line for line in str(error).splitlines() if line.startswith("Fix: ")]
        command = fixes[0].removeprefix("Fix: ") if fixes else ""
    return Outcome(title, status, "\n".join(happened), "", causes, command)


MARKS = {"ok": "[ ok ]", "warn": "[warn]", "fail": "[FAIL]", "skip": "[skip]"}


def render(outcomes):
    """Returns the outcomes as text."""
    width = max(len(outcome.title) for outcome in outcomes)
    lines = []
    for outcome in outcomes:
        mark = MARKS[outcome.status]
        if outcome.status in ("ok", "skip"):
            indent = "\n" + " " * (width + 9)
            lines.append(f"{mark} {outcome.title:<{width}}  {outcome.detail}".replace("\n", indent))
            continue
        lines.append(f"{mark} {outcome.title}")
        labelled = {
            "have": outcome.detail,
            "need": outcome.need,
            "Likely causes": outcome.causes,
            "Fix": outcome.command,
        }
        for label, text in labelled.items():
            if text:
                lines.append(f"       {label + ':':<14} {text}".replace("\n", "\n" + " " * 22))
    failures = sum(outcome.status == "fail" for outcome in outcomes)
    warnings = sum(outcome.status == "warn" for outcome in outcomes)
    lines.append("")
    if failures:
        lines.append(f"{failures} check(s) failed; start with the first")
    else:
        lines.append(f"the device works; {warnings} warning(s)" if warnings else "every check passed")
    return "\n".join(lines)
