# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains a small model on two processes with Accelerator, in the mode that the first argument names."""

from __future__ import annotations

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object

from tests.ecosystem import tiny, vision_schemas
from tests.ecosystem.programs import reporting

WAY = sys.argv[1]
DEVICE = os.environ["MUSA_ECOSYSTEM_DEVICE"]


def plugin():
    from accelerate import FullyShardedDataParallelPlugin

    version = 2 if WAY.startswith("fsdp2") else 1
    options = {"fsdp_version": version, "auto_wrap_policy": "transformer_based_wrap"}
    options["transformer_cls_names_to_wrap"] = ["LlamaDecoderLayer"]
    if version == 1:
        options |= {"use_orig_params": True, "cpu_offload": WAY == "fsdp1 offload"}
    return FullyShardedDataParallelPlugin(**options)


def save_and_load(accelerator: Accelerator, model: torch.nn.Module) -> None:
    """Saves the state, overwrites the weights and loads the state."""
    folder = os.environ["MUSA_ECOSYSTEM_REPORTS"]
    accelerator.save_state(f"{folder}/state")
    accelerator.wait_for_everyone()
    for parameter in model.parameters():
        parameter.data.zero_()
    accelerator.load_state(f"{folder}/state")


def main() -> None:
    vision_schemas.declare()
    options = {"fsdp_plugin": plugin()} if WAY.startswith("fsdp") else {}
    accelerator = Accelerator(cpu=DEVICE == "cpu", **options)
    assert accelerator.device.type == DEVICE and accelerator.num_processes == 2, accelerator.state
    torch.manual_seed(0)
    model = tiny.llama("cpu")
    rows = [{"input_ids": row, "labels": row} for row in tiny.tokens(16, 8)]
    loader = torch.utils.data.DataLoader(rows, batch_size=2)
    if WAY.startswith("fsdp1"):  # replaces the parameters
        model = accelerator.prepare(model)
        optimizer, loader = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1), loader)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    with reporting(accelerator.process_index) as result:
        losses = []
        for batch in loader:
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.reduce(loss.detach().float(), "mean"))
        result["losses"] = torch.stack(losses)
        if WAY == "collectives":
            mine = torch.arange(3.0, device=accelerator.device) + accelerator.process_index
            result["gathered"] = accelerator.gather(mine)
            result["for metrics"] = accelerator.gather_for_metrics(mine)
            result["reduced"] = accelerator.reduce(mine, "sum")
            result["padded"] = accelerator.pad_across_processes(mine[: accelerator.process_index + 1])
            result["objects"] = gather_object([accelerator.process_index])
            result["broadcast"] = broadcast_object_list([accelerator.process_index])
            if (
                DEVICE != "cpu"
            ):  # accelerate's barrier names the accelerator's device, which gloo does not have
                save_and_load(accelerator, model)
            result["weights"] = accelerator.unwrap_model(model).lm_head.weight
    accelerator.end_training()


if __name__ == "__main__":
    main()
