# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fragmentation: replays recorded allocations and frees on an allocator, and reports the peak reserved.

Records a transformer's training on the device, or replays a recording on musa's allocator and on a model of
torch.cuda's:

    python -m benchmarks.fragmentation record benchmarks/data/gpt_training.json.gz
    python -m benchmarks.fragmentation replay benchmarks/data/gpt_training.json.gz
"""

import argparse
import gzip
import json
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from .measure import Row

RECORDING = Path(__file__).parent / "data" / "gpt_training.json.gz"
BAR = 1.0
KIB, MIB = 1 << 10, 1 << 20


# ---- recordings


@dataclass(frozen=True)
class Recording:
    """Allocations and frees in order.

    ``events``: a positive number is an allocation of this number of bytes; ``-k`` frees the k-th allocation,
    counted from 1. ``streams``: for each allocation the index of its stream.
    """

    events: list[int]
    streams: list[int]
    about: str = ""

    def save(self, path: Path) -> None:
        content = {"about": self.about, "events": self.events, "streams": self.streams}
        # Without a time stamp, so that equal recordings give equal files.
        with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
            packed.write(json.dumps(content, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: Path) -> "Recording":
        with gzip.open(path) as file:
            content = json.load(file)
        return cls(content["events"], content["streams"], content["about"])


def recording_of(trace: list[dict], about: str = "") -> Recording:
    """Returns the recording in one device's list of a memory snapshot's ``device_traces``.

    A block is free from ``free_completed`` on: before, no policy may reuse it. Memory that was allocated
    before the recording began is ignored.
    """
    events: list[int] = []
    streams: list[int] = []
    numbers: dict[int, int] = {}
    names: dict[int, int] = {}
    for entry in trace:
        if entry["action"] == "alloc":
            events.append(entry["size"])
            streams.append(names.setdefault(entry["stream"], len(names)))
            numbers[entry["addr"]] = len(streams)
        elif entry["action"] == "free_completed" and entry["addr"] in numbers:
            events.append(-numbers.pop(entry["addr"]))
    return Recording(events, streams, about)


# ---- policies


class Policy(Protocol):
    reserved: int  # bytes reserved on the device
    allocated: int  # bytes allocated, including rounding

    def allocate(self, size: int, stream: int) -> Any: ...

    def free(self, memory: Any) -> None: ...


@dataclass
class _Block:
    address: int
    size: int
    pool: tuple[bool, int]
    free: bool = False
    before: "_Block | None" = None
    after: "_Block | None" = None


@dataclass
class CudaPolicy:
    """A model of torch.cuda's caching allocator with default settings and unlimited memory.

    Based on PyTorch's documentation: "A guide to PyTorch's CUDA Caching Allocator"
    (https://zdevito.github.io/2022/08/04/cuda-caching-allocator.html) and the constants in torch's header
    c10/core/AllocatorConfig.h. Sizes are rounded up to 512 bytes. Up to 1 MiB is allocated from 2 MiB
    segments (small pool); above, from segments of 20 MiB, or from 10 MiB on of the size rounded up to 2 MiB
    (large pool). Each stream has its own pools. The smallest free block that fits is used, at the lowest
    address if there are several, and split if 512 bytes (small) or more than 1 MiB (large) remain. Adjacent
    free blocks are merged. Addresses of new segments ascend.
    """

    reserved: int = 0
    allocated: int = 0
    _free: dict[tuple[bool, int], list[tuple[int, int]]] = field(default_factory=dict)
    _blocks: dict[int, _Block] = field(default_factory=dict)
    _next_address: int = 1 << 40

    def allocate(self, size: int, stream: int) -> _Block:
        size = max(512, -(-size // 512) * 512)
        small = size <= MIB
        pool = (small, stream)
        block = self._best_fit(pool, size) or self._new_segment(pool, size)
        rest = block.size - size
        if rest >= 512 if small else rest > MIB:
            tail = _Block(block.address + size, rest, pool, before=block, after=block.after)
            if tail.after is not None:
                tail.after.before = tail
            block.after, block.size = tail, size
            self._blocks[tail.address] = tail
            self._put(tail)
        self.allocated += block.size
        return block

    def free(self, memory: _Block) -> None:
        if memory.free or self._blocks.get(memory.address) is not memory:
            raise ValueError(f"the block at {memory.address} is not allocated")
        self.allocated -= memory.size
        block = memory
        if block.before is not None and block.before.free:
            block = self._join(block.before, block)
        if block.after is not None and block.after.free:
            block = self._join(block, block.after)
        self._put(block)

    def _best_fit(self, pool: tuple[bool, int], size: int) -> _Block | None:
        free = self._free.get(pool, [])
        place = bisect_left(free, (size, 0))
        if place == len(free):
            return None
        block = self._blocks[free[place][1]]
        self._take(block)
        return block

    def _new_segment(self, pool: tuple[bool, int], size: int) -> _Block:
        if pool[0]:
            size = 2 * MIB
        elif size < 10 * MIB:
            size = 20 * MIB
        else:
            size = -(-size // (2 * MIB)) * 2 * MIB
        block = _Block(self._next_address, size, pool)
        self._next_address += size
        self._blocks[block.address] = block
        self.reserved += size
        return block

    def _put(self, block: _Block) -> None:
        block.free = True
        insort(self._free.setdefault(block.pool, []), (block.size, block.address))

    def _take(self, block: _Block) -> None:
        block.free = False
        free = self._free[block.pool]
        del free[bisect_left(free, (block.size, block.address))]

    def _join(self, low: _Block, high: _Block) -> _Block:
        for block in (low, high):
            if block.free:
                self._take(block)
        low.size += high.size
        low.after = high.after
        if low.after is not None:
            low.after.before = low
        del self._blocks[high.address]
        return low


class MusaPolicy:
    """The caching allocator of a musa device. Each recorded stream uses a stream with an empty cache."""

    def __init__(self, device: int = 0):
        from musa_runtime import _C

        self._raw_alloc, self._raw_delete = _C.raw_alloc, _C.raw_delete
        self._device = device
        self._streams: dict[int, Any] = {}
        torch.musa.init()
        torch.musa.synchronize(device)
        torch.musa.empty_cache()
        self._reserved, self._allocated = self._figures()

    def _figures(self) -> tuple[int, int]:
        stats = torch._C._accelerator_getDeviceStats(self._device)
        return tuple(stats[key]["all"]["current"] for key in ("reserved_bytes", "allocated_bytes"))

    @property
    def reserved(self) -> int:
        return self._figures()[0] - self._reserved

    @property
    def allocated(self) -> int:
        return self._figures()[1] - self._allocated

    def allocate(self, size: int, stream: int) -> int:
        if stream not in self._streams:
            self._streams[stream] = torch.musa.Stream(self._device)
        with torch.musa.device(self._device):
            return self._raw_alloc(size, self._streams[stream].musa_stream)

    def free(self, memory: int) -> None:
        self._raw_delete(memory)


# ---- replay


@dataclass(frozen=True)
class Result:
    """Peaks in bytes: reserved, allocated, and requested by the program."""

    peak_reserved: int
    peak_allocated: int
    peak_requested: int


def replay(recording: Recording, policy: Policy) -> Result:
    """Replays the recording; memory that is still allocated at the end is freed."""
    live: dict[int, Any] = {}
    sizes: dict[int, int] = {}
    requested = peak_requested = peak_reserved = peak_allocated = number = 0
    try:
        for event in recording.events:
            if event >= 0:
                live[number + 1] = policy.allocate(event, recording.streams[number])
                number += 1
                sizes[number] = event
                requested += event
                peak_requested = max(peak_requested, requested)
                peak_reserved = max(peak_reserved, policy.reserved)
                peak_allocated = max(peak_allocated, policy.allocated)
            else:
                policy.free(live.pop(-event))
                requested -= sizes.pop(-event)
    finally:
        for memory in live.values():
            policy.free(memory)
    return Result(peak_reserved, peak_allocated, peak_requested)


def row(name: str, ours: Result, theirs: Result) -> Row:
    return Row("fragmentation", name, ours.peak_reserved / MIB, theirs.peak_reserved / MIB, "MiB", BAR)


def measure_all(path: Path = RECORDING) -> Iterator[Row]:
    recording = Recording.load(path)
    yield row("GPT training, peak reserved", replay(recording, MusaPolicy()), replay(recording, CudaPolicy()))


# ---- a recording of a training


def train(device: torch.device, steps: int) -> None:
    """Trains a GPT with AdamW on batches of varying length and size, with evaluation in between."""
    from .training import CONTEXT, VOCABULARY, SmallGPT

    generator = torch.Generator().manual_seed(0)

    def batch(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        length = int(torch.randint(CONTEXT // 4, CONTEXT + 1, (1,), generator=generator))
        tokens = torch.randint(VOCABULARY, (rows, length + 1), generator=generator).to(device)
        return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()

    torch.manual_seed(0)
    model = SmallGPT(width=256, heads=4, layers=4).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        inputs, targets = batch(32)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        if step % 4 == 3:
            with torch.no_grad():
                for _ in range(2):
                    inputs, targets = batch(48)
                    torch.nn.functional.cross_entropy(model(inputs), targets).item()


def record(steps: int) -> Recording:
    memory = torch.musa.memory
    memory._record_memory_history(context=None, clear_history=True)
    try:
        train(torch.device("musa", 0), steps)
        torch.musa.synchronize()
        trace = memory._snapshot(0)["device_traces"][0]
    finally:
        memory._record_memory_history(enabled=None)
    return recording_of(
        trace,
        f"{steps} steps of benchmarks.fragmentation.train: SmallGPT (width 256, 4 layers), AdamW, sequences "
        f"of 16 to 64 tokens, evaluation every 4 steps; musa caching allocator, torch {torch.__version__}",
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.fragmentation", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    recorder = verbs.add_parser("record", help="train on the device and write its allocator's calls")
    recorder.add_argument("file", type=Path)
    recorder.add_argument("--steps", type=int, default=24)
    replayer = verbs.add_parser("replay", help="replay on musa's allocator and on the model of torch.cuda's")
    replayer.add_argument("file", type=Path, nargs="?", default=RECORDING)
    arguments = parser.parse_args(argv)
    if arguments.verb == "record":
        recording = record(arguments.steps)
        recording.save(arguments.file)
        print(
            f"{len(recording.streams)} allocations: {arguments.file}, {arguments.file.stat().st_size} bytes"
        )
        return 0
    recording = Recording.load(arguments.file)
    results = {"musa": replay(recording, MusaPolicy()), "torch.cuda": replay(recording, CudaPolicy())}
    for name, result in results.items():
        print(
            f"{name:<12} reserved {result.peak_reserved / MIB:8.2f} MiB   allocated "
            f"{result.peak_allocated / MIB:8.2f} MiB   requested {result.peak_requested / MIB:8.2f} MiB   "
            f"reserved/allocated {result.peak_reserved / result.peak_allocated:.3f}"
        )
    judged = row(arguments.file.name, *results.values())
    print(f"reserved, musa / torch.cuda: {judged.judged:.3f} (bar {BAR})")
    return 0 if judged.met else 1


if __name__ == "__main__":
    raise SystemExit(main())
