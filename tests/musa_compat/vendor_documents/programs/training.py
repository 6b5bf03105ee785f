# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training of a small convolutional network with a loader of two workers, saving and testing."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

import torch_musa  # noqa: F401


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.second = nn.Conv2d(6, 16, 5)
        self.last = nn.Linear(16 * 5 * 5, 10)

    def forward(self, images):
        images = self.pool(F.relu(self.second(self.pool(F.relu(self.first(images))))))
        return self.last(torch.flatten(images, 1))


device = torch.device("musa")
data = TensorDataset(torch.rand(16, 3, 32, 32), torch.arange(16) % 10)
loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=2)
net = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
for _epoch in range(2):
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(net(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        running += loss.item()
torch.save(net.state_dict(), "net.pth")
net.load_state_dict(torch.load("net.pth"))
right = 0
with torch.no_grad():
    for images, labels in DataLoader(data, batch_size=4):
        _, predicted = torch.max(net(images.to(device)).data, 1)
        right += (predicted == labels.to(device)).sum().item()
assert running > 0 and 0 <= right <= 16
print("done")
