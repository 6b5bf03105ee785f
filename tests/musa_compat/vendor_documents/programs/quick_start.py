# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Devices, tensors, and a copy of each kind."""

import torch

import torch_musa

assert torch.musa.is_available() and torch.musa.device_count() >= 1
first = torch.tensor([1.0, 2.0], dtype=torch.float32, device="musa")
second = torch.tensor([3.0, 4.0], dtype=torch.float32, device="cpu").to("musa")
third = torch.tensor([5.0, 6.0], dtype=torch.float32).musa()
total = first + second + third
torch.musa.synchronize()
assert total.tolist() == [9.0, 12.0]
with torch.musa.device(0):
    assert torch.musa.current_device() == 0
if torch.musa.device_count() > 1:
    torch.musa.set_device(1)
    assert torch.musa.current_device() == 1 == torch_musa.current_device()
    torch.musa.synchronize("musa:1")
torch.backends.mudnn.allow_tf32 = True
event, stream = torch.musa.Event(), torch.musa.Stream()
event.record(stream)
event.synchronize()
print("done")
