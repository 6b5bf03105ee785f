# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""trl: its trainers run on musa without a device argument."""

from __future__ import annotations

import datasets
import peft
import pytest
import torch
import trl

from tests.ecosystem import tiny
from tests.ecosystem.test_transformers_serving import tokenizer

WORDS = [f"w{number}" for number in range(3, 40)]
COMMON = {"max_steps": 2, "per_device_train_batch_size": 2, "report_to": [], "save_strategy": "no", "seed": 0}
COMMON |= {"logging_steps": 1, "disable_tqdm": True, "gradient_checkpointing": False, "bf16": False}


def sentence(number: int, count: int) -> str:
    return " ".join(WORDS[(number * 7 + word) % len(WORDS)] for word in range(count))


def chosen(kind, device: str, folder, **options):
    more = {"use_cpu": device == "cpu", "dataloader_pin_memory": False, "output_dir": str(folder / device)}
    return kind(**{**COMMON, **more, **options})


def losses(trainer) -> list[float]:
    assert trainer.args.device.type in ("cpu", "musa")
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


SFT = {
    "defaults": {},
    "packing": {"packing": True, "max_length": 16},
    "completions only": {"completion_only_loss": True},
    "bf16": {"bf16": True},
}


@pytest.mark.parametrize("lora", [False, True], ids=["whole", "lora"])
@pytest.mark.parametrize("variant", SFT)
def test_supervised(variant, lora, both, tmp_path):
    if variant == "completions only":
        table = {
            "prompt": [sentence(n, 4) for n in range(8)],
            "completion": [sentence(n + 3, 4) for n in range(8)],
        }
    else:
        table = {"text": [sentence(n, 6 + n % 3) for n in range(8)]}

    def program(device):
        adapter = (
            peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM") if lora else None
        )
        trainer = trl.SFTTrainer(
            model=tiny.llama("cpu"),
            args=chosen(trl.SFTConfig, device, tmp_path, **SFT[variant]),
            train_dataset=datasets.Dataset.from_dict(table),
            processing_class=tokenizer(),
            peft_config=adapter,
        )
        trainer.train()
        return losses(trainer)

    both(program, within=5e-3 if variant == "bf16" else 1e-4)


def test_preferences(both, tmp_path):
    """DPO with its reference model."""
    table = {
        name: [sentence(n + shift, 4) for n in range(8)]
        for shift, name in enumerate(("prompt", "chosen", "rejected"))
    }

    def program(device):
        trainer = trl.DPOTrainer(
            model=tiny.llama("cpu"),
            ref_model=tiny.llama("cpu", seed=2),
            args=chosen(trl.DPOConfig, device, tmp_path),
            train_dataset=datasets.Dataset.from_dict(table),
            processing_class=tokenizer(),
        )
        trainer.train()
        return losses(trainer)

    both(program, within=1e-4)


def test_rewards(both, tmp_path):
    table = {"chosen": [sentence(n, 5) for n in range(8)], "rejected": [sentence(n + 3, 5) for n in range(8)]}

    def program(device):
        configuration = tiny.config("Llama", **tiny.GROUPED, num_labels=1)
        trainer = trl.RewardTrainer(
            model=tiny.model("LlamaForSequenceClassification", configuration, "cpu"),
            args=chosen(trl.RewardConfig, device, tmp_path),
            train_dataset=datasets.Dataset.from_dict(table),
            processing_class=tokenizer(),
        )
        trainer.train()
        return losses(trainer)

    both(program, within=1e-4)


def test_policy_optimization(both, tmp_path):
    """GRPO draws its samples on the device, so they differ from the CPU's and losses are not compared."""
    table = {"prompt": [sentence(n, 4) for n in range(8)]}

    def program(device):
        trainer = trl.GRPOTrainer(
            model=tiny.llama("cpu"),
            reward_funcs=lambda completions, **others: [float(len(text)) for text in completions],
            args=chosen(trl.GRPOConfig, device, tmp_path, num_generations=2, max_completion_length=6),
            train_dataset=datasets.Dataset.from_dict(table),
            processing_class=tokenizer(),
        )
        trainer.train()
        assert torch.tensor(losses(trainer)).isfinite().all() and trainer.args.device.type == device
        return len(losses(trainer))

    both(program)
