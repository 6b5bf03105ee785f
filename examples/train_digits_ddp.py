# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Train the network of train_digits.py on several MUSA devices, each with its share of every batch.

It needs what train_digits.py needs. torchrun starts a process per device, and starts them again, from the
last checkpoint in --out, which is examples/out/digits_ddp by default, when one ends:

torchrun --nproc-per-node=musa --max-restarts=3 examples/train_digits_ddp.py --epochs 15
MUSA_EMULATOR_DEVICES=2 torchrun --nproc-per-node=musa examples/train_digits_ddp.py    # on the emulator
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from train_digits import OUT, DigitsNet, load_data

GLOBAL_BATCH = 64  # images of all ranks


def train_epoch(model, loader, optimizer, device) -> torch.Tensor:
    """Trains on this rank's share for one epoch; returns the sum of losses, on the device."""
    model.train()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()  # averages the gradients over the ranks in the meantime
        optimizer.step()
        total += loss.detach() * len(labels)
    return total


@torch.no_grad()
def evaluate(model, loader, device) -> float:
    """Returns the accuracy over the images of all ranks."""
    model.eval()
    counts = torch.zeros(2, device=device)
    for images, labels in loader:
        right = (model(images.to(device)).argmax(1) == labels.to(device)).sum()
        counts += torch.stack([right, torch.tensor(len(labels), device=device)])
    dist.all_reduce(counts)
    correct, images = counts.tolist()
    return correct / images


def save(path: Path, **state) -> None:
    """Saves atomically, because the process may be ended while it writes."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.replace(path)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=OUT / "digits_ddp", metavar="DIR")
    arguments = parser.parse_args(argv)
    if "LOCAL_RANK" not in os.environ:
        parser.error("start it with torchrun: torchrun --nproc-per-node=musa examples/train_digits_ddp.py")

    device = torch.device("musa", int(os.environ["LOCAL_RANK"]))
    torch.musa.set_device(device)
    dist.init_process_group("mccl", device_id=device)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.out / "train_digits_ddp.pt"

    train_set, test_set = load_data(arguments.seed)
    sampler = DistributedSampler(train_set, seed=arguments.seed)
    train_loader = DataLoader(train_set, batch_size=GLOBAL_BATCH // ranks, sampler=sampler, pin_memory=True)
    test_sampler = DistributedSampler(test_set, shuffle=False)
    test_loader = DataLoader(test_set, batch_size=256, sampler=test_sampler, pin_memory=True)

    torch.manual_seed(arguments.seed)
    # Batch norm over the images of all ranks, so that results do not depend on their number.
    model = nn.SyncBatchNorm.convert_sync_batchnorm(DigitsNet().to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    done, losses, accuracies = 0, [], []
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done, losses, accuracies = state["epochs"], state["losses"], state["accuracies"]
        if rank == 0:
            print(f"going on after epoch {done}, from {checkpoint}", flush=True)
    model = DistributedDataParallel(model, device_ids=[device])

    for epoch in range(done, arguments.epochs):
        sampler.set_epoch(epoch)
        total = train_epoch(model, train_loader, optimizer, device)
        dist.all_reduce(total)
        losses.append(total.item() / len(sampler) / ranks)
        accuracies.append(evaluate(model.module, test_loader, device))
        if rank == 0:
            save(
                checkpoint,
                model=model.module.state_dict(),
                optimizer=optimizer.state_dict(),
                epochs=epoch + 1,
                losses=losses,
                accuracies=accuracies,
            )
            print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}, test accuracy {accuracies[-1]:.2%}", flush=True)

    if rank == 0:
        figures = {"ranks": ranks, "accuracy": accuracies[-1], "losses": losses, "accuracies": accuracies}
        (arguments.out / "train_digits_ddp.json").write_text(json.dumps(figures, indent=2) + "\n")
        print(f"test accuracy on {ranks} ranks: {accuracies[-1]:.2%}")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
