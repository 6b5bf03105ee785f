# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Expandable segments: memory grows in place, free pages are released, and fragmentation is avoided."""

import gc
import itertools
import random
import threading

import pytest
import torch

from musa_runtime import _C
from tests.harness.emulator import MEMORY_ALLOCATION
from tests.harness.parts import sample
from tests.harness.subprocesses import run_code, run_forked

KIB, MIB = 1 << 10, 1 << 20
PAGE = 20 * MIB  # of the large pool
SMALL_PAGE = 2 * MIB


def _set(text):
    torch._C._accelerator_setAllocatorSettings(text)


def _give_back(musa):
    gc.collect()
    musa.synchronize()
    musa.empty_cache()


@pytest.fixture
def expandable(musa):
    """torch.musa with expandable segments, on a stream of its own: tensors that live to the end of the
    process keep segments of the default stream, in whose free pages those of a test would lie."""
    _give_back(musa)
    _set("expandable_segments:True")
    try:
        with musa.stream(musa.Stream()):
            yield musa
    finally:
        _set("expandable_segments:False")
        _give_back(musa)


def _block(size, device="musa"):
    return torch.empty(size, dtype=torch.uint8, device=device)


def _stat(name, device=None):
    return torch.accelerator.memory_stats(device)[name]


class _Since:
    """Statistics relative to the time of construction, because other tests' tensors may be allocated."""

    def __init__(self, device=None):
        self._device = device
        self._before = self._figures()

    def _figures(self):
        names = ("segment.all.current", "reserved_bytes.all.current", "inactive_split_bytes.all.current")
        return [_stat(name, self._device) for name in names]

    def _change(self, index):
        return self._figures()[index] - self._before[index]

    @property
    def segments(self):
        return self._change(0)

    @property
    def reserved(self):
        return self._change(1)

    @property
    def split(self):
        return self._change(2)


def test_memory_grows_in_place(expandable):
    since = _Since()
    x = _block(30 * MIB)
    assert since.reserved == 2 * PAGE
    y = _block(50 * MIB)
    # y uses the 10 MiB after x and two new pages.
    assert y.data_ptr() == x.data_ptr() + 30 * MIB
    assert since.reserved == 4 * PAGE
    assert since.segments == 1
    assert since.split == 0
    x.fill_(1)
    y.fill_(2)
    assert x.cpu().eq(1).all()
    assert y.cpu().eq(2).all()


def test_a_remainder_of_any_size_is_used(expandable):
    since = _Since()
    blocks = [_block(3 * MIB + 512) for _ in range(40)]
    pointers = [block.data_ptr() for block in blocks]
    assert all(right - left == 3 * MIB + 512 for left, right in itertools.pairwise(pointers))
    assert since.reserved == -(-40 * (3 * MIB + 512) // PAGE) * PAGE
    assert since.segments == 1


def test_small_memory_grows_by_small_pages(expandable):
    since = _Since()
    blocks = [_block(300 * KIB) for _ in range(50)]
    # Free memory in earlier segments of the small pool may have served a few requests.
    assert 0 < since.reserved <= -(-50 * 300 * KIB // SMALL_PAGE) * SMALL_PAGE
    assert since.segments <= 1
    for number, block in enumerate(blocks):
        block.fill_(number)
    assert all(block.cpu().eq(number).all() for number, block in enumerate(blocks))


def test_emptying_the_cache_gives_free_pages_back_from_the_middle(expandable, emulator):
    since = _Since()
    free_before, _ = expandable.mem_get_info()
    blocks = [torch.full((PAGE,), n, dtype=torch.uint8, device="musa") for n in range(5)]
    expandable.synchronize()
    hole = blocks[2].data_ptr()
    assert since.segments == 1
    assert expandable.mem_get_info()[0] == free_before - 5 * PAGE
    blocks[2] = None
    expandable.empty_cache()
    assert expandable.mem_get_info()[0] == free_before - 4 * PAGE
    assert since.reserved == 4 * PAGE
    assert since.segments == 2, "mapped memory is not in two separate ranges"
    assert since.split == 0
    # The hole is filled before the segment grows at its end.
    blocks[2] = torch.full((PAGE,), 2, dtype=torch.uint8, device="musa")
    assert blocks[2].data_ptr() == hole
    assert since.segments == 1
    assert all(block.cpu().eq(n).all() for n, block in enumerate(blocks))
    blocks.clear()
    expandable.empty_cache()
    assert expandable.mem_get_info()[0] == free_before
    assert (since.segments, since.reserved, since.split) == (0, 0, 0)


def test_partly_used_pages_stay_mapped(expandable):
    since = _Since()
    blocks = [_block(12 * MIB) for _ in range(10)]  # six pages; every second block touches two of them
    kept = {0: blocks[0].fill_(7), 5: blocks[5].fill_(8)}
    expandable.synchronize()
    pages = {
        page
        for block in kept.values()
        for page in range(
            (block.data_ptr() - blocks[0].data_ptr()) // PAGE,
            (block.data_ptr() - blocks[0].data_ptr() + 12 * MIB - 1) // PAGE + 1,
        )
    }
    blocks.clear()
    expandable.empty_cache()
    assert since.reserved == len(pages) * PAGE
    assert since.split == len(pages) * PAGE - 24 * MIB
    assert kept[0].cpu().eq(7).all()
    assert kept[5].cpu().eq(8).all()
    kept.clear()
    expandable.empty_cache()
    assert since.reserved == 0


def test_the_block_before_a_new_page_is_found_and_merged_when_freed(expandable):
    since = _Since()
    first = _block(PAGE)  # fills its page
    second = _block(PAGE)
    assert second.data_ptr() == first.data_ptr() + PAGE
    start = first.data_ptr()
    del first, second
    both = _block(2 * PAGE)
    assert both.data_ptr() == start
    assert since.reserved == 2 * PAGE


def test_a_hole_and_the_free_memory_on_both_sides_serve_one_request(expandable):
    since = _Since()
    left, middle, right = _block(PAGE + 4 * MIB), _block(2 * PAGE), _block(PAGE + 4 * MIB)
    start = left.data_ptr()
    end = _block(12 * MIB)  # fills the page after it
    assert end.data_ptr() == right.data_ptr() + right.numel()
    assert since.reserved == 5 * PAGE
    del middle
    expandable.empty_cache()
    assert since.reserved == 4 * PAGE, "the whole page in the middle was not released"
    del left, right
    x = _block(4 * PAGE + 8 * MIB)
    assert x.data_ptr() == start
    assert since.reserved == 5 * PAGE
    assert since.segments == 1
    del x, end


_GROWING = """
import torch
kept = []
try:
    for step in range(10):
        big = torch.empty((90 + 10 * step) << 20, dtype=torch.uint8, device="musa")
        big[::4096] = step
        del big
        # Allocated in the memory just freed, which it splits permanently.
        kept.append(torch.full((2 << 20,), step, dtype=torch.uint8, device="musa"))
    print("served", all(bool(x.cpu().eq(n).all()) for n, x in enumerate(kept)))
except torch.OutOfMemoryError as error:
    print("out of memory", "expandable_segments:True" in str(error))
"""


@pytest.mark.parametrize(("setting", "outcome"), [("True", "served True"), ("False", "out of memory True")])
def test_requests_that_grow_do_not_fragment_the_memory(musa, setting, outcome):
    out = run_code(
        _GROWING, MUSA_EMULATOR_MEMORY_LIMIT="256M", PYTORCH_ALLOC_CONF=f"expandable_segments:{setting}"
    )
    assert out.strip() == outcome


def test_pages_of_another_stream_are_released_for_a_request(expandable):
    total = expandable.mem_get_info()[1]
    side = expandable.Stream()
    since = _Since()
    expandable.set_per_process_memory_fraction(
        min(1.0, (_stat("reserved_bytes.all.current") + 6 * PAGE) / total)
    )
    try:
        with expandable.stream(side):
            kept = torch.full((5 * MIB,), 3, dtype=torch.uint8, device="musa")
            cached = _block(5 * PAGE - 5 * MIB)
            del cached
        assert since.reserved == 5 * PAGE
        retries = _stat("num_alloc_retries")
        x = _block(4 * PAGE)
        assert _stat("num_alloc_retries") > retries
        assert since.reserved <= 6 * PAGE
        side.synchronize()
        assert kept.cpu().eq(3).all()
        with pytest.raises(torch.OutOfMemoryError, match="limited to"):
            _block(3 * PAGE)
        del x, kept
    finally:
        expandable.set_per_process_memory_fraction(1.0)


def test_a_refusal_by_the_driver_is_retried_after_emptying_the_cache(expandable, emulator):
    cached = _block(2 * PAGE)
    del cached
    retries = _stat("num_alloc_retries")
    emulator.fail_nth("muMemCreate", 2, MEMORY_ALLOCATION)
    x = _block(5 * PAGE)
    assert _stat("num_alloc_retries") == retries + 1
    assert x.fill_(1).cpu().eq(1).all()


_GARBAGE = """
import torch
def block(pages):
    return torch.empty(pages * (20 << 20), dtype=torch.uint8, device="musa")
old = [block(1) for _ in range(8)]
kept = old[3].fill_(3)
old.clear()
before = torch.musa.memory_reserved() >> 20
with torch.musa.stream(torch.musa.Stream()):
    x = block(1)
print(before, torch.musa.memory_reserved() >> 20, bool(kept.cpu().eq(3).all()))
"""


def test_garbage_collection_unmaps_old_pages(musa):
    # Runs in a separate process, because a threshold cannot be reset.
    out = run_code(
        _GARBAGE,
        MUSA_EMULATOR_MEMORY_LIMIT="400M",
        PYTORCH_ALLOC_CONF="expandable_segments:True,garbage_collection_threshold:0.2",
    )
    before, after, intact = out.split()
    assert int(before) == 160
    assert 40 <= int(after) < 160
    assert intact == "True"


def test_each_stream_has_its_own_segments(expandable):
    first, second = expandable.Stream(), expandable.Stream()
    since = _Since()
    with expandable.stream(first):
        x = _block(5 * MIB)
        pointer = x.data_ptr()
        del x
    with expandable.stream(second):
        y = _block(5 * MIB)
    assert abs(y.data_ptr() - pointer) >= PAGE
    assert since.segments == 2
    with expandable.stream(first):
        z = _block(5 * MIB)
    assert z.data_ptr() == pointer
    del y, z


def test_record_stream_delays_reuse(expandable):
    side = expandable.Stream()
    x = torch.full((MIB,), 5.0, device="musa")
    side.wait_stream(expandable.current_stream())
    with expandable.stream(side):
        y = x * 2
        x.record_stream(side)
        del x
    z = torch.full((MIB,), -1.0, device="musa")
    expandable.empty_cache()
    side.synchronize()
    assert y.cpu().eq(10).all()
    assert z.cpu().eq(-1).all()


def test_each_device_has_its_own_segments(two_devices, expandable):
    since = [_Since(0), _Since(1)]
    x = torch.arange(6 * MIB, device="musa:1")
    assert since[0].reserved == 0
    assert since[1].reserved == 3 * PAGE
    y = x.to("musa:0")
    assert torch.equal(x.cpu(), y.cpu())
    del x, y
    _give_back(two_devices)
    assert [figures.reserved for figures in since] == [0, 0]


def test_the_setting_may_change_at_any_time(expandable, emulator):
    since = _Since()
    x = _block(PAGE)
    _set("expandable_segments:False")
    calls = emulator.calls("musaMalloc")
    y = _block(PAGE)
    assert emulator.calls("musaMalloc") == calls + 1
    pointer = x.data_ptr()
    del x
    # Mapped memory is still used, but the segment does not grow.
    x = _block(PAGE)
    assert x.data_ptr() == pointer
    _set("expandable_segments:True")
    z = _block(PAGE)
    assert emulator.calls("musaMalloc") == calls + 1
    assert z.data_ptr() == pointer + PAGE
    _set("expandable_segments:False")
    del x, y, z
    _give_back(expandable)
    assert since.reserved == 0


def test_figures_hold_after_every_step(expandable, emulator):
    """Random requests, also after free pages were unmapped: no overlap, loss or miscount."""
    generator = random.Random(3)
    since = _Since()
    live_before = emulator.live_bytes(0)
    live = {}
    sizes = [1, 700, 300 * KIB, MIB, 3 * MIB, 11 * MIB, 25 * MIB, 70 * MIB]
    for step in range(300):
        if live and generator.random() < 0.5:
            tensor, mark = live.pop(generator.choice(list(live)))
            assert tensor[0].item() == mark
            assert tensor[-1].item() == mark
            del tensor
        else:
            tensor = _block(generator.choice(sizes))
            tensor[0] = tensor[-1] = step % 251
            live[step] = (tensor, step % 251)
            del tensor
        if step % 10 == 9:
            expandable.empty_cache()
        assert emulator.live_bytes(0) - live_before == since.reserved
        assert expandable.memory_allocated() <= expandable.memory_reserved()
        spans = sorted((t.data_ptr(), t.data_ptr() + t.numel()) for t, _ in live.values())
        assert all(left[1] <= right[0] for left, right in itertools.pairwise(spans)), "two tensors overlap"
    live.clear()
    _give_back(expandable)
    assert (since.segments, since.reserved, since.split) == (0, 0, 0)


def test_threads_may_allocate_while_others_empty_the_cache(expandable):
    since = _Since()
    failures = []

    def work(seed):
        generator = random.Random(seed)
        try:
            with expandable.stream(expandable.Stream()):
                for _ in range(60):
                    x = torch.full((generator.choice([1000, MIB, 8 * MIB]),), float(seed), device="musa")
                    if generator.random() < 0.2:
                        expandable.empty_cache()
                    if not x.cpu().eq(seed).all():
                        failures.append(f"thread {seed} read another's values")
        except Exception as error:  # noqa: BLE001 - the test's main thread reports it
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    _give_back(expandable)
    assert since.reserved == 0


def test_sharing_with_another_process_is_refused_by_name(expandable):
    x = _block(PAGE)
    with pytest.raises(RuntimeError, match=r"(?s)expandable segment.*expandable_segments:False"):
        _C.base_allocation(x.data_ptr())
    _set("expandable_segments:False")
    y = _block(30 * MIB)
    assert _C.base_allocation(y.data_ptr()) == (y.data_ptr(), 30 * MIB)


_TRAINING = """
import torch
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(),
                             torch.nn.Linear(288, 5)).to("musa")
optimizer = torch.optim.Adam(module.parameters())
x, y = torch.randn(16, 1, 8, 8, device="musa"), torch.randint(0, 5, (16,), device="musa")
for _ in range(5):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(module(x), y)
    loss.backward()
    optimizer.step()
    print(loss.item())
    torch.musa.empty_cache()
"""


@pytest.mark.once
@pytest.mark.parametrize(
    "mode, memory", sample(itertools.product(("inline", "async", "lazy"), ("shared", "strict")), 3)
)
def test_training_is_the_same_with_and_without_expandable_segments(musa, mode, memory):
    losses = [
        run_code(
            _TRAINING,
            PYTORCH_ALLOC_CONF=f"expandable_segments:{setting}",
            MUSA_EMULATOR_MEMORY=memory,
            MUSA_EMULATOR_MODE=mode,
            TORCH_MUSA_FALLBACK="allow",
        ).split()
        for setting in ("True", "False")
    ]
    assert len(losses[0]) == 5
    assert losses[0] == losses[1]


@pytest.mark.once
def test_a_device_without_virtual_memory_says_so_once_and_works(musa):
    done = run_forked(
        "import torch\n"
        "x = [torch.ones(n << 20, device='musa') for n in (1, 10, 20)]\n"
        "print(sum(float(y.sum()) for y in x) == 31 << 20)",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
        MUSA_EMULATOR_VIRTUAL_MEMORY="0",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"
    assert done.stderr.count("has no virtual memory management") == 1, done.stderr
    assert "take expandable_segments out of PYTORCH_ALLOC_CONF" in done.stderr


@pytest.mark.once
def test_without_free_addresses_memory_is_allocated_in_ordinary_segments(expandable, emulator):
    emulator.fail_next("muMemAddressReserve", MEMORY_ALLOCATION)
    calls = emulator.calls("musaMalloc")
    x = torch.ones(PAGE, dtype=torch.uint8, device="musa")
    assert emulator.calls("musaMalloc") == calls + 1
    assert x.cpu().eq(1).all()
