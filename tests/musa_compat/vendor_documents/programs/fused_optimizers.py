# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The fused optimizers."""

import torch

from torch_musa.optim import FusedAdam, FusedAdamW, FusedLAMB

for kind in (FusedAdam, FusedAdamW, FusedLAMB):
    model = torch.nn.Linear(4, 1).musa()
    optimizer = kind(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4, device="musa")).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] != losses[0]
try:
    FusedAdamW(model.parameters(), lr=0.1, momentum=0.9)
except TypeError as error:
    assert "Fix: pass betas=(0.9, 0.999)" in str(error)
else:
    raise AssertionError("Adam has no momentum")
print("done")
