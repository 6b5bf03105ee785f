# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains a small convolutional network on handwritten digits on a MUSA device.

The 1797 images (8 x 8 pixels, scans of real handwriting) come with scikit-learn, so nothing is downloaded.
Writes a plot, a checkpoint and its figures to --out, by default examples/out/digits.
Needs matplotlib, scikit-learn and tqdm.

python examples/train_digits.py --device musa --epochs 15
python examples/train_digits.py --amp bf16    # mixed precision; fp16 scales the loss as well
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import matplotlib
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm
except ModuleNotFoundError as error:
    raise SystemExit(
        f"{Path(__file__).name} needs matplotlib, scikit-learn and tqdm: {error}.\n"
        f"Fix: {sys.executable} -m pip install matplotlib scikit-learn tqdm"
    ) from None

matplotlib.use("Agg")  # before pyplot is imported, so that no display is needed
import matplotlib.pyplot as plt

OUT = Path(__file__).resolve().parent / "out"


class DigitsNet(nn.Module):
    """Images (N, 1, 8, 8) float32 in [0, 1] to logits (N, 10)."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4 * 4, 10))

    def forward(self, images):
        return self.classifier(self.features(images))


def load_data(seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Returns training set (four fifths) and test set, with the same proportions of digits."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    train, test = train_test_split(
        range(len(labels)), test_size=0.2, stratify=digits.target, random_state=seed
    )
    return TensorDataset(images[train], labels[train]), TensorDataset(images[test], labels[test])


AMP_DTYPES = {"off": None, "bf16": torch.bfloat16, "fp16": torch.float16}


def train_epoch(model, loader, optimizer, scaler, device, dtype=None) -> float:
    """Trains for one epoch, with autocast to ``dtype`` if given; returns the mean loss."""
    model.train()
    # Summed on the device, because reading a number in every step would make the host wait in every
    # step.
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.detach() * len(labels)
    return total.item() / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader, device, dtype=None) -> float:
    """Returns the accuracy, with autocast to ``dtype`` if given."""
    model.eval()
    correct = torch.zeros((), dtype=torch.long, device=device)
    for images, labels in loader:
        with torch.autocast(torch.device(device).type, dtype=dtype, enabled=dtype is not None):
            correct += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    return correct.item() / len(loader.dataset)


def plot_history(losses: list[float], accuracies: list[float], title: str, path: Path) -> None:
    epochs = range(1, len(losses) + 1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(epochs, losses, marker="o", color="tab:blue")
    left.set(xlabel="epoch", ylabel="training loss (cross entropy)", yscale="log")
    right.plot(epochs, [100 * accuracy for accuracy in accuracies], marker="o", color="tab:orange")
    right.set(xlabel="epoch", ylabel="test accuracy (%)")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="musa")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--amp", choices=AMP_DTYPES, default="off", help="dtype of mixed precision")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT / "digits", metavar="DIR")
    arguments = parser.parse_args(argv)
    if arguments.epochs < 1:
        parser.error("--epochs must be at least 1")

    device = torch.device(arguments.device)
    torch.manual_seed(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    train_set, test_set = load_data(arguments.seed)
    # With pinned memory, copies to the device overlap with the host preparing the next batch.
    pinned = {"pin_memory": device.type != "cpu"}
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True, **pinned)
    test_loader = DataLoader(test_set, batch_size=256, **pinned)

    model = DigitsNet().to(device)
    dtype = AMP_DTYPES[arguments.amp]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    # In float16 small gradients underflow unless the loss is scaled.
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=6e-3, total_steps=arguments.epochs)
    losses, accuracies = [], []
    start = time.perf_counter()
    progress = tqdm(range(arguments.epochs), desc=f"training on {device}", unit="epoch", file=sys.stdout)
    for _ in progress:
        losses.append(train_epoch(model, train_loader, optimizer, scaler, device, dtype))
        accuracies.append(evaluate(model, test_loader, device, dtype))
        schedule.step()
        progress.set_postfix(loss=f"{losses[-1]:.4f}", accuracy=f"{accuracies[-1]:.2%}")
    seconds = time.perf_counter() - start

    checkpoint = arguments.out / "train_digits.pt"
    torch.save({"model": model.state_dict(), "epochs": arguments.epochs}, checkpoint)
    reloaded = DigitsNet().to(device)
    reloaded.load_state_dict(torch.load(checkpoint, map_location=device)["model"])
    reloaded_accuracy = evaluate(reloaded, test_loader, device, dtype)
    if reloaded_accuracy != accuracies[-1]:
        raise RuntimeError(
            f"the model reloaded from {checkpoint} has an accuracy of {reloaded_accuracy:.4f}, "
            f"the trained one {accuracies[-1]:.4f}: saving or loading changed its weights"
        )

    plot = arguments.out / "train_digits.png"
    plot_history(losses, accuracies, f"Handwritten digits on {device}", plot)
    figures = {
        "device": str(device),
        "amp": arguments.amp,
        "accuracy": accuracies[-1],
        "losses": losses,
        "accuracies": accuracies,
        "seconds": seconds,
        "plot": plot.name,
        "checkpoint": checkpoint.name,
    }
    (arguments.out / "train_digits.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(f"trained for {seconds:.1f} s; plot {plot}, checkpoint {checkpoint} (reloaded and checked)")
    print(f"test accuracy: {accuracies[-1]:.2%}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
