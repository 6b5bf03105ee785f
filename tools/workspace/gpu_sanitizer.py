# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs the packs' kernels under compute-sanitizer: `dev.py gpu --sanitize`.

Each operator of the conformance suite runs with float32 operands, forward and backward, once per tool. The
record contains a summary of each tool's errors and the number of tests; processes that were ended early have
no summary and are listed.
"""

import contextlib
import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.harness import records

from . import WorkspaceError, gpu, legs
from .progress import run_logged

TOOLS = ("memcheck", "racecheck", "synccheck")
TESTS = ("tests/conformance/test_ops.py", "-k", "float32")
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards? displayed \((\d+) errors?)")
TOLD = re.compile(r"^=+ ((?:Invalid|Error: Race|Race reported|Barrier error|Program hit).*)$", re.MULTILINE)
MOST_TOLD = 20


def errors(text: str) -> int | None:
    """Returns the error count in the summary of a compute-sanitizer log; None without a summary.

    Warnings of racecheck are not counted: these hazards do not change a result.
    """
    found = SUMMARY.findall(text)
    if not found:
        return None
    count, of_races = found[-1]
    return int(of_races or count)


def told(text: str) -> list[str]:
    """Returns the distinct first lines of the errors in a log, without addresses."""
    lines = [re.sub(r"0x[0-9a-f]+", "<address>", line)[:200] for line in TOLD.findall(text)]
    return list(dict.fromkeys(lines))[:MOST_TOLD]


def run_tool(cell: gpu.Cell, tool: str, parts: int, limit: float, gpus: int = 1) -> dict[str, Any]:
    """Runs TESTS in `parts` processes under a compute-sanitizer tool; each has `limit` seconds.

    gpus: the number of GPUs among which processes are distributed.
    """
    folder = cell.folder / "sanitizer"
    folder.mkdir(parents=True, exist_ok=True)

    def one(part: int) -> dict[str, Any]:
        title = f"{tool}_{part}"
        log, report = folder / f"{title}.log", folder / f"{title}.xml"
        for path in (log, report):
            path.unlink(missing_ok=True)
        command = ["timeout", "-k", "5", str(int(limit)), "compute-sanitizer", "--tool", tool]
        # If many processes start at once, each takes longer than the tool's default timeout of 10
        # s.
        command += ["--launch-timeout", "300", "--target-processes", "application-only"]
        command += ["--log-file", str(log)]
        command += [str(cell.executable), "-m", "pytest", "-q", "--disable-warnings"]
        command += ["-p", "no:cacheprovider", f"--junitxml={report}", f"--part={part}/{parts}", *TESTS]
        env = {**legs.WAIT_POLICY, **cell.environment(), **gpu.PORTED}
        if gpus > 1:
            env["CUDA_VISIBLE_DEVICES"] = str(part % gpus)
        with contextlib.suppress(WorkspaceError):  # failed tests or the limit; see report and log
            run_logged(title, command, folder / f"{title}.out", env, cwd=cell.tree)
        text = log.read_text(errors="replace") if log.is_file() else ""
        results = [result for _, result, _ in legs.outcomes(report)] if report.is_file() else []
        return {"title": title, "errors": errors(text), "told": told(text), "results": results}

    with ThreadPoolExecutor(parts) as pool:
        rows = list(pool.map(one, range(1, parts + 1)))
    results = [result for row in rows for result in row["results"]]
    return {
        "errors": sum(row["errors"] or 0 for row in rows),
        "told": list(dict.fromkeys(line for row in rows for line in row["told"]))[:MOST_TOLD],
        "without_summary": [row["title"] for row in rows if row["errors"] is None or not row["results"]],
        "passed": results.count("passed"),
        "failed": results.count("failed"),
        "skipped": results.count("skipped"),
    }


def earlier_rows(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the tools' rows of the last record if its GPU, torch and tests are the same."""
    last = records.read("gpu_sanitizer")
    same = all(last.get(name) == record[name] for name in ("device", "torch", "tests"))
    return last["tools"] if same else {}


def run(cell: gpu.Cell, found: dict[str, Any], tools: Sequence[str], parts: int, limit: float) -> int:
    """Runs the tools in turn and writes the record; returns 1 if one reports an error or did not end.

    found: the machine, as printed by gpu.DEVICE.
    """
    if unknown := set(tools) - set(TOOLS):
        raise WorkspaceError(f"{sorted(unknown)[0]} is no tool: {', '.join(TOOLS)}")
    if shutil.which("compute-sanitizer") is None:
        raise WorkspaceError(
            "compute-sanitizer is not on PATH.\nFix: it is part of the CUDA toolkit: put its bin on PATH"
        )
    record = {**found, "tests": " ".join(TESTS)}
    rows = earlier_rows(record)
    for tool in tools:
        start = time.monotonic()
        rows[tool] = run_tool(cell, tool, parts, limit, found["gpus"])
        rows[tool]["seconds"] = round(time.monotonic() - start)
        rows[tool]["date"] = time.strftime("%Y-%m-%d")
        row = {name: value for name, value in rows[tool].items() if name != "told"}
        print(f"{tool}: {row}", *rows[tool]["told"], sep="\n  ", flush=True)
        counts = (f"{name} {one['errors']} errors, {one['passed']:,} passed" for name, one in rows.items())
        summary = f"{found['device']}, torch {found['torch']}: {'; '.join(counts)}"
        records.write("gpu_sanitizer", "python3 tools/dev.py gpu --sanitize", summary, **record, tools=rows)
    return int(any(rows[tool]["errors"] or rows[tool]["without_summary"] for tool in tools))
