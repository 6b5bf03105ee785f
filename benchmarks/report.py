# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the rows as a table on the terminal, as JSON and as a plot."""

import json
import math
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from . import providers
from .measure import Row

LOAD_AT_START = os.getloadavg()[0]  # load before this run
SETTINGS = (
    "MUSA_HOME",
    "MUSA_EMULATOR_MODE",
    "MUSA_EMULATOR_MEMORY",
    "TORCH_MUSA_OPS",
    "OMP_WAIT_POLICY",
    # Settings of the C library's malloc, which the baseline uses.
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "LD_PRELOAD",
)


def machine() -> dict:
    """Returns the conditions that the figures depend on."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("musa-emulator", "musa-emulator-mudnn", "musa-runtime", "torch-musa", "musa-ops-mudnn"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": processor_name(),
        "cpus": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "load_at_start": LOAD_AT_START,
        "system": platform.platform(),
        "versions": versions,
        "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ},
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def judgement(row: Row) -> tuple[str, str]:
    """Returns the compared value and its bar, with their unit."""
    if row.by == "ratio":
        return f"{row.judged:.2f}x", f"≤ {row.bar:g}x"
    sign = "+" if row.by == "difference" else ""
    return f"{row.judged:{sign}.0f} {row.unit}", f"≤ {sign}{row.bar:g} {row.unit}"


def table(rows: Sequence[Row], device: str, baseline: str) -> Table:
    result = Table(title=f"{device} against {baseline}, {torch.get_num_threads()} threads each")
    result.add_column("what")
    for column in (device, baseline, "judged", "bar", "met"):
        result.add_column(column, justify="right", no_wrap=True)
    with_providers = any(row.served for row in rows)
    if with_providers:
        result.add_column("operators by")
    group = None
    for row in rows:
        if row.group != group:
            result.add_section()
            group = row.group
        met = "[green]yes[/]" if row.met else "[red]no[/]"
        times = (f"{row.value:.4g} {row.unit}", f"{row.baseline:.4g} {row.unit}")
        served = (row.served,) if with_providers else ()
        result.add_row(row.name, *times, *judgement(row), met, *served)
    return result


def plot(rows: Sequence[Row], title: str, path: Path) -> None:
    """Plots each row's value relative to its bar; values up to 1 meet the bar."""
    # Imported here, because it is large and would affect the heap during measurements.
    import matplotlib

    matplotlib.use("Agg")  # before pyplot is imported, because there may be no display
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.32 * len(rows)), layout="constrained")
    shares = [max(row.judged / (row.bar or 1), 1e-3) for row in rows]
    axes.barh(range(len(rows)), shares, color=["tab:green" if row.met else "tab:red" for row in rows])
    axes.axvline(1, color="black", linewidth=1, zorder=0)
    for index, (row, share) in enumerate(zip(rows, shares)):
        text = f" {judgement(row)[0]}  (bar {judgement(row)[1]})"
        axes.text(share, index, text, va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.7 * max(1.0, *shares))
    axes.set_xlabel("share of the bar that is used (lower is better)")
    axes.set_title(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def usable(row: Row) -> bool:
    """Whether the figure is plausible: a time is never 0, a count may be."""
    if row.by == "count":
        return math.isfinite(row.value) and row.value >= 0
    return math.isfinite(row.judged) and row.value > 0 and row.baseline > 0


def write(
    rows: Sequence[Row],
    left_out: dict[str, str],
    device: str,
    baseline: str,
    folder: Path,
    clock: str = "perf_counter",
) -> None:
    """Prints the table; writes ``benchmarks.json`` and ``benchmarks.png`` to ``folder``."""
    if not rows:
        raise ValueError(f"nothing was measured: {left_out}")
    bad = [row.name for row in rows if not usable(row)]
    if bad:
        raise ValueError(f"these measurements gave no usable time: {', '.join(bad)}")
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 120)
    console.print(table(rows, device, baseline))
    operators = providers.policy() if torch.device(device).type == "musa" else None
    if operators is not None:
        console.print(providers.policy_text(operators))
    for group, reason in left_out.items():
        console.print(f"{group}: not measured: {reason}")
    content = {
        "device": device,
        "baseline": baseline,
        "clock": clock,
        "machine": machine(),
        "operators": operators,
        "rows": [row.as_dict() for row in rows],
        "not_measured": left_out,
    }
    (folder / "benchmarks.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    plot(rows, f"{device} against {baseline}", folder / "benchmarks.png")
    if len(os.sched_getaffinity(0)) / 2 < LOAD_AT_START:
        console.print(
            f"Other programs were busy here (load {LOAD_AT_START:.1f}): repeat this on an idle machine."
        )
    met = sum(row.met for row in rows)
    console.print(f"{met} of {len(rows)} bars met; {folder / 'benchmarks.json'}, {folder / 'benchmarks.png'}")
