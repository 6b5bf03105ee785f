# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Gaps of torch for renamed devices (docs/upstream). A test fails when torch has closed its gap."""

import pytest
import torch
from torch.autograd.profiler_util import EventList, FunctionEventAvg

from musa_compat import profiler_names

pytestmark = pytest.mark.once

OUT_OF_DATE = "torch has the change: remove the page and what stands in for it"


def test_events_have_the_names_of_the_device_by_musa_compat_alone(monkeypatch):
    """docs/upstream/profiler_names.md; musa_compat/profiler_names.py stands in."""
    event = FunctionEventAvg()
    event.key, event.use_device, event.self_device_time_total = "aten::mm", "musa", 7
    assert event.self_musa_time_total == 7
    event.self_device_time_total = 0  # a table of one event needs the device's total
    events = EventList([event], use_device="musa")
    assert "aten::mm" in events.table(sort_by="self_musa_time_total")
    base = next(kind for kind in FunctionEventAvg.__mro__ if "self_musa_time_total" in vars(kind))
    monkeypatch.delattr(base, "self_musa_time_total")
    with pytest.raises(AttributeError, match="self_musa_time_total"):
        events.table(sort_by="self_musa_time_total")
        pytest.fail(OUT_OF_DATE)


def test_stacks_take_the_name_privateuse1_only(tmp_path):
    """docs/upstream/profiler_names.md"""
    with pytest.raises(ValueError, match="self_privateuse1_time_total"):
        EventList([]).export_stacks(str(tmp_path / "stacks"), "self_musa_time_total")
        pytest.fail(OUT_OF_DATE)


def test_names_that_torch_has_stay(monkeypatch):
    from torch.autograd.profiler_util import FormattedTimesMixin

    mine = property(lambda event: 1)
    monkeypatch.setattr(FormattedTimesMixin, "musa_time_total", mine)
    profiler_names.add()
    assert FormattedTimesMixin.musa_time_total is mine


def test_data_parallel_lacks_the_functions_of_cuda_builds(two_devices):
    """docs/upstream/data_parallel.md; torch.musa.parallel.DataParallel stands in."""
    model = torch.nn.DataParallel(torch.nn.Linear(2, 2).musa(), device_ids=[0, 1])
    with pytest.raises(AttributeError, match="_scatter"):
        model(torch.ones(2, 2, device="musa"))
        pytest.fail(OUT_OF_DATE)
    replaced = two_devices.parallel.DataParallel(torch.nn.Linear(2, 2).musa(), device_ids=[0, 1])
    assert replaced(torch.ones(2, 2, device="musa")).shape == (2, 2)


def test_lazy_modules_move_by_to_only(musa):
    """docs/upstream/data_parallel.md"""
    with pytest.raises(ValueError, match="uninitialized parameter"):
        torch.nn.LazyLinear(3).musa()
        pytest.fail(OUT_OF_DATE)
    assert torch.nn.LazyLinear(3).to("musa")(torch.ones(1, 2, device="musa")).shape == (1, 3)
