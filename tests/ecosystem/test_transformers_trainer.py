# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""transformers' Trainer selects musa by itself and trains there as on the CPU, in each of its usual
variants."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from transformers import Trainer, TrainingArguments

from tests.ecosystem import tiny
from tests.ecosystem.tiny import tokens
from tests.ecosystem.training import gradients

STEPS = 4


class Rows(torch.utils.data.Dataset):
    """Rows of tokens whose labels are the tokens."""

    def __init__(self, count: int = 16) -> None:
        self.rows = tokens(count, 12)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[number], "labels": self.rows[number]}


def arguments(device: str, folder: Path, **options) -> TrainingArguments:
    common = {
        "output_dir": str(folder / device),
        "max_steps": STEPS,
        "per_device_train_batch_size": 4,
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "report_to": [],
        "save_strategy": "no",
        "disable_tqdm": True,
        "seed": 0,
        "use_cpu": device == "cpu",
        "dataloader_pin_memory": device != "cpu",
    }
    return TrainingArguments(**{**common, **options})


def losses(trainer: Trainer) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def trained(device: str, folder: Path, model=None, **options) -> dict:
    """Losses and weights after training, and the evaluation with do_eval."""
    model = tiny.llama("cpu") if model is None else model
    trainer = Trainer(
        model=model, args=arguments(device, folder, **options), train_dataset=Rows(), eval_dataset=Rows(4)
    )
    trainer.train()
    assert trainer.args.device.type == device
    result = {"losses": losses(trainer), "weights": dict(trainer.model.named_parameters())}
    if trainer.args.do_eval:
        result["eval"] = trainer.evaluate()["eval_loss"]
        result["predictions"] = trainer.predict(Rows(4)).predictions
    assert len(result["losses"]) == STEPS
    return result


VARIANTS = {
    "defaults": {},
    "evaluation and prediction": {"do_eval": True},
    "gradient checkpointing": {"gradient_checkpointing": True},
    "gradient accumulation": {"gradient_accumulation_steps": 2},
    "workers and pinned memory": {"dataloader_num_workers": 2},
    "adafactor": {"optim": "adafactor"},
    "sgd": {"optim": "sgd"},
    "adamw of torch": {"optim": "adamw_torch"},
    "fused adamw of torch": {"optim": "adamw_torch_fused"},
    "cosine schedule with warm-up": {"lr_scheduler_type": "cosine", "warmup_steps": 2},
    "weight decay and label smoothing": {"weight_decay": 0.1, "label_smoothing_factor": 0.1},
    "full determinism": {"full_determinism": True},
    "bf16 evaluation": {"bf16_full_eval": True, "do_eval": True},
    "tf32": {"tf32": True},
    "automatic batch size": {"auto_find_batch_size": True},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(variant, both, tmp_path):
    try:
        # Predictions are numpy arrays, and bfloat16 rounds sums of another order to other values.
        within = 2e-2 if variant == "bf16 evaluation" else 1e-4
        both(lambda device: trained(device, tmp_path, **VARIANTS[variant]), within=within)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.fp32_precision = "none"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision(precision, both, tmp_path):
    dtypes = set()

    def program(device):
        model = tiny.llama("cpu")
        model.lm_head.register_forward_hook(lambda module, args, output: dtypes.add((device, output.dtype)))
        # Trainer refuses fp16 on the CPU, whose losses in bf16 are close enough.
        options = {precision if device == "musa" else "bf16": True}
        return {"losses": trained(device, tmp_path, model, **options)["losses"]}

    both(program, within=5e-3, cpu_results="losses are numbers")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    assert ("musa", dtype) in dtypes


def test_a_classifier_of_images(both, tmp_path):

    class Pictures(Rows):
        def __getitem__(self, number):
            return {"pixel_values": tiny.images(3, 16, 16, seed=number), "labels": number % 2}

    def program(device):
        options = {**tiny.SMALL, **tiny.NO_DROPOUT, "image_size": 16, "patch_size": 8}
        model = tiny.model("ViTForImageClassification", tiny.config("ViT", **options), "cpu")
        chosen = arguments(device, tmp_path, optim="sgd")
        trainer = Trainer(model=model, args=chosen, train_dataset=Pictures())
        trainer.train()
        return {"losses": losses(trainer), "weights": dict(model.named_parameters())}

    both(program, within=1e-4)


def test_predict_with_generate(both, tmp_path):
    def program(device):
        sizes = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        configuration = tiny.config("T5", **sizes, dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0)
        model = tiny.model("T5ForConditionalGeneration", configuration, "cpu")
        options = vars(arguments(device, tmp_path))
        chosen = transformers.Seq2SeqTrainingArguments(
            output_dir=options["output_dir"],
            max_steps=2,
            report_to=[],
            use_cpu=device == "cpu",
            seed=0,
            save_strategy="no",
            logging_steps=1,
            predict_with_generate=True,
            generation_max_length=8,
            disable_tqdm=True,
            dataloader_pin_memory=device != "cpu",
        )
        trainer = transformers.Seq2SeqTrainer(
            model=model, args=chosen, train_dataset=Rows(), eval_dataset=Rows(4)
        )
        trainer.train()
        return {"losses": losses(trainer), "tokens": trainer.predict(Rows(4)).predictions}

    both(program, within=1e-4, cpu_results="predictions are numpy arrays")


def test_resumed_training_goes_on_as_if_not_interrupted(both, tmp_path):
    def program(device):
        options = {"save_strategy": "steps", "save_steps": 2}
        whole = trained(device, tmp_path / "whole", **options)
        trainer = Trainer(
            model=tiny.llama("cpu", seed=5), args=arguments(device, tmp_path / "whole"), train_dataset=Rows()
        )
        trainer.train(resume_from_checkpoint=str(tmp_path / "whole" / device / "checkpoint-2"))
        again = losses(trainer)
        assert again[-2:] == whole["losses"][-2:]
        state = torch.load(tmp_path / "whole" / device / "checkpoint-2" / "rng_state.pth", weights_only=False)
        assert device == "cpu" or "musa" in state
        return whole["losses"]

    both(program, within=1e-5)


def test_a_checkpoint_of_musa_is_read_on_the_cpu(both, tmp_path):
    def program(device):
        model = tiny.llama("cpu")
        trainer = Trainer(model=model, args=arguments(device, tmp_path), train_dataset=Rows())
        trainer.train()
        trainer.save_model(str(tmp_path / "saved"))
        read = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "saved")
        assert read.device.type == "cpu"
        assert all(torch.equal(a, b.cpu()) for a, b in zip(read.parameters(), model.parameters()))
        return [parameter.detach() for parameter in model.parameters()]

    both(program, within=1e-4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled(backend, both, tmp_path):
    options = {"torch_compile": True, "torch_compile_backend": backend, "max_steps": STEPS}

    def program(device):
        torch._dynamo.reset()
        found = trained(device, tmp_path, **options)
        return {"losses": found["losses"]}

    both(program, within=1e-4, watch_modules=False)


def test_memory_figures(both, tmp_path):
    """skip_memory_metrics=False reports the memory that training allocates on the device."""

    def program(device):
        trainer = Trainer(
            model=tiny.llama("cpu"),
            args=arguments(device, tmp_path, skip_memory_metrics=device == "cpu"),
            train_dataset=Rows(),
        )
        metrics = trainer.train().metrics
        if device != "cpu":
            assert any("gpu" in name for name in metrics), sorted(metrics)
        return losses(trainer)

    both(program, within=1e-4)


def test_gradients_reach_every_parameter(both, tmp_path):
    """A callback sees the gradients before the optimizer's step."""
    seen: dict = {}

    class Keep(transformers.TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model, **others):
            seen.update({name: grad.clone() for name, grad in gradients(model).items()})

    def program(device):
        seen.clear()
        trainer = Trainer(
            model=tiny.llama("cpu"),
            args=arguments(device, tmp_path),
            train_dataset=Rows(),
            callbacks=[Keep()],
        )
        trainer.train()
        return dict(seen)

    both(program, within=1e-4)
