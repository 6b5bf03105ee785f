# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the record of small calls, build/records/dispatch.json, from alternating runs of two builds.

for i in 1 2 3; do
  <the old build's python> -m benchmarks --only small --cpu-time --threads 1 --out build/before$i
  <the new build's python> -m benchmarks --only small --cpu-time --threads 1 --out build/after$i
done
python -m benchmarks.dispatch_record --before build/before? --after build/after?

Rows that are not in the runs keep their figures.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from tests.harness import records


def read(folders: Sequence[Path]) -> list[dict]:
    """Reads the reports in the folders, which must have the same clock and number of threads."""
    reports = [json.loads((folder / "benchmarks.json").read_text()) for folder in folders]
    for report, folder in zip(reports, folders):
        ways = [(each["clock"], each["machine"]["threads"]) for each in (reports[0], report)]
        if ways[0] != ways[1]:
            raise ValueError(
                f"{folder} was measured by {ways[1]} and {folders[0]} by {ways[0]} (clock, threads)"
            )
    return reports


def merge(reports: Sequence[dict]) -> dict[str, dict]:
    """Returns for each row the medians over the reports of its ratio and the ratio's quartiles."""
    rows: dict[str, list[dict]] = {}
    for report in reports:
        for row in report["rows"]:
            rows.setdefault(row["name"], []).append(row)
    merged = {}
    for name, found in rows.items():
        if len(found) != len(reports):
            raise ValueError(f"{name!r} is a row of {len(found)} of {len(reports)} runs")
        low, high = (statistics.median(row["spread"][end] for row in found) for end in (0, 1))
        merged[name] = {
            "ratio": round(statistics.median(row["judged"] for row in found), 3),
            "quartiles": [round(low, 3), round(high, 3)],
            "bar": found[0]["bar"],
        }
    return merged


def update(record: dict, before: Sequence[dict], after: Sequence[dict]) -> dict:
    """Returns the record, updated with the rows of these reports and how they were measured."""
    rows = {"before": merge(before), "after": merge(after)}
    if rows["before"].keys() != rows["after"].keys():
        raise ValueError(
            f"the two builds have other rows: {sorted(rows['before'].keys() ^ rows['after'].keys())}"
        )
    measured = {
        "rows": sorted(rows["after"]),
        "clock": after[0]["clock"],
        "runs_of_each_build": len(after),
        "load_at_start": [report["machine"]["load_at_start"] for report in (*before, *after)],
    }
    sides = {side: {**record.get(side, {}), **merged} for side, merged in rows.items()}
    return {**record, "machine": after[-1]["machine"], "last_measured": measured, **sides}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.dispatch_record", description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, nargs="+", required=True, metavar="DIR")
    parser.add_argument("--after", type=Path, nargs="+", required=True, metavar="DIR")
    arguments = parser.parse_args(argv)
    last = records.read("dispatch")
    kept = {side: last.get(side, {}) for side in ("before", "after")}
    updated = update(kept, read(arguments.before), read(arguments.after))
    ratios = ", ".join(f"{name} {row['ratio']:.2f}" for name, row in updated["after"].items())
    command = "python -m benchmarks.dispatch_record --before DIR ... --after DIR ..."
    records.write("dispatch", command, f"CPU time on musa over the CPU: {ratios}", **updated)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
