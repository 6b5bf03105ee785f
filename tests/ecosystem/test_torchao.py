# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchao: quantized models and optimizers on musa as on the CPU."""

from __future__ import annotations

import pytest
import torch
from torchao import optim, quantization
from torchao.quantization.qat import QATConfig

from tests.ecosystem.tiny import images
from tests.ecosystem.training import gradients, steps


def layers(device: str, dtype: torch.dtype = torch.float32) -> torch.nn.Sequential:
    torch.manual_seed(0)
    made = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
    return made.to(device=device, dtype=dtype)


WEIGHTS = {
    "int8 weights": lambda: quantization.Int8WeightOnlyConfig(),
    "int8 weights and activations": lambda: quantization.Int8DynamicActivationInt8WeightConfig(),
    "float8 weights": lambda: quantization.Float8WeightOnlyConfig(),
    "4 bits in int8": lambda: quantization.IntxWeightOnlyConfig(weight_dtype=torch.int4),
    "int8 activations, 4-bit weights": lambda: quantization.Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=quantization.PerGroup(32)
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", WEIGHTS)
def test_quantized_layers(name, dtype, both):
    def program(device):
        model = layers(device, dtype).eval()
        quantization.quantize_(model, WEIGHTS[name]())
        with torch.no_grad():
            return model(images(4, 64).to(device=device, dtype=dtype))

    # A value that is rounded to the next step of the quantization moves the result by that step.
    both(program, within=1e-2 if "activations" in name or dtype == torch.bfloat16 else 1e-5)


@pytest.mark.parametrize("step", ["prepare", "convert"])
def test_quantization_aware_training(step, both):
    def program(device):
        base = quantization.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=quantization.PerGroup(32)
        )
        model = layers(device)
        quantization.quantize_(model, QATConfig(base, step="prepare"))
        x = images(4, 64).to(device)
        losses = steps(
            model, lambda: model(x).square().mean(), 2, torch.optim.SGD(model.parameters(), lr=1e-3)
        )
        if step == "prepare":
            return {"losses": losses, "gradients": gradients(model)}
        quantization.quantize_(model, QATConfig(base, step="convert"))
        with torch.no_grad():
            return {"losses": losses, "converted": model(x)}

    both(program, within=1e-2)


def test_a_quantized_model_is_saved_and_loaded(both, tmp_path):
    def program(device):
        model = layers(device).eval()
        quantization.quantize_(model, WEIGHTS["int8 weights"]())
        torch.save(model.state_dict(), tmp_path / f"{device}.pt")
        other = layers(device).eval()
        other.load_state_dict(torch.load(tmp_path / f"{device}.pt", weights_only=False), assign=True)
        with torch.no_grad():
            return other(images(4, 64).to(device))

    both(program)


# Inductor compiles their steps, and the C++ compiler takes long.
@pytest.mark.full
@pytest.mark.parametrize("name", ["AdamW8bit", "AdamW4bit"])
def test_optimizers_of_few_bits(name, both):
    def program(device):
        torch._dynamo.reset()
        model = layers(device)
        optimizer = getattr(optim, name)(model.parameters(), lr=1e-3)
        x = images(4, 64).to(device)
        return steps(model, lambda: model(x).square().mean(), 3, optimizer)

    both(program, within=1e-2, watch_modules=False)
