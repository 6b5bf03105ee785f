# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The record of a run, and the table made from it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.harness import records

from .judge import NOT_BUILT, Outcome
from .programs import Program, Source


def sdk_name(home: Path) -> str:
    """The SDK's name and version, as its version.json states them."""
    versions = json.loads((home / "version.json").read_text(encoding="utf-8"))
    version = f"SDK {versions['musa_runtime']['version']}"
    return f"musa-emulator ({version})" if "musa_emulator" in versions else version


def _count(outcomes: list[Outcome], run: int) -> dict[str, int]:
    row = {
        "tried": len(outcomes),
        "compiled": sum(outcome.verdict != NOT_BUILT for outcome in outcomes),
        "to run": run,
        "ran right": sum(outcome.verdict == "ran right" for outcome in outcomes),
    }
    cases = sum(outcome.cases for outcome in outcomes)
    return {**row, "cases": cases, "cases passed": sum(o.passed for o in outcomes)} if cases else row


def record(
    judged: Mapping[Program, Outcome], sources: Mapping[str, Source], sdk: str, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The record of these outcomes. Those of `before`, an earlier record, are kept."""
    programs = dict(before.get("programs", {}))
    for program, outcome in judged.items():
        entry: dict[str, Any] = {"group": program.group, "verdict": outcome.verdict, "run": bool(program.run)}
        if outcome.why:
            entry["why"] = outcome.why
        if outcome.cases:
            entry |= {"passed": outcome.passed, "cases": outcome.cases}
        programs[program.name] = entry
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in programs.values():
        groups.setdefault(entry["group"], []).append(entry)
    counts = {
        group: _count(
            [Outcome(e["verdict"], passed=e.get("passed", 0), cases=e.get("cases", 0)) for e in entries],
            sum(e["run"] for e in entries),
        )
        for group, entries in sorted(groups.items())
    }
    return {
        "sdk": sdk,
        "commits": {source.repository: source.commit for source in sources.values()},
        "groups": counts,
        "programs": dict(sorted(programs.items())),
    }


def last() -> dict[str, Any]:
    """The record of the last run; empty if there is none."""
    return records.read("sdk_programs")


def write(content: Mapping[str, Any]) -> None:
    sums = Counter()
    for row in content["groups"].values():
        sums.update(row)
    counts = ", ".join(f"{sums[key]} {key}" for key in ("tried", "compiled", "to run", "ran right"))
    command = "python -m tests.sdk_programs run FOLDER"
    records.write("sdk_programs", command, f"{content['sdk']}: {counts}", **content)


def table(content: Mapping[str, Any]) -> str:
    """The summary in Markdown."""
    lines = [
        "| programs | tried | compiled | to run | ran right | cases passed |",
        "|---|---|---|---|---|---|",
    ]
    for group, row in content["groups"].items():
        cases = f"{row['cases passed']} of {row['cases']}" if "cases" in row else ""
        numbers = " | ".join(str(row[key]) for key in ("tried", "compiled", "to run", "ran right"))
        lines.append(f"| {group} | {numbers} | {cases} |")
    return "\n".join(lines)
