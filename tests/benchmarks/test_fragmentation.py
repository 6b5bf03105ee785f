# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The replay gives the known peaks, bad policies miss the bar, and musa's allocator meets it."""

import gc

import pytest

from benchmarks import fragmentation
from benchmarks.fragmentation import KIB, MIB, CudaPolicy, MusaPolicy, Recording, Result, recording_of, replay
from tests.harness.device import DEVICE

pytestmark = pytest.mark.once
needs_musa = pytest.mark.skipif(
    DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without musa's allocator and packages"
)


@pytest.fixture(params=["model", pytest.param("device", marks=needs_musa)])
def policy(request):
    if request.param == "model":
        return CudaPolicy()
    gc.collect()
    return MusaPolicy()


def on_one_stream(*events):
    return Recording(list(events), [0] * sum(event > 0 for event in events))


# Each with the peaks of reserved and allocated bytes, calculated by hand.
KNOWN = {
    "a small request takes a segment of 2 MiB": ([100], 2 * MIB, 512),
    "small requests share it": ([MIB, MIB], 2 * MIB, 2 * MIB),
    "a third does not fit": ([MIB, MIB, 512], 4 * MIB, 2 * MIB + 512),
    "freed memory is used again": ([MIB, -1, MIB, -2, MIB], 2 * MIB, MIB),
    "neighbours merge": ([512 * KIB] * 4 + [-2, -3, MIB], 2 * MIB, 2 * MIB),
    "blocks that are no neighbours do not": ([512 * KIB] * 4 + [-1, -3, MIB], 4 * MIB, 2 * MIB),
    "above 1 MiB a segment has 20 MiB": ([MIB + 1, 5 * MIB], 20 * MIB, 6 * MIB + 512),
    "from 10 MiB on it has the size": ([10 * MIB, 12 * MIB], 22 * MIB, 22 * MIB),
    # A remainder too small to be split off counts as allocated.
    "a remainder up to 1 MiB stays": ([10 * MIB, -1, 9 * MIB + 512 * KIB], 10 * MIB, 10 * MIB),
    # The free blocks are of 6 and 4 MiB (and 2 at the end): 4 goes into the second, so 6 still fits.
    "the best fit is taken": (
        [6 * MIB, 2 * MIB, 4 * MIB, 2 * MIB, 6 * MIB, -1, -3, 4 * MIB, 6 * MIB],
        20 * MIB,
        20 * MIB,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_replay_is_exact(policy, name):
    events, reserved, allocated = KNOWN[name]
    result = replay(on_one_stream(*events), policy)
    assert (result.peak_reserved, result.peak_allocated) == (reserved, allocated)


def test_each_stream_has_its_own_memory(policy):
    same = replay(Recording([MIB, -1, MIB], [0, 0]), policy)
    assert same.peak_reserved == 2 * MIB
    other = CudaPolicy() if isinstance(policy, CudaPolicy) else MusaPolicy()
    assert replay(Recording([MIB, -1, MIB], [0, 1]), other).peak_reserved == 4 * MIB


def test_everything_is_freed_at_the_end(policy):
    result = replay(on_one_stream(3 * MIB, 100, -1, 700), policy)
    assert policy.allocated == 0
    assert result.peak_requested == 3 * MIB + 100


def test_the_model_refuses_a_second_free():
    policy = CudaPolicy()
    block = policy.allocate(100, 0)
    policy.free(block)
    with pytest.raises(ValueError, match="not allocated"):
        policy.free(block)


class Wasteful(CudaPolicy):
    """Never searches for free memory."""

    def _best_fit(self, pool, size):
        return None


class WorstFit(CudaPolicy):
    """Takes the largest free block."""

    def _best_fit(self, pool, size):
        free = self._free.get(pool, [])
        if not free or free[-1][0] < size:
            return None
        block = self._blocks[free[-1][1]]
        self._take(block)
        return block


@pytest.mark.parametrize("bad", [Wasteful, WorstFit])
def test_a_bad_policy_misses_the_bar(bad):
    recording = Recording.load(fragmentation.RECORDING)
    row = fragmentation.row("bad", replay(recording, bad()), replay(recording, CudaPolicy()))
    assert not row.met


@needs_musa
def test_musa_reserves_no_more_than_torch_cuda_would():
    (row,) = fragmentation.measure_all()
    assert row.met, f"{row.value} MiB, torch.cuda {row.baseline} MiB"


def test_the_recording_is_of_a_training():
    recording = Recording.load(fragmentation.RECORDING)
    sizes = [event for event in recording.events if event > 0]
    assert len(sizes) == len(recording.streams) > 10_000
    assert max(sizes) > MIB > min(sizes) and len(set(sizes)) > 100
    freed = [event for event in recording.events if event < 0]
    assert len(set(freed)) == len(freed) > 0.9 * len(sizes)


def test_a_recording_survives_a_file(tmp_path):
    recording = Recording([5, 6, -1], [0, 1], "what it is")
    for name in ("a", "b"):
        recording.save(tmp_path / name)
    assert Recording.load(tmp_path / "a") == recording
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_recording_is_made_from_a_trace():
    def entry(action, addr, size=0, stream=7):
        return {"action": action, "addr": addr, "size": size, "stream": stream}

    trace = [
        entry("free_completed", 50),  # allocated before the recording
        entry("segment_alloc", 100, 2048),
        entry("alloc", 100, 10),
        entry("alloc", 200, 20, stream=9),
        entry("free_requested", 100),
        entry("alloc", 300, 30),
        entry("free_completed", 100),
        entry("alloc", 100, 40),
        entry("free_completed", 100),
    ]
    assert recording_of(trace) == Recording([10, 20, 30, -1, 40, -4], [0, 1, 0, 0])


def test_the_command_judges(capsys, monkeypatch, tmp_path):
    Recording([MIB, -1, MIB], [0, 0]).save(tmp_path / "recording")
    monkeypatch.setattr(fragmentation, "MusaPolicy", CudaPolicy)
    assert fragmentation.main(["replay", str(tmp_path / "recording")]) == 0
    assert "1.000" in capsys.readouterr().out
    monkeypatch.setattr(fragmentation, "MusaPolicy", Wasteful)
    assert fragmentation.main(["replay", str(tmp_path / "recording")]) == 1
    assert fragmentation.row("x", Result(3, 1, 1), Result(2, 1, 1)).judged == 1.5
