# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Trains a small model on two processes with transformers' Trainer, in the mode that the first argument
names."""

from __future__ import annotations

import os
import sys

import torch
import transformers

from tests.ecosystem import tiny, vision_schemas
from tests.ecosystem.programs import reporting

WAY = sys.argv[1]
DEVICE = os.environ["MUSA_ECOSYSTEM_DEVICE"]
FSDP = {
    "fsdp": "full_shard auto_wrap",
    "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
}
WAYS = {"ddp": {}, "fsdp2 bf16": {**FSDP, "bf16": True}}


def main() -> None:
    vision_schemas.declare()
    rows = [{"input_ids": row, "labels": row} for row in tiny.tokens(32, 8)]
    arguments = transformers.TrainingArguments(
        output_dir=os.environ["MUSA_ECOSYSTEM_REPORTS"],
        max_steps=3,
        per_device_train_batch_size=2,
        seed=0,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=DEVICE == "cpu",
        dataloader_pin_memory=False,
        optim="sgd",
        learning_rate=0.1,
        **WAYS[WAY],
    )
    assert arguments.device.type == DEVICE and arguments.world_size == 2, arguments.device
    with reporting(arguments.process_index) as result:
        trainer = transformers.Trainer(model=tiny.llama("cpu"), args=arguments, train_dataset=rows)
        trainer.train()
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        result["losses"] = torch.tensor(losses)
        if DEVICE == "musa":
            places = {p.device.type for p in trainer.model.parameters()}
            assert places == {"musa"} and torch.distributed.get_backend() == "mccl", places


if __name__ == "__main__":
    main()
