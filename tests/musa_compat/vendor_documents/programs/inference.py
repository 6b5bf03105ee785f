# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A network in evaluation mode, in NHWC layout too."""

import torch
from torch import nn

import torch_musa  # noqa: F401

network = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Linear(8, 10),
).eval()  # fmt: skip
images = torch.rand((1, 3, 32, 32), device="musa")
network = network.to("musa")
logits = network(images)
assert logits.shape == (1, 10) and logits.is_musa
torch.backends.mudnn.allow_tf32 = True
network = network.to(memory_format=torch.channels_last)
assert network[0].weight.is_contiguous(memory_format=torch.channels_last)
torch.testing.assert_close(network(images), logits, rtol=1e-2, atol=1e-3)
print("done")
