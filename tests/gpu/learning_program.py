# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains timm's ConvNeXt-T and prints the losses: `python -m tests.gpu.learning_program musa|cuda|cpu`.

Batch 64, channels last, autocast to float16 with a gradient scaler, 15 steps on one batch. Weights and images
are made on the CPU, so all devices begin with the same numbers. `--tiny` is a small model for other machines.
"""

from __future__ import annotations

import json
import sys

import torch
from torch.nn import functional

BATCH, STEPS, CLASSES = 64, 15, 10


def main(device: str, tiny: bool) -> None:
    import timm  # may import torch_musa, so not before the device is known

    torch.manual_seed(0)
    if tiny:
        model = timm.create_model(
            "convnext_atto", num_classes=CLASSES, depths=(1, 1, 1, 1), dims=(8, 16, 16, 16)
        )
    else:
        model = timm.create_model("convnext_tiny", num_classes=CLASSES)
    side = 64 if tiny else 224
    images = torch.randn(4 if tiny else BATCH, 3, side, side)
    labels = torch.arange(len(images)) % CLASSES
    model = model.to(device, memory_format=torch.channels_last)
    images = images.to(device, memory_format=torch.channels_last)
    labels = labels.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16):
            loss = functional.cross_entropy(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())
    print(json.dumps([round(float(loss), 6) for loss in losses]))


if __name__ == "__main__":
    main(sys.argv[1], "--tiny" in sys.argv)
