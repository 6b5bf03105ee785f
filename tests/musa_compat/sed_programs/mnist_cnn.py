# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A convolutional classifier of digits, in the manner of torch's basic examples."""

import argparse
import tempfile

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3)
        self.second = nn.Conv2d(8, 8, 3)
        self.drop = nn.Dropout2d(0.1)
        self.hidden = nn.Linear(8 * 12 * 12, 16)
        self.last = nn.Linear(16, 10)

    def forward(self, images):
        images = F.relu(self.second(F.relu(self.first(images))))
        flat = torch.flatten(self.drop(F.max_pool2d(images, 2)), 1)
        return F.log_softmax(self.last(F.relu(self.hidden(flat))), dim=1)


def digits(count):
    """Images in which the class is the row of a bright line."""
    labels = torch.arange(count) % 10
    images = 0.1 * torch.randn(count, 1, 28, 28)
    images[torch.arange(count), 0, 2 * labels + 4] += 1
    return TensorDataset(images, labels)


def train(model, device, loader, optimizer):
    model.train()
    total = 0.0
    for data, target in loader:
        data, target = data.to(device, non_blocking=True), target.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def test(model, device, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            right += output.argmax(dim=1, keepdim=True).eq(target.to(device).view(-1, 1)).sum().item()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cuda", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args([])
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda" if use_cuda else "cpu")
    assert use_cuda
    options = {"batch_size": 20, "pin_memory": use_cuda}
    training = DataLoader(digits(120), shuffle=True, **options)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.9)
    losses = []
    for _ in range(args.epochs):
        losses.append(train(model, device, training, optimizer))
        scheduler.step()
    assert losses[-1] < losses[0]
    assert test(model, device, DataLoader(digits(40), batch_size=20)) > 0.3
    with tempfile.NamedTemporaryFile() as file:
        torch.save(model.state_dict(), file.name)
        weights = torch.load(file.name, weights_only=True)
    assert weights["last.bias"].is_cuda


if __name__ == "__main__":
    main()
    print("done")
