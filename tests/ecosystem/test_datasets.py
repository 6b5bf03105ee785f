# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""datasets: rows become tensors on musa, and functions of the device map them."""

from __future__ import annotations

import datasets
import pytest
import torch

from tests.ecosystem.tiny import images, tokens


def rows() -> datasets.Dataset:
    table = {
        "x": tokens(12, 4).float().tolist(),
        "y": tokens(12).tolist(),
        "name": [f"row {n}" for n in range(12)],
    }
    return datasets.Dataset.from_dict(table)


@pytest.mark.parametrize("place", ["musa", "musa:1"])
def test_tensors_on_the_device(place, both):
    def program(device):
        chosen = rows().with_format("torch", columns=["x", "y"], device=place if device == "musa" else device)
        batch = chosen[2:5]
        assert {str(tensor.device) for tensor in batch.values()} <= {
            "cpu",
            "musa:0" if place == "musa" else place,
        }
        return [batch["x"] * 2, batch["y"] + 1, chosen[3]["x"].sum()]

    both(program)


def test_a_function_of_the_device_maps_rows(both):
    def program(device):
        weight = images(4, 3).to(device)

        def apply(batch):
            return {"z": (torch.tensor(batch["x"], device=device) @ weight).cpu().numpy()}

        return torch.tensor(rows().map(apply, batched=True, batch_size=5)["z"][:])

    both(program, cpu_results="datasets keeps rows in host memory")


def test_an_iterable_dataset_in_a_loader(both):
    def program(device):
        stream = rows().select_columns(["x", "y"]).to_iterable_dataset(num_shards=2).with_format("torch")
        loader = torch.utils.data.DataLoader(stream, batch_size=4, num_workers=0)
        return [batch["x"].to(device).mean(1) * batch["y"].to(device) for batch in loader]

    both(program)


def test_a_loader_with_workers_and_pinned_memory(both):
    def program(device):
        chosen = rows().with_format("torch", columns=["x"])
        loader = torch.utils.data.DataLoader(chosen, batch_size=4, num_workers=1, pin_memory=device == "musa")
        return [batch["x"].to(device, non_blocking=True) * 2 for batch in loader]

    both(program)
