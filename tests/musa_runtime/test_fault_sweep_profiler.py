# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Profiles in which each SDK call fails in turn: an exception or a gap, and the next profile works."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.harness.emulator import UNKNOWN
from tests.harness.sweeps import calls_to_fail

pytestmark = pytest.mark.emulator

_MOST_CALLS = 400


def _work():
    assert (torch.arange(100.0).to("musa") + 1).sum().cpu().item() == 5050


def _with_activity():
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        _work()
    assert prof.key_averages()


def _with_events():
    with torch.autograd.profiler.profile(use_device="musa", use_kineto=False) as prof:
        _work()
    assert prof.key_averages()


def _with_markers():
    with torch.musa.profiler.profile(), torch.musa.mttx.range("all"):
        _work()


@pytest.mark.parametrize("scenario", [_with_activity, _with_events, _with_markers], ids=lambda f: f.__name__)
def test_each_call_may_fail(emulator, scenario):
    scenario()
    for n in calls_to_fail(_MOST_CALLS):
        emulator.fail_call(n, UNKNOWN)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about an incomplete profile
                scenario()
        except (RuntimeError, torch.AcceleratorError) as error:
            assert str(error)
            # torch leaves its profiler running if the wait at the end of the profile raises.
            if torch.autograd._profiler_enabled():
                torch.autograd._disable_profiler()
        reached = not emulator.fault_pending()
        emulator.clear_faults()
        scenario()
        if not reached:
            return
    pytest.fail(f"the scenario makes more than {_MOST_CALLS} calls, so its sweep does not end")
