# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Loading onto the device, with the allocator that the vendor has for devices with shared memory."""

import warnings

import torch

import torch_musa

torch.save(torch.nn.Linear(2, 2).state_dict(), "weights.pth")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with torch_musa.use_unified_cpu_allocator():
        weights = torch.load("weights.pth", map_location="musa")
assert weights["weight"].is_musa and any("has no effect" in str(each.message) for each in caught)
print("done")
