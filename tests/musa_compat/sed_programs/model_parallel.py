# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A network in two parts on two devices, with copies between them."""

import torch
from torch import nn

assert torch.cuda.device_count() >= 2


class TwoParts(nn.Module):
    def __init__(self, split=2):
        super().__init__()
        self.first = nn.Linear(10, 10).to("cuda:0")
        self.relu = nn.ReLU()
        self.second = nn.Linear(10, 5).to("cuda:1")
        self.split = split

    def forward(self, x):
        parts, results = iter(x.split(self.split, dim=0)), []
        held = self.first(next(parts)).to("cuda:1")
        for part in parts:
            results.append(self.second(self.relu(held)))
            held = self.first(part).to("cuda:1")
        return torch.cat([*results, self.second(self.relu(held))])


model = TwoParts()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
outputs = model(torch.randn(6, 10).to("cuda:0"))
labels = torch.randn(6, 5).to("cuda:1")
nn.MSELoss()(outputs, labels).backward()
optimizer.step()
assert model.first.weight.grad.device.index == 0 and model.second.weight.grad.device.index == 1
replicas = torch.cuda.comm.broadcast(torch.ones(3, device="cuda:0"), (0, 1))
assert [each.get_device() for each in replicas] == [0, 1]
scattered = torch.cuda.comm.scatter(torch.arange(4.0, device="cuda:0"), (0, 1))
assert torch.cuda.comm.gather(scattered, destination=0).tolist() == [0.0, 1.0, 2.0, 3.0]
assert torch.cuda.comm.reduce_add(replicas, destination=1).tolist() == [2.0] * 3
torch.cuda.synchronize(1)
print("done")
