# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.musa.demo`: the pack's own operator as a function."""

import torch


def scale_shift(tensor, scale=1.0, shift=0.0):
    """`tensor * scale + shift`, in one operator."""
    return torch.ops.musa_demo.scale_shift(tensor, scale, shift)


__all__ = ["scale_shift"]
