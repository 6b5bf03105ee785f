# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""GradScaler and autocast of torch.musa.amp and torch_musa.amp, and seeds of the device."""

import torch
from torch import nn

import torch_musa
from torch_musa import amp

torch.musa.manual_seed(1)
torch.musa.manual_seed_all(1)
model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).to("musa")
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(6, 5).to("musa"), torch.randn(6, 3).to("musa")
assert amp.autocast is torch.musa.amp.autocast is torch_musa.amp.autocast
losses = []
for scaler in (torch.musa.amp.GradScaler(), torch_musa.amp.GradScaler()):
    for _ in range(5):
        optimizer.zero_grad()
        with torch.musa.amp.autocast(dtype=torch.float16):
            outputs = model(inputs)
            assert outputs.dtype == torch.float16
            loss = criterion(outputs, targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
assert losses[-1] < losses[0] and torch.musa.memory_reserved() > 0
print("done")
