# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of a kernel over torch's stable ABI, against the same kernel over torch's C++ API.

Builds two packs whose kernels allocate their result and launch nothing, so a row's difference is the cost of
boxed values in the stable ABI. `ceil` and `floor` are operators with equal signatures that torch's Python
bindings call unboxed; a pack's own operators are called boxed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from musa_runtime import config

from .measure import Effort, Row, interleaved

BAR_NS = 1000.0
SOURCES = Path(__file__).with_name("call_overhead")
PACKS = ("bench_cxx", "bench_stable")


def build(folder: Path) -> list[Path]:
    """Builds the libraries of both packs, optimized as in wheels."""
    tools = Path(sys.executable).parent  # of the environment, which may not be active
    search = f"{tools}:{os.environ.get('PATH', '')}"
    cmake, ninja = (shutil.which(name, path=search) for name in ("cmake", "ninja"))
    if cmake is None or ninja is None:
        raise FileNotFoundError("cmake or ninja is missing. Fix: pip install cmake ninja")
    configure = [cmake, "-S", SOURCES, "-B", folder, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    configure += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dmusa_runtime_DIR={config.cmake_dir()}"]
    for command in (configure, [cmake, "--build", folder]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [folder / f"lib{name}.so" for name in PACKS]


def load(libraries: list[Path]) -> None:
    """Loads the packs and makes them serve the two operators of torch.

    Raises:
        RuntimeError: if the registry rejects one of them.
    """
    torch.musa.init()
    for library in libraries:
        torch.ops.load_library(str(library))
    for op, provider in (("aten::ceil", "bench_cxx"), ("aten::floor", "bench_stable")):
        torch.musa.ops.prefer(op, provider)
        served = torch.musa.ops.explain(op)["provider"]
        if served != provider:
            raise RuntimeError(f"{op} is served by {served}, not by {provider}: python -m torch_musa packs")


def pairs(tensor: torch.Tensor) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Returns the calls to measure: over the stable ABI, and over the C++ API."""
    stable, cxx = torch.ops.bench_stable, torch.ops.bench_cxx
    return {
        "operator of the pack": (lambda: stable.result(tensor), lambda: cxx.result(tensor)),
        "operator of the pack, with a predicate": (
            lambda: stable.conditional(tensor),
            lambda: cxx.conditional(tensor),
        ),
        "operator of torch, with a predicate": (lambda: torch.floor(tensor), lambda: torch.ceil(tensor)),
    }


def measure_all(device: torch.device, effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        load(build(Path(folder)))
        tensor = torch.zeros(8, device=device)
        for name, (stable, cxx) in pairs(tensor).items():
            pair = interleaved(stable, device, cxx, device, effort)
            yield Row(
                "stable ABI",
                f"{name}: stable ABI against C++",
                pair.value * 1e9,
                pair.baseline * 1e9,
                "ns",
                BAR_NS,
                by="difference",
            )
