# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole training steps, each in its own process: `python -m benchmarks.gpu --training`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType

import torch
from torch import nn
from torch.nn import functional

from ..measure import warm_up_for_capture
from .models import GPT2, ResNet50
from .processes import alone

PROCESS_LIMIT_S = 240
TIME_BAR, MEMORY_BAR = 1.1, 1.05
CASES = (
    "resnet50-train",
    "resnet50-train-graph",
    "resnet50-infer",
    "resnet50-infer-graph",
    "gpt2-train",
    "gpt2-train-graph",
    "resnet50-infer-compiled",
    "gpt2-train-compiled",
)
Step = Callable[[], torch.Tensor]


def resnet50_step(device: str, graphed: bool, batch: int = 256, size: int = 224) -> Step:
    """Returns a step with bfloat16 autocast, channels last, and SGD."""
    model = ResNet50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(batch, 3, size, size).to(device).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,)).to(device)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        # A graph must not use copies of weights from a previous step.
        with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=not graphed):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def resnet50_inference(
    device: str, graphed: bool, compiled: bool = False, batch: int = 256, size: int = 224
) -> Step:
    model: nn.Module = ResNet50().eval().to(device, dtype=torch.bfloat16, memory_format=torch.channels_last)
    images = torch.randn(batch, 3, size, size).to(device, dtype=torch.bfloat16)
    images = images.contiguous(memory_format=torch.channels_last)
    model = torch.compile(model) if compiled else model

    def step() -> torch.Tensor:
        with torch.no_grad():
            return model(images)

    return step


def gpt2_step(
    device: str, graphed: bool, compiled: bool = False, batch: int = 16, length: int = 1024, depth: int = 12
) -> Step:
    """Returns a step with bfloat16 autocast and AdamW; with `compiled` the model is compiled."""
    model: nn.Module = GPT2(length=length, depth=depth).to(device)
    model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, capturable=graphed)
    ids = torch.randint(0, 50257, (batch, length + 1)).to(device)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, cache_enabled=not graphed):
            logits = model(ids[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def make(name: str, device: str, **sizes: int) -> tuple[Step, float | None]:
    """Returns a case's step and None, or for graphs the replay and the peak memory of its capture."""
    graphed, compiled = name.endswith("-graph"), name.endswith("-compiled")
    maker = {"resnet50-train": resnet50_step, "resnet50-infer": resnet50_inference, "gpt2-train": gpt2_step}[
        name.removesuffix("-graph").removesuffix("-compiled")
    ]
    step = maker(device, graphed, **({"compiled": True} if compiled else {}), **sizes)
    if not graphed:
        return step, None
    module = getattr(torch, device)
    warm_up_for_capture(step, module)
    module.synchronize()
    release_unused(device)
    graph = module.CUDAGraph() if device == "cuda" else module.MUSAGraph()

    def capture() -> torch.Tensor:
        with module.graph(graph):
            return step()

    kept, peak = peak_of(capture, device)

    def replay() -> torch.Tensor:
        graph.replay()
        return kept

    return replay, peak


def allocators(device: str) -> list[ModuleType]:
    """Returns the modules whose allocators are used: musa's operators use torch.cuda's for scratch memory."""
    if device == "musa" and torch.cuda.is_available():
        torch.cuda.init()
        return [torch.musa, torch.cuda]
    return [getattr(torch, device)]


def release_unused(device: str) -> None:
    """Frees cached memory, so that peaks of reserved memory are those of the following steps.

    In previous steps cuDNN tries algorithms with additional workspaces.
    """
    for allocator in allocators(device):
        allocator.empty_cache()
        allocator.reset_peak_memory_stats()


Event = tuple[float, float]  # time, and bytes allocated at that time


def peak_of_events(events: Iterable[Event]) -> float:
    """Returns the maximum of a running sum in order of time; at equal times frees come first."""
    now = peak = 0.0
    for _, size in sorted(events):
        now += size
        peak = max(peak, now)
    return peak


def peak_of(call: Callable[[], torch.Tensor], device: str) -> tuple[torch.Tensor, float]:
    """Returns the result of a call, and the peak MiB of all allocators together during it.

    The allocators' own peaks are at different times, so their sum would count scratch memory that is freed
    long before or after the tensors' peak.
    """
    used = allocators(device)
    getattr(torch, device).synchronize()
    events: list[Event] = [(0.0, sum(allocator.memory_allocated() for allocator in used))]
    for allocator in used:
        allocator.memory._record_memory_history(context=None, clear_history=True)
    try:
        result = call()
        getattr(torch, device).synchronize()
        for allocator in used:
            for entry in allocator.memory._snapshot()["device_traces"][allocator.current_device()]:
                if entry["action"] in ("alloc", "free_requested"):
                    sign = 1 if entry["action"] == "alloc" else -1
                    events.append((entry["time_us"], sign * entry["size"]))
    finally:
        for allocator in used:
            allocator.memory._record_memory_history(enabled=None)
    return result, peak_of_events(events) / 2**20


def measure(name: str, device: str, steps: int = 20, **sizes: int) -> dict:
    """Returns milliseconds of a step, and peak memory in MiB; musa's includes the operators' scratch.

    `allocated` is the peak in a step after the measured ones, for graphs in the capture. `reserved` is the
    sum of the allocators' peaks in the measured steps. `scratch`, for musa, is the peak of torch.cuda's
    allocator.
    """
    torch.manual_seed(0)
    module = getattr(torch, device)
    torch.backends.cudnn.benchmark = True
    step, peak = make(name, device, **sizes)
    for _ in range(5):
        last = step()
    module.synchronize()
    if peak is None:
        release_unused(device)
        step()  # fills the emptied caches
        module.synchronize()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(steps):
            last = step()
        module.synchronize()
        times.append((time.perf_counter() - start) / steps * 1e3)
    found = {
        "ms": statistics.median(times),
        "result": float(last.float().mean()),
        "scratch": sum(other.max_memory_allocated() for other in allocators(device)[1:]) / 2**20,
        "reserved": sum(allocator.max_memory_reserved() for allocator in allocators(device)) / 2**20,
    }
    if peak is None:
        del last  # before another step, as in the measured steps
        _, peak = peak_of(step, device)
    return found | {"allocated": peak}


def run(names: Sequence[str]) -> Iterator[dict]:
    """Yields a row per case: both devices, twice; the faster run counts."""
    for name in names:
        found: dict[str, dict] = {}
        for device in ("cuda", "musa", "cuda", "musa"):
            try:
                one = alone(device, "--case", name, limit=PROCESS_LIMIT_S)
            except RuntimeError as error:
                one = {"error": str(error)}
            kept = found.get(device)
            if kept is None or "error" in kept or one.get("ms", float("inf")) < kept["ms"]:
                found[device] = one if "error" not in one or kept is None else kept
        row = {"name": name, **found}
        print(line(row), flush=True)
        yield row


def line(row: dict) -> str:
    for device in ("cuda", "musa"):
        if "error" in row[device]:
            return f"{row['name']:24}{device}: {row[device]['error'][-2000:]}"
    cuda, musa = row["cuda"], row["musa"]
    text = f"{row['name']:24}{cuda['ms']:10.2f} ms{musa['ms']:10.2f} ms{musa['ms'] / cuda['ms']:7.3f}"
    above = musa["ms"] > TIME_BAR * cuda["ms"]
    for kind in ("allocated", "reserved"):
        text += f"  {kind} {cuda[kind]:8.0f} {musa[kind]:8.0f} MiB {musa[kind] / cuda[kind]:.3f}"
        above |= musa[kind] > MEMORY_BAR * cuda[kind]
    text += f"  of it scratch {musa['scratch']:.0f} MiB"
    text += f"  result {cuda['result']:.4f} {musa['result']:.4f}"
    return f"{text}  above the bar" if above else text
