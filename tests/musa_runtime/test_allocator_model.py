# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compares the caching allocator with a model after each of many random steps.

The statistics equal a recomputation from the snapshot, the blocks fill their segments, and the allocated
blocks are those that the program holds.
"""

from __future__ import annotations

import copy
import gc
import itertools
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
import torch

from tests.harness.subprocesses import run_python

KIB, MIB = 1 << 10, 1 << 20
POOLS = {"small": "small_pool", "large": "large_pool"}
SIZES = [1, 511, 512, 513, 5000, 40 * KIB, 700 * KIB, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 21 * MIB]


def recompute(segments: list[dict]) -> Counter:
    """Computes the statistics that have a current value from the segments of one device."""
    stats: Counter = Counter()
    for segment in segments:
        found = Counter({"segment": 1, "reserved_bytes": segment["total_size"]})
        blocks = segment["blocks"]
        for block in blocks:
            if block["state"] == "active_allocated":
                found.update(allocation=1, allocated_bytes=block["size"])
            if block["state"] != "inactive":
                found.update(active=1, active_bytes=block["size"], requested_bytes=block["requested_size"])
            elif len(blocks) > 1:
                found.update(inactive_split=1, inactive_split_bytes=block["size"])
        for name, value in found.items():
            stats[f"{name}.all"] += value
            stats[f"{name}.{POOLS[segment['segment_type']]}"] += value
    return stats


QUANTITIES = (
    *("allocation", "allocated_bytes", "segment", "reserved_bytes", "active", "active_bytes"),
    *("inactive_split", "inactive_split_bytes", "requested_bytes"),
)


def objections_to_stats(segments: list[dict], stats: dict) -> list[str]:
    expected = recompute(segments)
    result = []
    for quantity, pool in itertools.product(QUANTITIES, ("all", "small_pool", "large_pool")):
        key = f"{quantity}.{pool}"
        current, peak = stats[f"{key}.current"], stats[f"{key}.peak"]
        if current != expected[key]:
            result.append(f"{key} is {current}, but the blocks make {expected[key]}")
        if peak < current:
            result.append(f"the peak of {key} is {peak}, below the present {current}")
    return result


def objections_to_segments(segments: list[dict]) -> list[str]:
    result = []
    ends = sorted((s["device"], s["address"], s["address"] + s["total_size"]) for s in segments)
    for left, right in itertools.pairwise(ends):
        if left[0] == right[0] and left[2] > right[1]:
            result.append(f"the segments {left} and {right} overlap")
    for segment in segments:
        blocks, where = segment["blocks"], f"segment {segment['address']:#x}"
        address = segment["address"]
        for block in blocks:
            if block["address"] != address or block["size"] <= 0 or block["size"] % 512:
                result.append(f"{where}: a block of {block['size']} bytes at {block['address']:#x}")
            if block["requested_size"] > block["size"]:
                result.append(f"{where}: {block['requested_size']} bytes in a block of {block['size']}")
            address += block["size"]
        if address != segment["address"] + segment["total_size"]:
            result.append(f"{where}: the blocks end at {address:#x}")
        for left, right in itertools.pairwise(blocks):
            if left["state"] == right["state"] == "inactive":
                result.append(f"{where}: free neighbours at {left['address']:#x} did not merge")
        for key, states in (
            ("allocated_size", ("active_allocated",)),
            ("active_size", ("active_allocated", "active_awaiting_free")),
        ):
            if segment[key] != sum(b["size"] for b in blocks if b["state"] in states):
                result.append(f"{where}: {key} is {segment[key]}")
    return result


def objections_to_blocks(segments: list[dict], held: dict[int, int]) -> list[str]:
    """Compares the blocks with ``held``, the sizes that the program requested, by address."""
    live = {
        block["address"]: block["requested_size"]
        for segment in segments
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }
    result = [
        f"{address:#x} is held, but its block is not allocated" for address in held.keys() - live.keys()
    ]
    result += [f"no tensor holds the block at {address:#x}" for address in live.keys() - held.keys()]
    result += [
        f"{address:#x}: {held[address]} bytes were requested, not {live[address]}"
        for address in held.keys() & live.keys()
        if held[address] != live[address]
    ]
    return result


@dataclass
class Program:
    """Performs random work on every device, and records the tensors that it holds."""

    musa: object
    seed: int
    tensors: list[torch.Tensor] = field(default_factory=list)
    others: dict[int, int] = field(default_factory=dict)  # sizes of earlier allocations, by address
    ooms: int = 0

    def __post_init__(self):
        self.random = random.Random(self.seed)
        self.streams = {
            device: [self.musa.default_stream(device), *(self.musa.Stream(device) for _ in range(2))]
            for device in range(self.musa.device_count())
        }
        self.pinned = torch.empty(4 * KIB, dtype=torch.uint8).pin_memory()
        self.counters = {}
        for segment in self.musa.memory_snapshot(include_traces=False):
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    self.others[block["address"]] = block["requested_size"]

    def allocate(self):
        device = self.random.randrange(len(self.streams))
        size = self.random.choice(SIZES) + self.random.randrange(0, 2000, 250)
        with self.musa.stream(self.random.choice(self.streams[device])):
            try:
                self.tensors.append(torch.empty(size, dtype=torch.uint8, device=f"musa:{device}"))
            except torch.OutOfMemoryError:
                self.ooms += 1

    def free(self):
        if self.tensors:
            self.tensors.pop(self.random.randrange(len(self.tensors)))

    def use_on_another_stream(self):
        if self.tensors:
            tensor = self.random.choice(self.tensors)
            stream = self.random.choice(self.streams[tensor.device.index])
            with self.musa.stream(stream):
                # Enqueued, so that with an asynchronous device a free has to wait for it.
                part = tensor[: self.pinned.numel()]
                part.copy_(self.pinned[: part.numel()], non_blocking=True)
            tensor.record_stream(stream)

    def limit(self):
        device = self.random.randrange(len(self.streams))
        total = self.musa.mem_get_info(device)[1]
        room = self.random.choice([16 * MIB, 64 * MIB, 256 * MIB])
        fraction = self.random.choice([1.0, (self.musa.memory_reserved(device) + room) / total])
        self.musa.set_per_process_memory_fraction(min(1.0, fraction), device)

    def empty_cache(self):
        self.musa.empty_cache()

    def synchronize(self):
        self.musa.synchronize(self.random.randrange(len(self.streams)))

    def step(self) -> str:
        kinds = {
            self.allocate: 45,
            self.free: 35,
            self.use_on_another_stream: 10,
            self.limit: 2,
            self.empty_cache: 4,
            self.synchronize: 4,
        }
        if len(self.tensors) > 60:
            kinds[self.free] = 120
        action = self.random.choices(list(kinds), list(kinds.values()))[0]
        action()
        return action.__name__

    def held(self) -> dict[int, int]:
        return self.others | {tensor.data_ptr(): tensor.numel() for tensor in self.tensors}

    def objections(self) -> list[str]:
        segments = self.musa.memory_snapshot(include_traces=False)
        result = objections_to_segments(segments) + objections_to_blocks(segments, self.held())
        ooms = 0
        for device in range(len(self.streams)):
            stats = self.musa.memory_stats(device)
            here = [segment for segment in segments if segment["device"] == device]
            result += [f"musa:{device}: {text}" for text in objections_to_stats(here, stats)]
            ooms += stats["num_ooms"]
            if any(segment["is_expandable"] for segment in here):
                self.counters.pop(device, None)
                continue  # pages of one segment are mapped and unmapped by separate calls
            surplus = stats["num_device_alloc"] - stats["num_device_free"] - len(here)
            if self.counters.setdefault(device, surplus) != surplus:
                result.append(f"musa:{device}: the counts of driver calls do not match {len(here)} segments")
        if self.counters.setdefault("ooms", ooms - self.ooms) != ooms - self.ooms:
            result.append(f"num_ooms does not count {self.ooms} errors")
        return result

    def close(self):
        self.tensors.clear()
        for device in self.streams:
            self.musa.set_per_process_memory_fraction(1.0, device)
            self.musa.synchronize(device)
        self.musa.empty_cache()


@pytest.fixture
def musa_alone(musa):
    gc.collect()
    yield musa
    for device in range(musa.device_count()):
        musa.set_per_process_memory_fraction(1.0, device)


def _run(program: Program, steps: int) -> Counter:
    done: Counter = Counter()
    try:
        for number in range(steps):
            name = program.step()
            done[name] += 1
            objections = program.objections()
            assert not objections, f"seed {program.seed}, step {number} ({name}):\n" + "\n".join(objections)
    finally:
        program.close()
    return done


@pytest.mark.parametrize("seed", range(3))
def test_statistics_equal_a_recomputation_after_every_step(musa_alone, seed, full):
    program = Program(musa_alone, seed)
    done = _run(program, 4000 if full else 250)
    # The sequences contain each kind of step, so that the comparison is not vacuous.
    assert done["allocate"] > 50 and done["free"] > 30 and done["use_on_another_stream"] > 5
    assert done["empty_cache"] > 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3, 20))
def test_many_more_sequences(musa_alone, seed):
    _run(Program(musa_alone, seed), 1000)


SETTINGS = [
    "max_split_size_mb:21",
    "garbage_collection_threshold:0.5",
    "roundup_power2_divisions:4",
    "expandable_segments:True",
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_statistics_are_right_with_other_settings(musa, settings):
    arguments = (
        "-m",
        "pytest",
        "-q",
        __file__,
        "-k",
        test_statistics_equal_a_recomputation_after_every_step.__name__,
    )
    done = run_python(*arguments, PYTORCH_ALLOC_CONF=settings)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout


def test_memory_in_use_on_another_stream_is_counted_as_active(musa_alone):
    side = musa_alone.Stream()
    musa_alone.synchronize()
    musa_alone.empty_cache()
    pinned = torch.empty(64 * MIB, dtype=torch.uint8).pin_memory()
    tensor = torch.empty(64 * MIB, dtype=torch.uint8, device="musa")
    address = tensor.data_ptr()
    with musa_alone.stream(side):
        tensor.copy_(pinned, non_blocking=True)
    tensor.record_stream(side)
    del tensor
    segments = musa_alone.memory_snapshot(include_traces=False)
    (block,) = [b for s in segments for b in s["blocks"] if b["address"] == address]
    here = [segment for segment in segments if segment["device"] == 0]
    assert not objections_to_stats(here, musa_alone.memory_stats(0))
    # The block stays pending until the allocator next polls its events, even if the copy has finished.
    assert block["state"] == "active_awaiting_free"
    musa_alone.synchronize()
    musa_alone.empty_cache()
    assert address not in {s["address"] for s in musa_alone.memory_snapshot(include_traces=False)}


# ---- the comparison detects errors


def _sample(musa):
    program = Program(musa, 1)
    for _ in range(60):
        program.allocate()
        if len(program.tensors) > 20:
            program.free()
    segments = [s for s in musa.memory_snapshot(include_traces=False) if s["device"] == 0]
    return program, segments, musa.memory_stats(0)


def _block(segments, state, among=1):
    return next(
        (segment, index)
        for segment in segments
        for index, block in enumerate(segment["blocks"])
        if block["state"] == state and len(segment["blocks"]) > among
    )


def _grow_a_block(segments, stats):
    segment, index = _block(segments, "active_allocated")
    segment["blocks"][index]["size"] += 512


def _free_a_block(segments, stats):
    segment, index = _block(segments, "active_allocated")
    segment["blocks"][index]["state"] = "inactive"


def _split_a_free_block(segments, stats):
    segment, index = _block(segments, "inactive")
    block = segment["blocks"][index]
    tail = dict(block, address=block["address"] + 512, size=block["size"] - 512)
    block["size"] = 512
    segment["blocks"].insert(index + 1, tail)


def _lose_a_segment(segments, stats):
    segments.pop()


def _overlap(segments, stats):
    segments[1]["address"] = segments[0]["address"] + 512


def _miscount_requests(segments, stats):
    segment, index = _block(segments, "active_allocated")
    segment["blocks"][index]["requested_size"] -= 1


def _miscount_a_statistic(segments, stats):
    stats["inactive_split_bytes.large_pool.current"] += 512


def _forget_a_peak(segments, stats):
    stats["reserved_bytes.all.peak"] = stats["reserved_bytes.all.current"] - 1


FAULTS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)]
FAULTS = FAULTS[FAULTS.index(_grow_a_block) :]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_the_comparison_detects(musa_alone, fault):
    program, segments, stats = _sample(musa_alone)
    try:
        assert not objections_to_segments(segments) + objections_to_stats(segments, stats)
        segments, stats = copy.deepcopy(segments), dict(stats)
        fault(segments, stats)
        assert objections_to_segments(segments) + objections_to_stats(segments, stats)
    finally:
        program.close()


def test_the_comparison_detects_memory_without_a_tensor_and_tensors_without_memory(musa_alone):
    program, _, _ = _sample(musa_alone)
    try:
        segments, held = musa_alone.memory_snapshot(include_traces=False), program.held()
        assert not objections_to_blocks(segments, held)
        address = program.tensors[0].data_ptr()
        without = {key: value for key, value in held.items() if key != address}
        assert "no tensor holds" in objections_to_blocks(segments, without)[0]
        assert "is not allocated" in objections_to_blocks(segments, held | {1: 1})[0]
        assert "requested" in objections_to_blocks(segments, held | {address: 7})[0]
    finally:
        program.close()
