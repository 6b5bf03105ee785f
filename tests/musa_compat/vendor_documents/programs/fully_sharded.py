# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""fully_shard, whose communication the vendor's package tunes by variables of the environment."""

import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import torch_musa  # noqa: F401

assert os.environ["TORCH_MUSA_FSDP2_COMM_TYPE"] == "1"
store = dist.HashStore()
dist.init_process_group("mccl", store=store, rank=0, world_size=1)
model = torch.nn.Linear(4, 4).musa()
fully_shard(model)
model(torch.ones(2, 4, device="musa")).sum().backward()
assert model.weight.grad.to_local().is_musa
dist.destroy_process_group()
print("done")
