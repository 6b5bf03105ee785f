# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ray Train on musa: a trainer of two workers with DDP over MCCL, which gives the losses of one device."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("ray", reason="needs the package ray, which tests/ecosystem installs")

from tests.ecosystem.programs import run_starting_ranks

# Ray chooses a device among those of a closed list, so the program names it. Each worker holds one unit of
# the resource "MUSA", by which Ray counts the devices of a machine.
_PROGRAM = """
import json, sys, tempfile
import ray, torch
import ray.train
from ray.train.torch import TorchConfig, TorchTrainer, prepare_data_loader, prepare_model

ranks, out = int(sys.argv[1]), sys.argv[2]

def train(config):
    context = ray.train.get_context()
    device = torch.device("musa", context.get_local_rank())
    torch.musa.set_device(device)
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model = prepare_model(model, move_to_device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    torch.manual_seed(5)
    x = torch.randn(64, 8)
    rows = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(rows, 16 // config["ranks"])
    loader = prepare_data_loader(loader, move_to_device=False)
    losses = []
    for _ in range(3):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach()
            if config["ranks"] > 1:
                torch.distributed.all_reduce(mean, torch.distributed.ReduceOp.AVG)
            losses.append(mean.item())
    backend = torch.distributed.get_backend() if config["ranks"] > 1 else None
    result = {"losses": losses, "backend": backend, "device": str(next(model.parameters()).device),
              "model": type(model).__name__}
    with open(f"{config['out']}/rank{context.get_world_rank()}.json", "w") as file:
        json.dump(result, file)

with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:
    ray.init(num_cpus=2, resources={"MUSA": 2}, include_dashboard=False, _node_ip_address="127.0.0.1",
             _temp_dir=folder, log_to_driver=True)
    TorchTrainer(
        train,
        train_loop_config={"ranks": ranks, "out": out},
        torch_config=TorchConfig(backend="mccl"),
        scaling_config=ray.train.ScalingConfig(num_workers=ranks, resources_per_worker={"MUSA": 1, "CPU": 1}),
        run_config=ray.train.RunConfig(storage_path=out),
    ).fit()
    ray.shutdown()
"""


def train(tmp_path, ranks: int) -> list[dict]:
    folder = tmp_path / f"ranks{ranks}"
    return run_starting_ranks(folder, _PROGRAM, str(ranks), ranks=ranks, RAY_USAGE_STATS_ENABLED="0")


def test_a_trainer_of_two_workers_gives_the_losses_of_one(tmp_path):
    (one,) = train(tmp_path, 1)
    two = train(tmp_path, 2)
    assert one["losses"][-1] < one["losses"][0]
    for rank, result in enumerate(two):
        assert result["device"] == f"musa:{rank}" and result["backend"] == "mccl"
        assert result["model"] == "DistributedDataParallel"
        # Rank 0 takes the even rows of each 16, and rank 1 the odd ones.
        torch.testing.assert_close(result["losses"], one["losses"], rtol=1e-5, atol=1e-6)
