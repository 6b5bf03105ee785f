# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The allocator's settings: refused values, their sources, and the documented effect of each."""

import contextlib
import gc
import json

import pytest
import torch

from tests.harness.subprocesses import run_code, run_module

MIB = 1 << 20
# torch resets the settings that are not named here.
DEFAULTS = (
    "large_segment_size_mb:20,max_non_split_rounding_mb:20,expandable_segments:False,"
    "pinned_use_background_threads:False,per_process_memory_fraction:1"
)


@pytest.fixture
def allocator(musa):
    """torch.musa with an empty cache; restores the default settings afterwards."""

    def settle():
        gc.collect()
        musa.synchronize()
        musa.empty_cache()

    settle()
    yield musa
    settle()
    musa.memory._set_allocator_settings(DEFAULTS)


@contextlib.contextmanager
def settings(musa, text):
    musa.memory._set_allocator_settings(text)
    yield


def _block(size):
    return torch.empty(int(size), dtype=torch.uint8, device="musa")


def _stat(name):
    return torch.accelerator.memory_stats()[name]


MALFORMED = [
    ("foo:1", "'foo' is no setting"),
    ("max_split_sise_mb:64", "'max_split_sise_mb' is no setting"),
    ("max_split_size_mb", "'max_split_size_mb' has no value"),
    ("max_split_size_mb:", "has no value"),
    (":64", "has no key"),
    ("max_split_size_mb:64,,backend:native", "',' is where a setting should be"),
    (",max_split_size_mb:64", "',' is where a setting should be"),
    ("max_split_size_mb:64,,", "',' is where a setting should be"),
    ("max_split_size_mb:abc", "'max_split_size_mb' must be a whole number of MiB"),
    ("max_split_size_mb:64.5", "'max_split_size_mb' must be a whole number of MiB"),
    ("max_split_size_mb:-1", "'max_split_size_mb' must be"),
    ("max_split_size_mb:19", "'max_split_size_mb' must be a whole number of MiB, 20 or more"),
    ("max_split_size_mb:99999999999999999999", "'max_split_size_mb' must be"),
    ("max_non_split_rounding_mb:3", "'max_non_split_rounding_mb' must be"),
    ("large_segment_size_mb:10", "'large_segment_size_mb' must be a whole number of MiB, 11 or more"),
    ("large_segment_size_mb:40,max_split_size_mb:30", "'max_split_size_mb' must be .* 40 or more"),
    ("garbage_collection_threshold:0", "'garbage_collection_threshold' must be a number between 0 and 1"),
    ("garbage_collection_threshold:1.0", "'garbage_collection_threshold' must be"),
    ("garbage_collection_threshold:0.8x", "'garbage_collection_threshold' must be"),
    ("per_process_memory_fraction:1.1", "'per_process_memory_fraction' must be a number from 0 to 1"),
    ("per_process_memory_fraction:nan", "'per_process_memory_fraction' must be"),
    ("roundup_power2_divisions:3", "'roundup_power2_divisions' must be a power of two"),
    ("roundup_power2_divisions:[256:1", "'roundup_power2_divisions' has a list without"),
    ("roundup_power2_divisions:[]", "'roundup_power2_divisions' must be a list"),
    ("roundup_power2_divisions:[300:1]", "'roundup_power2_divisions' must list pairs"),
    ("roundup_power2_divisions:[256:3]", "'roundup_power2_divisions' must list pairs"),
    ("roundup_power2_divisions:[256]", "'roundup_power2_divisions' must list pairs"),
    ("expandable_segments:true", "'expandable_segments' must be True or False"),
    ("pinned_use_background_threads:1", "'pinned_use_background_threads' must be True or False"),
    ("pinned_max_cached_size_mb:x", "'pinned_max_cached_size_mb' must be"),
    ("backend:cudaMallocAsync", "'backend' must be native or musaMallocAsync"),
    ("backend:unified", "'backend' is 'unified', for tensors in memory that host and device share"),
    ("cpu:native", "'cpu' must be unified"),
    ("release_lock_on_musamalloc:1", "'release_lock_on_musamalloc' must be True or False"),
    ("pinned_num_register_threads:3", "'pinned_num_register_threads' must be a power of two"),
]


@pytest.mark.once
@pytest.mark.parametrize(("text", "complaint"), MALFORMED)
def test_a_malformed_or_unknown_setting_is_refused_by_name(musa, text, complaint):
    from musa_runtime import _C

    with pytest.raises(ValueError, match=complaint) as caught:
        _C.check_allocator_settings(text, "PYTORCH_MUSA_ALLOC_CONF")
    assert str(caught.value).startswith("PYTORCH_MUSA_ALLOC_CONF=")
    assert "Fix:" in str(caught.value)


@pytest.mark.once
@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_split_size_mb:64",
        " max_split_size_mb : 64 , garbage_collection_threshold: 0.8 ,",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,1024:0,>:8],backend:native",
        "expandable_segments:True,large_segment_size_mb:40,max_split_size_mb:40",
        "pinned_use_background_threads:True,pinned_max_round_threshold_mb:8,pinned_max_cached_size_mb:16",
        "per_process_memory_fraction:0.5",
    ],
)
def test_settings_that_torch_documents_are_accepted(musa, text):
    from musa_runtime import _C

    _C.check_allocator_settings(text, "PYTORCH_ALLOC_CONF")


@pytest.mark.once
@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("cpu:unified", "they are copied to the device"),
        ("backend:musaMallocAsync", "native caching allocator"),
        pytest.param("release_lock_on_musamalloc:True", "lock is held", marks=pytest.mark.full),
        pytest.param("pinned_use_musa_host_register:True", "pinned memory", marks=pytest.mark.full),
        pytest.param("pinned_num_register_threads:8", "pinned memory", marks=pytest.mark.full),
    ],
)
def test_a_setting_of_the_vendors_allocator_is_accepted_with_a_warning(text, instead):
    code = """
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch
        total = torch.ones(3, device="musa").sum().item()
    print(total, *(str(warning.message).splitlines()[0] for warning in caught))
    """
    printed = run_code(code, PYTORCH_MUSA_ALLOC_CONF=text)
    assert printed.startswith(f"3.0 The allocator setting {text} has no effect: ") and instead in printed


def test_a_refused_setting_changes_nothing(allocator):
    with pytest.raises(ValueError, match="'foo'"):
        allocator.memory._set_allocator_settings("roundup_power2_divisions:2,foo:1")
    before = _stat("allocated_bytes.all.current")
    x = _block(5 * MIB)
    assert _stat("allocated_bytes.all.current") - before == 5 * MIB
    del x


def test_torchs_own_function_reaches_the_allocator_and_refuses_too(allocator):
    for text in ("foo:1", "backend:cudaMallocAsync"):
        with pytest.raises(ValueError, match=text.partition(":")[0]):
            torch._C._accelerator_setAllocatorSettings(text)
    torch._C._accelerator_setAllocatorSettings("per_process_memory_fraction:0.25")
    assert allocator.get_per_process_memory_fraction() == 0.25
    assert torch._C._accelerator_getAllocatorSettings() == "per_process_memory_fraction:0.25"


_FIRST_USE = """
import torch
print("imported", torch.musa.is_available())
for _ in range(2):
    try:
        torch.ones(3, device="musa")
        print("worked")
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
print("cpu", float(torch.ones(3).sum()))
"""


@pytest.mark.once
@pytest.mark.parametrize("variable", ["PYTORCH_ALLOC_CONF", "PYTORCH_MUSA_ALLOC_CONF"])
def test_a_bad_variable_breaks_the_first_use_and_not_the_import(musa, variable):
    lines = run_code(_FIRST_USE, **{variable: "max_split_size_mb:64,foo:1"}).splitlines()
    assert lines[0] == "imported True"
    assert lines[1] == lines[2], "the second use raises another error"
    assert lines[1].startswith(f"ValueError {variable}='max_split_size_mb:64,foo:1': 'foo' is no setting")
    assert lines[3] == "cpu 3.0"


@pytest.mark.once
def test_a_bad_variable_of_cuda_is_named_as_such(musa):
    lines = run_code(_FIRST_USE, PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:abc").splitlines()
    assert lines[1].startswith("ValueError torch cannot take its allocator settings")
    assert "worked" in run_code(
        _FIRST_USE, PYTORCH_CUDA_ALLOC_CONF="release_lock_on_cudamalloc:True,max_split_size_mb:64"
    )


@pytest.mark.once
def test_the_doctor_shows_a_bad_variable(musa):
    done = run_module("torch_musa", "doctor", "--json", PYTORCH_MUSA_ALLOC_CONF="foo:1")
    found = {outcome["title"]: outcome for outcome in json.loads(done.stdout)}
    assert found["allocator settings"]["status"] == "fail"
    assert "'foo'" in found["allocator settings"]["detail"]
    assert found["allocator settings"]["command"] == "unset PYTORCH_MUSA_ALLOC_CONF"
    assert found["allocation"]["status"] == "skip"


_READ_BACK = """
import torch
torch.musa.init()
before = torch.musa.memory_allocated()
x = torch.empty(5 << 20, dtype=torch.uint8, device="musa")
print(torch.musa.get_per_process_memory_fraction(0), (torch.musa.memory_allocated() - before) >> 20,
      torch.musa.memory_stats()["max_split_size"] >> 20)
"""


@pytest.mark.once
def test_both_variables_are_read_and_the_musa_variable_wins(musa):
    out = run_code(
        _READ_BACK,
        PYTORCH_ALLOC_CONF="max_split_size_mb:64, per_process_memory_fraction:0.5,",
        PYTORCH_MUSA_ALLOC_CONF="roundup_power2_divisions:2,per_process_memory_fraction:0.25",
    )
    assert out.split() == ["0.25", "6", "64"]


@pytest.mark.once
def test_settings_of_the_program_win_over_the_environment(musa):
    out = run_code(
        "import torch; torch._C._accelerator_setAllocatorSettings('roundup_power2_divisions:1')\n"
        + _READ_BACK,
        PYTORCH_MUSA_ALLOC_CONF="roundup_power2_divisions:2,per_process_memory_fraction:0.25",
    )
    assert out.split()[:2] == ["0.25", "5"]


def test_roundup_divides_powers_of_two(allocator):
    with settings(allocator, "roundup_power2_divisions:4"):
        for size, rounded in ((1200, 1280), (1024, 1024), (5 * MIB, 5 * MIB), (5 * MIB + 1, 6 * MIB)):
            before = _stat("allocated_bytes.all.current")
            x = _block(size)
            # Sizes are also rounded up to the allocator's unit of 512 bytes.
            expected = -(-rounded // 512) * 512
            assert _stat("allocated_bytes.all.current") - before == expected, size
            del x


def test_roundup_by_size(allocator):
    with settings(allocator, "roundup_power2_divisions:[2:1,4:2,>:8]"):
        for size, rounded in ((1.25, 1.25), (5, 6), (36, 36), (33, 36)):
            before = _stat("allocated_bytes.all.current")
            x = _block(size * MIB)
            assert _stat("allocated_bytes.all.current") - before == rounded * MIB, size
            del x


def test_large_segments_have_the_configured_size(allocator):
    with settings(allocator, "large_segment_size_mb:40"):
        before = _stat("reserved_bytes.all.current")
        x = _block(3 * MIB)
        assert _stat("reserved_bytes.all.current") - before == 40 * MIB
        y = _block(30 * MIB)
        assert y.data_ptr() - x.data_ptr() in range(40 * MIB), "the blocks do not share a segment"
        del x, y


def test_blocks_of_max_split_size_are_not_split(allocator):
    with settings(allocator, "max_split_size_mb:32"):
        whole = _block(64 * MIB)
        assert _stat("oversize_allocations.current") == 1
        assert _stat("oversize_segments.current") == 1
        pointer = whole.data_ptr()
        del whole
        assert _stat("oversize_allocations.current") == 0
        small = _block(4 * MIB)
        assert small.data_ptr() not in range(pointer, pointer + 64 * MIB), "an oversize block was split"
        again = _block(60 * MIB)
        assert again.data_ptr() == pointer, "a request of about its size did not reuse it"
        assert _stat("allocated_bytes.all.current") >= 64 * MIB, "the block was split"
        del small, again
    allocator.empty_cache()
    assert _stat("oversize_segments.current") == 0


def test_the_limit_on_unused_bytes_of_an_oversize_block(allocator):
    for rounding, reused in (("20", False), ("40", True)):
        with settings(allocator, f"max_split_size_mb:32,max_non_split_rounding_mb:{rounding}"):
            x = _block(64 * MIB)
            pointer = x.data_ptr()
            del x
            y = _block(34 * MIB)
            assert (y.data_ptr() == pointer) is reused
            del y
            allocator.empty_cache()


def test_figures_of_oversize_segments_survive_a_change_of_the_setting(allocator):
    before = _stat("oversize_segments.current")
    with settings(allocator, "max_split_size_mb:32"):
        x = _block(64 * MIB)
    with settings(allocator, "max_split_size_mb:17592186044415"):
        del x
        allocator.empty_cache()
        assert _stat("oversize_segments.current") == before


def test_the_fraction_limits_the_process(allocator):
    total = allocator.mem_get_info()[1]
    limit = allocator.memory_reserved() + 96 * MIB
    with settings(allocator, f"per_process_memory_fraction:{limit / total:.12f}"):
        x = _block(64 * MIB)
        with pytest.raises(torch.OutOfMemoryError, match="limited"):
            _block(64 * MIB)
        del x


def _cached_segments(sizes):
    """Creates large free segments; the first one has been free for the longest time."""
    blocks = [_block(size * MIB) for size in sizes]
    for position in range(len(blocks)):
        blocks[position] = None
        for _ in range(50):  # the allocator measures age in allocations
            _block(512)


def _collect_beyond(allocator, threshold, bytes_above):
    """Sets limit and threshold so that the next segment of 100 MiB exceeds them by `bytes_above`."""
    limit = (allocator.memory_reserved() + 100 * MIB - bytes_above) / threshold
    fraction = limit / allocator.mem_get_info()[1]
    allocator.memory._set_allocator_settings(
        f"per_process_memory_fraction:{fraction:.12f},garbage_collection_threshold:{threshold}"
    )


def test_garbage_collection_frees_the_segments_that_were_idle_longest(allocator):
    _cached_segments([64, 66, 68, 70])
    _collect_beyond(allocator, 0.75, 40 * MIB)  # one segment too many
    freed, retries = _stat("num_device_free"), _stat("num_alloc_retries")
    x = _block(100 * MIB)
    assert _stat("num_device_free") == freed + 1
    assert _stat("num_alloc_retries") == retries, "it collected only after an allocation had failed"
    present = {segment["total_size"] // MIB for segment in allocator.memory_snapshot()}
    assert present.isdisjoint({64})
    assert present.issuperset({66, 68, 70})
    del x


def test_garbage_collection_keeps_recently_used_segments(allocator):
    _cached_segments([64, 66, 68, 70])
    _collect_beyond(allocator, 0.7, 150 * MIB)  # three segments too many
    freed = _stat("num_device_free")
    x = _block(100 * MIB)
    present = {segment["total_size"] // MIB for segment in allocator.memory_snapshot()}
    assert _stat("num_device_free") > freed
    assert 70 in present, "the segment used last was freed"
    assert 64 not in present, "the segment idle longest was kept"
    del x


def test_without_a_threshold_nothing_is_collected(allocator):
    _cached_segments([64, 64])
    freed = _stat("num_device_free")
    x = _block(100 * MIB)
    assert _stat("num_device_free") == freed
    del x


def test_caching_can_be_turned_off(allocator, emulator):
    cached = _block(3 * MIB)
    del cached
    allocator.caching_allocator_enable(False)
    try:
        calls = emulator.calls("musaMalloc")
        for _ in range(3):
            x = _block(3 * MIB)
            x.fill_(1)
            del x
        assert emulator.calls("musaMalloc") == calls + 3
    finally:
        allocator.caching_allocator_enable(True)
    _block(3 * MIB)
    calls = emulator.calls("musaMalloc")
    _block(3 * MIB)
    assert emulator.calls("musaMalloc") == calls
