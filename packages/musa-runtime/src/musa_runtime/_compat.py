# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Differences between torch minors, 2.11 to 2.15, as seen from Python. Nowhere else is a torch version
asked."""

import torch


def rename_privateuse1():
    """Give PrivateUse1 the name "musa" in torch, the profiler included."""
    from torch.utils import rename_privateuse1_backend

    rename_privateuse1_backend("musa")
    # torch 2.13 adds this alias by itself; before, the profiler knew the device by its neutral name only.
    activity = torch._C._profiler.ProfilerActivity
    if not hasattr(activity, "MUSA"):
        activity.MUSA = activity.PrivateUse1
