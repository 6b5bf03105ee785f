# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Time, memory and activity of whole programs, on both devices, each in a process of its own."""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from .processes import alone
from .programs import PROGRAMS
from .training import MEMORY_BAR, TIME_BAR, Step, allocators, peak_of, release_unused

PROCESS_LIMIT_S = 240
WARM_UP = 4
TIME_S = 0.7  # of the measured steps in each of three rounds
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
SDK_CALLS = ("cuda_runtime", "cuda_driver", "privateuse1_runtime", "privateuse1_driver")
LISTED = 12  # longest kernels and operators in the record


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Returns the length of the union of intervals."""
    total, end = 0.0, -math.inf
    for begin, stop in sorted(spans):
        total += max(0.0, stop - max(begin, end))
        end = max(end, stop)
    return total


def activity(step: Step, device: str) -> dict:
    """Profiles a step: milliseconds in which the device is busy, launches, and the longest kernels.

    Returns:
        busy_ms and launches of the device's work; sdk_ms, the host's time inside calls of the SDK's runtime
        and driver; kernels and operators, the longest ones with milliseconds (operators: the host's own time)
        and their number.
    """
    profiler = torch.profiler
    work = profiler.ProfilerActivity.CUDA if device == "cuda" else profiler.ProfilerActivity.PrivateUse1
    module = getattr(torch, device)
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU, work]) as profiled:
        step()
        module.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("ph") == "X"]
    kernels: Counter[str] = Counter()
    number: Counter[str] = Counter()
    spans, calls = [], []
    for event in events:
        if event.get("cat") in DEVICE_WORK:
            spans.append((event["ts"], event["ts"] + event["dur"]))
            kernels[event["name"][:120]] += event["dur"]
            number[event["name"][:120]] += 1
        elif event.get("cat") in SDK_CALLS:
            calls.append((event["ts"], event["ts"] + event["dur"]))
    averages = sorted(profiled.key_averages(), key=lambda one: -one.self_cpu_time_total)
    return {
        "busy_ms": covered(spans) / 1e3,
        "launches": len(spans),
        "sdk_ms": covered(calls) / 1e3,
        "kernels": [[name, round(us / 1e3, 3), number[name]] for name, us in kernels.most_common(LISTED)],
        "operators": [
            [one.key, round(one.self_cpu_time_total / 1e3, 3), one.count] for one in averages[:LISTED]
        ],
    }


def host_copies() -> dict[str, int]:
    """Returns the operators that were computed on copies in host memory, with their numbers of calls."""
    return {row["op"]: row["count"] for row in torch.musa.ops.fallback_report()}


def measure(name: str, device: str, tiny: bool = False) -> dict:
    """Returns milliseconds of a step, the host's part of it, peak MiB, the result and the device's activity.

    `ms` is the median of three rounds; `host_ms` the time until a step's call returns, with an idle device.
    `result` is the root mean square of the last warm-up step's result, after the same number of steps on both
    devices.
    """
    module = getattr(torch, device)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False  # as on musa; torch.cuda allows it in convolutions by default
    step = PROGRAMS[name].make(device, tiny)
    for _ in range(WARM_UP):
        last = step()
    result = float(last.double().square().mean().sqrt())
    del last
    module.synchronize()
    release_unused(device)
    step()  # fills the emptied caches
    module.synchronize()
    start = time.perf_counter()
    step()
    returned = time.perf_counter()
    module.synchronize()
    took = time.perf_counter() - start
    steps = 3 * max(1, min(7, int(TIME_S / 3 / took)))  # programs may take three sizes in turn
    times, host = [], [returned - start]
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        module.synchronize()
        times.append((time.perf_counter() - start) / steps * 1e3)
    for _ in range(2):
        start = time.perf_counter()
        step()
        host.append(time.perf_counter() - start)
        module.synchronize()
    found = {
        "ms": statistics.median(times),
        "host_ms": min(host) * 1e3,
        "result": result,
        "reserved": sum(one.max_memory_reserved() for one in allocators(device)) / 2**20,
        "allocated": peak_of(step, device)[1],
    }
    if device == "musa":
        found["host_copies"] = host_copies()
    return found | activity(step, device)


def run(names: Sequence[str], rounds: int = 2) -> Iterator[dict]:
    """Yields a row per program: both devices in turn, `rounds` times; the faster process counts.

    `results` has the results of all processes of musa. An error of one counts.
    """
    for name in names:
        missing = PROGRAMS[name].missing()
        if missing:
            yield {"name": name, "missing": missing}
            continue
        found: dict[str, dict] = {}
        results: list[float] = []
        for device in ("cuda", "musa") * rounds:
            if "error" in found.get(device, {}):
                continue
            try:
                one = alone(device, "--program", name, limit=PROCESS_LIMIT_S)
            except RuntimeError as error:
                one = {"error": str(error)}
            if device == "musa" and "error" not in one:
                results.append(one["result"])
            if device not in found or "error" in one or one["ms"] < found[device]["ms"]:
                found[device] = one
        yield {"name": name, "results": results, **found}


def agrees(row: dict) -> bool:
    """Returns whether all results of musa are within the program's tolerance of torch.cuda's."""
    expected, tolerance = row["cuda"]["result"], PROGRAMS[row["name"]].tolerance
    return all(
        math.isfinite(result) and math.isclose(expected, result, rel_tol=tolerance, abs_tol=1e-6)
        for result in (row["musa"]["result"], *row["results"])
    )


def marks(row: dict) -> list[str]:
    """Returns the faults of a measured row: its result, time, memory, or operators on the host."""
    cuda, musa = row["cuda"], row["musa"]
    found = [] if agrees(row) else ["results differ"]
    if musa["ms"] > TIME_BAR * cuda["ms"]:
        found.append("above the bar")
    if musa["allocated"] > MEMORY_BAR * cuda["allocated"] + 1:
        found.append("more memory")
    if musa["host_copies"]:
        found.append("computed on the host: " + ", ".join(sorted(musa["host_copies"])))
    return found


def line(row: dict) -> str:
    """Returns a row of the table: milliseconds, their ratio, and torch.cuda's and musa's other figures."""
    if "missing" in row:
        return f"{row['name']:28}not measured: {', '.join(row['missing'])} is not installed"
    for device in ("cuda", "musa"):
        if "error" in row[device]:
            return f"{row['name']:28}{device}: {row[device]['error'][-1500:]}"
    cuda, musa = row["cuda"], row["musa"]
    parts = [f"{row['name']:28}{cuda['ms']:9.2f}{musa['ms']:9.2f} ms{musa['ms'] / cuda['ms']:7.3f}"]
    columns = (
        ("host", "host_ms", "8.2f"), ("sdk", "sdk_ms", "8.2f"), ("busy", "busy_ms", "8.2f"),
        ("launches", "launches", "6d"), ("MiB", "allocated", "7.0f"), ("result", "result", "11.4g"),
    )  # fmt: skip
    parts += [f"{title}{cuda[key]:{width}}{musa[key]:{width}}" for title, key, width in columns]
    return "  ".join([*parts, *marks(row)])


def summary(rows: Sequence[dict]) -> str:
    measured = [row for row in rows if all("ms" in row.get(device, {}) for device in ("cuda", "musa"))]
    if not measured:
        return f"0 of {len(rows)} programs"
    ratios = [row["musa"]["ms"] / row["cuda"]["ms"] for row in measured]
    right = sum(map(agrees, measured))
    return (
        f"{len(measured)} of {len(rows)} programs, {right} with torch.cuda's results; time over torch.cuda's "
        f"median {statistics.median(ratios):.3f}, largest {max(ratios):.2f}"
    )
