# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures a device against torch's CPU device and reports each figure with its bar.

python -m benchmarks --quick --out build/bench
"""

import argparse
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import torch
from tqdm import tqdm

from . import (
    allocator,
    amp,
    compiled,
    debugging,
    distributed,
    fragmentation,
    graphs,
    host_copies,
    math_libraries,
    operators,
    ported,
    programs,
    report,
    serving,
    stable_packs,
    startup,
    training,
    vision,
)
from .measure import Effort, Row

GROUPS = (
    "small",
    "large",
    "allocator",
    "fragmentation",
    "training",
    "host copies",
    "programs",
    "graphs",
    "ported",
    "amp",
    "compiled",
    "debugging",
    "distributed",
    "math libraries",
    "stable packs",
    "vision",
    "serving",
    "import",
)
MUSA_ONLY = {
    "allocator": "it measures musa's caching allocator",
    "fragmentation": "it measures musa's caching allocator",
    "host copies": "it counts copies of a musa device's memory",
    "debugging": "it measures tools for a musa device",
    "compiled": "it measures programs that are compiled for a musa device",
    "graphs": "it measures graphs of the musa device",
    "ported": "it measures kernels of a musa pack",
    "distributed": "it measures mccl",
    "math libraries": "it measures libraries of the MUSA SDK",
    "stable packs": "it measures kernels of musa packs",
    "vision": "it measures kernels of a musa pack",
    "serving": "it measures kernels of a musa pack",
    "import": "it measures the musa packages",
}
PACKS = {
    "amp": "musa_amp",
    "compiled": "musa_compile",
    "distributed": "musa_distributed",
    "serving": "musa_ops_serving",
    "vision": "musa_ops_vision",
}


# Groups whose work is done by the calling thread, so that its processor time can be used instead of
# elapsed time; for the last three groups only with --threads 1.
CPU_TIME = ("small", "programs", "stable packs", "ported", "math libraries", "vision")


def measure(
    group: str, device: torch.device, baseline: torch.device, quick: bool, clock: str = Effort.clock
) -> Iterator[Row]:
    if group == "small":
        return operators.measure_small(
            device, baseline, Effort(3, 1e-3, clock) if quick else Effort(21, 1e-2, clock)
        )
    if group == "large":
        effort, elements = (Effort(3, 1e-3), 10**6) if quick else (Effort(11, 0.1), operators.LARGE_ELEMENTS)
        return operators.measure_large(device, baseline, effort, elements)
    if group == "training":
        effort = Effort(2, 1e-3) if quick else Effort(15, 0.2)
        return training.measure_all(device, baseline, effort, alone=not quick)
    if group == "host copies":
        return host_copies.measure_all()
    if group == "programs":
        return programs.measure_all(
            device, baseline, Effort(2, 1e-3, clock) if quick else Effort(15, 0.1, clock)
        )
    if group == "graphs":
        return graphs.measure_all(device, Effort(2, 1e-3) if quick else Effort(9, 0.2))
    if group == "ported":
        effort = Effort(3, 1e-3, clock) if quick else Effort(11, 0.05, clock)
        return ported.measure_all(device, baseline, effort, quick)
    if group == "amp":
        return amp.measure_all(device, baseline, Effort(2, 1e-3) if quick else Effort(15, 0.1))
    if group == "compiled":
        effort = Effort(2, 1e-3) if quick else Effort(15, 0.05)
        return compiled.measure_all(device, baseline, effort, quick)
    if group == "debugging":
        return debugging.measure_all(device, Effort(2, 1e-3) if quick else Effort(9, 0.1))
    if group == "distributed":
        return distributed.measure_all(Effort(3, 1e-3) if quick else Effort(15, 0.1))
    if group == "math libraries":
        effort = Effort(3, 1e-3, clock) if quick else Effort(15, 0.05, clock)
        return math_libraries.measure_all(device, baseline, effort, quick)
    if group == "stable packs":
        return stable_packs.measure_all(device, Effort(3, 1e-3, clock) if quick else Effort(21, 1e-2, clock))
    if group == "vision":
        effort = Effort(3, 1e-3, clock) if quick else Effort(11, 0.05, clock)
        return vision.measure_all(device, baseline, effort, quick)
    if group == "serving":
        effort = Effort(3, 1e-3, clock) if quick else Effort(11, 0.05, clock)
        return serving.measure_all(device, baseline, effort, quick)
    if group == "allocator":
        return allocator.measure_all(Effort(3, 1e-3) if quick else Effort(9, 0.02))
    if group == "fragmentation":
        return fragmentation.measure_all()
    return startup.measure_all(Effort(1, 0) if quick else Effort(9, 0))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and short samples, as a smoke test only")
    parser.add_argument("--out", type=Path, default=Path("build") / "bench", metavar="DIR")
    parser.add_argument("--device", default="musa")
    parser.add_argument("--baseline", default="cpu")
    parser.add_argument("--threads", type=int, help="threads of each side (default: torch's)")
    parser.add_argument("--only", action="append", choices=GROUPS, help="measure this group; may be repeated")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help=f"measure the process's CPU time, for a busy machine; only for {' and '.join(CPU_TIME)}",
    )
    arguments = parser.parse_args(argv)
    groups = arguments.only or GROUPS
    if arguments.cpu_time and not set(groups) <= set(CPU_TIME):
        parser.error(
            "--cpu-time leaves out waiting and the work of other processes, so it is only for the groups "
            f"{' and '.join(CPU_TIME)}. Fix: {' '.join(f'--only {group}' for group in CPU_TIME)}"
        )
    clock = "process_time" if arguments.cpu_time else Effort.clock
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    # The emulator reads it on its first call. By default it would use all processors, even if torch
    # has one thread.
    os.environ["MUSA_EMULATOR_THREADS"] = str(torch.get_num_threads())

    device, baseline = torch.device(arguments.device), torch.device(arguments.baseline)
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    with tqdm(unit="row", leave=False, disable=None) as progress:  # None: only on a terminal
        for group in groups:
            if group in MUSA_ONLY and device.type != "musa":
                left_out[group] = f"{MUSA_ONLY[group]}, and the device is {device}"
                continue
            pack = PACKS.get(group)
            if pack is not None and device.type == "musa" and importlib.util.find_spec(pack) is None:
                left_out[group] = f"it measures the pack {pack}, which is not installed"
                continue
            progress.set_description(group)
            for row in measure(group, device, baseline, arguments.quick, clock):
                rows.append(row)
                progress.update()
    report.write(rows, left_out, str(device), str(baseline), arguments.out, clock)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
