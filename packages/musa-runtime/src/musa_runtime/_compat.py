# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Differences between torch minors, 2.11 to 2.15, as seen from Python. No other module compares torch
versions, except the check before loading."""

from __future__ import annotations

import torch


def rename_privateuse1() -> None:
    """Give PrivateUse1 the name "musa" in torch, the profiler included."""
    from torch.utils import rename_privateuse1_backend

    rename_privateuse1_backend("musa")
    # torch 2.13 adds this alias itself; older profilers only have the name PrivateUse1.
    activity = torch._C._profiler.ProfilerActivity
    if not hasattr(activity, "MUSA"):
        activity.MUSA = activity.PrivateUse1  # type: ignore[attr-defined]


def empty_host_cache() -> None:
    """Return unused pinned blocks to the SDK; needs torch 2.12 or later."""
    if hasattr(torch.accelerator, "empty_host_cache"):
        torch.accelerator.empty_host_cache()
