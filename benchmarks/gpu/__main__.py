# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares the musa device over musa-cuda with torch.cuda on one GPU.

MUSA_HOME=<musa_cuda.home()> TORCH_MUSA_OPS=mudnn,ported,host-copy python -m benchmarks.gpu

Forward cases run on both devices in turn; the median of the rounds' ratios counts. Their device times are
measured in one process, and their host times, which differ by process, in several. Cases with a backward
pass run in processes of one device, which take turns. --training instead runs whole training steps, each in
its own process, and compares their time and memory. --mathematics instead runs Fourier transforms,
decompositions and sparse products; --programs instead runs whole programs of real packages.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence

import torch

from tests.harness import records

from . import program_timing, training
from .cases import BACKWARD, DEVICE, HOST, MATHEMATICS, Call, Case
from .processes import alone, output
from .programs import PROGRAMS

PROCESS_LIMIT_S = 300
ROUNDS = 21
PROCESSES = 7  # for host times, and of each device for cases with a backward pass: processes differ


@functools.cache
def filler(device: str) -> torch.Tensor:
    """Returns 512 MiB, which an H100 fills in 0.17 ms: longer than most calls take on the host."""
    return torch.empty(2**29, dtype=torch.uint8, device=device)


def device_time(device: str, call: Call, runs: int) -> float:
    """Returns the median microseconds between events around a call.

    The device is busy when the call is made, so the time contains the host's only if the call waits for the
    device or takes the host longer than the fill. No operand is in the device's cache.
    """
    module = getattr(torch, device)
    times = []
    for _ in range(runs):
        start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
        filler(device).zero_()
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def host_time(device: str, call: Call, runs: int) -> float:
    """Returns the mean microseconds of a call on the host."""
    start = time.perf_counter()
    for _ in range(runs):
        call()
    time_s = time.perf_counter() - start
    getattr(torch, device).synchronize()
    return time_s / runs * 1e6


def measure(case: Case, calls: dict[str, Call]) -> dict[str, list[float]]:
    """Returns the microseconds of a case in ROUNDS rounds, in which the devices are measured in turn.

    calls: by device, from `case.make`.
    """
    timed = host_time if case.kind == "host" else device_time
    slow = 0.0
    for device, call in calls.items():
        timed(device, call, 3)
        slow = max(slow, timed(device, call, 20 if case.kind == "host" else 3))
    if case.kind == "host":
        runs = 20 if slow > 200 else 500
    else:
        runs = 1 if slow > 20_000 else 4
    found: dict[str, list[float]] = {device: [] for device in calls}
    for _ in range(ROUNDS):
        for device, call in calls.items():
            found[device].append(timed(device, call, runs))
    return found


def served(case: Case) -> str:
    """Returns the providers of a call's operators; mudnn's are kernels of torch.cuda (musa-cuda-mudnn)."""
    ops = torch.musa.ops
    call = case.make("musa")
    before = {row["op"]: row["calls"] for row in ops.table()}
    call()
    used = [row["op"] for row in ops.table() if row["calls"] > before.get(row["op"], 0)]

    def counts() -> Counter[str]:
        found: Counter[str] = Counter()
        for op in used:
            found.update({one["provider"]: one["calls"] for one in ops.explain(op)["candidates"]})
        return found

    earlier = counts()
    call()
    return ",".join(sorted(counts() - earlier)) or "runtime"


def beside(cases: Sequence[Case]) -> dict[str, dict]:
    """Measures both devices in turn, in this process.

    Returns:
        By name of the case, the result of `measure` with the providers as "served_by", or an "error".
    """
    found: dict[str, dict] = {}
    for case in cases:
        try:
            providers = served(case)
            rounds = measure(case, {device: case.make(device) for device in ("cuda", "musa")})
            found[case.name] = {**rounds, "served_by": providers}
        except (RuntimeError, AttributeError) as error:
            found[case.name] = {"error": str(error).splitlines()[0][:300]}
        for module in (torch.cuda, torch.musa):
            module.empty_cache()
    return found


def joined(parts: Sequence[dict[str, dict]]) -> dict[str, dict]:
    """Returns the rounds of several processes as those of one; an error in one of them counts."""
    whole = {name: dict(one) for name, one in parts[0].items()}
    for part in parts[1:]:
        for name, one in part.items():
            if "error" in one or "error" in whole[name]:
                whole[name] = one if "error" in one else whole[name]
            else:
                whole[name].update({device: whole[name][device] + one[device] for device in ("cuda", "musa")})
    return whole


def row(case: Case, cuda: Sequence[float], musa: Sequence[float]) -> dict:
    """Returns the medians of the rounds, and the median of the rounds' ratios with their quartiles."""
    ratios = [one / other for one, other in zip(musa, cuda, strict=True)]
    low, middle, high = (round(value, 3) for value in statistics.quantiles(ratios, n=4))
    return {
        "name": case.name, "kind": case.kind, "cuda_us": round(statistics.median(cuda), 2),
        "musa_us": round(statistics.median(musa), 2), "ratio": middle, "quartiles": [low, high],
        "bar": case.bar, "bytes": case.bytes,
    }  # fmt: skip


def table(rows: Sequence[dict]) -> str:
    lines = [f"{'':48}{'kind':8}{'cuda, us':>12}{'musa, us':>12}{'ratio':>8}{'bar':>6}{'GB/s':>8} served by"]
    for one in rows:
        rate = f"{one['bytes'] / one['musa_us'] / 1e3:8.0f}" if one["bytes"] else ""
        times = f"{one['cuda_us']:12.2f}{one['musa_us']:12.2f}{one['ratio']:8.2f}"
        line = f"{one['name']:48}{one['kind']:8}{times}{one['bar']:6.2f}{rate:8} {one.get('served_by', '')}"
        lines.append(line if one["ratio"] <= one["bar"] else f"{line}  above the bar")
    return "\n".join(lines)


def rows_of(cases: Sequence[Case], found: dict[str, dict]) -> tuple[list[dict], list[dict]]:
    """Returns the rows of the report, and the cases that raised errors."""
    rows, refused = [], []
    for case in cases:
        one = found[case.name]
        if "error" in one:
            refused.append({"name": case.name, "error": one["error"]})
        else:
            rows.append({**row(case, one["cuda"], one["musa"]), "served_by": one["served_by"]})
    return rows, refused


def within(rows: Sequence[dict]) -> str:
    return f"{sum(one['ratio'] <= one['bar'] for one in rows)} of {len(rows)} medians within their bars"


def report(rows: Sequence[dict], refused: Sequence[dict]) -> None:
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}\n{table(rows)}")
    for one in refused:
        print(f"refused: {one['name']}: {one['error']}")


def write(name: str, command: str, result: str, **details: list[dict]) -> None:
    device = torch.cuda.get_device_name(0)
    summary = f"{device}, torch {torch.__version__}: {result}"
    records.write(name, command, summary, device=device, cuda=torch.version.cuda, **details)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.gpu", description=__doc__)
    parser.add_argument("--alone", choices=("cuda", "musa"), help=argparse.SUPPRESS)
    parser.add_argument("--host", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--stacks-after", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--training", action="store_true", help="measure whole training steps")
    parser.add_argument(
        "--mathematics", action="store_true", help="measure FFT, linear algebra and sparse products"
    )
    parser.add_argument("--case", action="append", choices=training.CASES, help="a training step")
    parser.add_argument("--programs", action="store_true", help="measure whole programs")
    parser.add_argument("--program", action="append", choices=PROGRAMS, help="one of the programs")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each device for a program")
    options = parser.parse_args(arguments)
    if options.stacks_after:
        faulthandler.dump_traceback_later(options.stacks_after)
    if options.alone == "cuda":
        sys.modules["torch_musa"] = None  # type: ignore[assignment]  # so that packages cannot import it
    if options.alone and options.program:
        print(json.dumps(program_timing.measure(options.program[0], options.alone)))
        return 0
    if options.alone and options.case:
        print(json.dumps(training.measure(options.case[0], options.alone)))
        return 0
    if options.alone:
        found = {case.name: measure(case, {options.alone: case.make(options.alone)}) for case in BACKWARD}
        print(json.dumps({name: rounds[options.alone] for name, rounds in found.items()}))
        return 0
    if not torch.cuda.is_available() or not torch.musa.is_available():
        print(
            f"torch.cuda.is_available() is {torch.cuda.is_available()} and torch.musa.is_available() is "
            f"{torch.musa.is_available()}; both devices are compared here.\n"
            "Fix: a CUDA build of torch on a machine with an NVIDIA GPU, and MUSA_HOME of musa-cuda: "
            "python3 tools/dev.py gpu --build",
            file=sys.stderr,
        )
        return 1
    if options.training:
        rows = []
        for one in training.run(options.case or training.CASES):
            rows.append(one)  # written after each case, because a run may be interrupted
            command = "python -m benchmarks.gpu --training"
            write("gpu_training", command, f"{len(rows)} training steps", rows=rows)
        return 0
    if options.programs or options.program:
        rows = []
        for one in program_timing.run(options.program or list(PROGRAMS), options.rounds):
            print(program_timing.line(one), flush=True)
            rows.append(one)  # written after each program, because a run may be interrupted
            if not options.program:
                command = "python -m benchmarks.gpu --programs"
                write("gpu_programs", command, program_timing.summary(rows), rows=rows)
        print(program_timing.summary(rows))
        return 0
    if options.mathematics:
        rows, refused = rows_of(MATHEMATICS, beside(MATHEMATICS))
        command = "python -m benchmarks.gpu --mathematics"
        write("gpu_mathematics", command, within(rows), rows=rows, refused=refused)
        report(rows, refused)
        return 0
    if options.host:
        print(json.dumps(beside(HOST)))
        return 0
    hosts = [output("--host", musa=True, limit=PROCESS_LIMIT_S) for _ in range(PROCESSES)]
    rows, refused = rows_of((*HOST, *DEVICE), {**joined(hosts), **beside(DEVICE)})
    rounds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(PROCESSES):
        for device in ("cuda", "musa"):
            for name, times in alone(device, limit=PROCESS_LIMIT_S).items():
                rounds[device, name] += times
    rows += [row(case, rounds["cuda", case.name], rounds["musa", case.name]) for case in BACKWARD]
    first = os.environ.get("TORCH_MUSA_OPS", "default").split(",")[0]
    write(f"gpu_operators_{first}", "python -m benchmarks.gpu", within(rows), rows=rows, refused=refused)
    report(rows, refused)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
