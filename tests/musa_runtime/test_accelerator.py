# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.accelerator: everything that asks for "the accelerator" finds the musa device."""

import pytest
import torch


def test_the_accelerator_is_musa(musa):
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator().type == "musa"
    assert torch.accelerator.device_count() == musa.device_count()
    assert torch.accelerator.current_device_index() == musa.current_device()


def test_the_current_device_can_be_chosen(two_devices):
    torch.accelerator.set_device_index(1)
    try:
        assert two_devices.current_device() == 1
        assert torch.empty(1, device="musa").device.index == 1
    finally:
        torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(1):
        assert two_devices.current_device() == 1
    assert two_devices.current_device() == 0


def test_streams_go_through_the_accelerator(musa):
    stream = torch.Stream("musa")
    default = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    try:
        assert musa.current_stream() == stream
        x = torch.ones(64, device="musa") + 1
        torch.accelerator.synchronize()
        assert x.cpu().eq(2).all()
    finally:
        torch.accelerator.set_stream(default)


def test_an_index_out_of_range_is_refused(musa):
    with pytest.raises((RuntimeError, ValueError), match=str(musa.device_count() + 5)):
        torch.accelerator.set_device_index(musa.device_count() + 5)
    assert torch.accelerator.current_device_index() == 0


def test_a_kilobyte_raises_the_active_bytes_by_1024(musa):
    before = torch.accelerator.memory_stats()["active_bytes.all.current"]
    x = torch.empty(1000, dtype=torch.uint8, device="musa")
    after = torch.accelerator.memory_stats()["active_bytes.all.current"]
    assert after - before == 1024
    del x
    assert torch.accelerator.memory_stats()["active_bytes.all.current"] == before


@pytest.mark.parametrize("group", ["allocation", "segment", "active", "inactive_split"])
@pytest.mark.parametrize("pool", ["all", "small_pool", "large_pool"])
@pytest.mark.parametrize("metric", ["current", "peak", "allocated", "freed"])
def test_memory_stats_are_complete(musa, group, pool, metric):
    torch.ones(1, device="musa")
    assert torch.accelerator.memory_stats()[f"{group}.{pool}.{metric}"] >= 0


@pytest.mark.parametrize("group", ["allocated", "reserved", "active", "requested", "inactive_split"])
@pytest.mark.parametrize("pool", ["all", "small_pool", "large_pool"])
@pytest.mark.parametrize("metric", ["current", "peak", "allocated", "freed"])
def test_memory_stats_in_bytes_are_complete(musa, group, pool, metric):
    torch.ones(1, device="musa")
    assert torch.accelerator.memory_stats()[f"{group}_bytes.{pool}.{metric}"] >= 0


def test_memory_figures_follow_a_tensors_life(musa):
    torch.accelerator.empty_cache()
    allocated, reserved = torch.accelerator.memory_allocated(), torch.accelerator.memory_reserved()
    torch.accelerator.reset_peak_memory_stats()
    x = torch.empty(5 << 20, dtype=torch.uint8, device="musa")
    assert torch.accelerator.memory_allocated() == allocated + (5 << 20)
    assert torch.accelerator.memory_reserved() > reserved
    del x
    assert torch.accelerator.memory_allocated() == allocated
    assert torch.accelerator.max_memory_allocated() == allocated + (5 << 20)
    torch.accelerator.empty_cache()
    assert torch.accelerator.memory_reserved() == reserved


def test_memory_info_shrinks_and_grows_with_what_is_reserved(musa):
    torch.accelerator.empty_cache()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    x = torch.empty(32 << 20, dtype=torch.uint8, device="musa")
    assert torch.accelerator.get_memory_info()[0] <= free - (32 << 20)
    del x
    torch.accelerator.empty_cache()
    assert torch.accelerator.get_memory_info()[0] == free


def test_pinned_memory_is_the_accelerators(musa):
    x = torch.empty(100, pin_memory=True)
    assert x.is_pinned()
    torch.accelerator.empty_host_cache()
    assert torch.ones(3).pin_memory().is_pinned()


def test_capability_lists_the_dtypes(musa):
    capability = torch.accelerator.get_device_capability()
    assert {torch.float32, torch.float16, torch.int64, torch.bool} <= set(capability["supported_dtypes"])


def test_a_generator_of_the_accelerator(musa):
    generator = torch.Generator("musa")
    assert generator.device.type == "musa"
    x = torch.rand(5, device="musa", generator=generator.manual_seed(3))
    assert torch.equal(x, torch.rand(5, device="musa", generator=generator.manual_seed(3)))
