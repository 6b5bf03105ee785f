# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains a convolutional network on CIFAR-10 on a MUSA device, then tests the saved model.

Needs torchvision, which downloads the images (170 MB) to --data. --data and --out, the file of trained
weights, are in examples/out by default.

python examples/train_cifar10.py --device musa --epochs 2
"""

import argparse
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

OUT = Path(__file__).resolve().parent / "out"
CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Net(nn.Module):
    """Images (N, 3, 32, 32) float32 to logits (N, 10)."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, len(CLASSES))

    def forward(self, images):
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def cifar10(folder: Path) -> tuple[Dataset, Dataset]:
    """Returns CIFAR-10's training and test set, with pixels scaled to [-1, 1]."""
    try:
        from torchvision import datasets, transforms  # not needed to import this module
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{Path(__file__).name} needs torchvision: {error}.\n"
            f"Fix: {sys.executable} -m pip install torchvision"
        ) from None

    scale = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    return tuple(
        datasets.CIFAR10(folder, train=train, download=True, transform=scale) for train in (True, False)
    )


def train(model, loader, device, epochs: int, lr: float, log_every: int = 500) -> list[float]:
    """Trains with SGD and momentum; returns the mean loss of each epoch."""
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses = []
    for epoch in range(epochs):
        total = 0.0
        for step, (images, labels) in enumerate(loader, 1):
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
            if step % log_every == 0:
                print(f"epoch {epoch + 1}, step {step}: mean loss {total / step:.3f}", flush=True)
        losses.append(total / len(loader))
        print(f"epoch {epoch + 1}: mean loss {losses[-1]:.3f}", flush=True)
    return losses


@torch.no_grad()
def accuracy_by_class(model, loader, device) -> dict[str, float]:
    """Returns the accuracy per class, and for all images as "all"."""
    model.eval()
    right, seen = torch.zeros(len(CLASSES)), torch.zeros(len(CLASSES))
    for images, labels in loader:
        hits = model(images.to(device)).argmax(1).cpu() == labels
        seen += torch.bincount(labels, minlength=len(CLASSES))
        right += torch.bincount(labels[hits], minlength=len(CLASSES))
    shares = {name: float(r / s) for name, r, s in zip(CLASSES, right, seen) if s > 0}
    return {**shares, "all": float(right.sum() / seen.sum())}


def main(argv: list[str] | None = None, build_datasets=cifar10) -> int:
    """``build_datasets(folder)`` returns the training and the test set of (image, label) pairs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="musa")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, default=OUT / "data", metavar="DIR")
    parser.add_argument("--out", type=Path, default=OUT / "cifar_net.pth", metavar="FILE")
    arguments = parser.parse_args(argv)

    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    train_set, test_set = build_datasets(arguments.data)
    loaders = {"batch_size": arguments.batch_size, "num_workers": 2, "pin_memory": device.type != "cpu"}

    model = Net().to(device)
    train(model, DataLoader(train_set, shuffle=True, **loaders), device, arguments.epochs, arguments.lr)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), arguments.out)
    print(f"saved {arguments.out}")

    saved = Net().to(device)
    saved.load_state_dict(torch.load(arguments.out, map_location=device))
    shares = accuracy_by_class(saved, DataLoader(test_set, **loaders), device)
    for name, share in shares.items():
        print(f"accuracy {name:>5}: {share:.1%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
