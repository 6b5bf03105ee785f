# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""peft: adapters train, merge and load on musa as on the CPU."""

from __future__ import annotations

import peft
import pytest
import torch

from tests.ecosystem import tiny
from tests.ecosystem.training import gradients, steps

TARGETS = {"target_modules": ["q_proj", "v_proj"]}
TASK = {"task_type": "CAUSAL_LM"}
METHODS = {
    "lora": lambda: peft.LoraConfig(r=4, **TARGETS, **TASK),
    "rslora": lambda: peft.LoraConfig(r=4, use_rslora=True, **TARGETS, **TASK),
    "dora": lambda: peft.LoraConfig(r=4, use_dora=True, **TARGETS, **TASK),
    "pissa": lambda: peft.LoraConfig(r=4, init_lora_weights="pissa", **TARGETS, **TASK),
    "olora": lambda: peft.LoraConfig(r=4, init_lora_weights="olora", **TARGETS, **TASK),
    "lora of all layers": lambda: peft.LoraConfig(r=2, target_modules="all-linear", **TASK),
    "ia3": lambda: peft.IA3Config(
        target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"], **TASK
    ),
    "prefix": lambda: peft.PrefixTuningConfig(num_virtual_tokens=3, **TASK),
    "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=3, **TASK),
    "p-tuning": lambda: peft.PromptEncoderConfig(num_virtual_tokens=3, encoder_hidden_size=16, **TASK),
    "adalora": lambda: peft.AdaLoraConfig(
        init_r=4, target_r=2, total_step=10, tinit=1, tfinal=2, **TARGETS, **TASK
    ),
    "loha": lambda: peft.LoHaConfig(r=4, **TARGETS, **TASK),
    "lokr": lambda: peft.LoKrConfig(r=4, **TARGETS, **TASK),
    "oft": lambda: peft.OFTConfig(r=0, oft_block_size=8, **TARGETS, **TASK),
    "boft": lambda: peft.BOFTConfig(boft_block_size=4, **TARGETS, **TASK),
    "vera": lambda: peft.VeraConfig(r=4, **TARGETS, **TASK),
    "layer norms": lambda: peft.LNTuningConfig(target_modules=["input_layernorm"], **TASK),
    "fourier": lambda: peft.FourierFTConfig(n_frequency=8, **TARGETS, **TASK),
}
# These methods learn inputs, not weights that could be added to a layer's.
NOT_MERGED = {"prefix", "prompt", "p-tuning"}


@pytest.mark.parametrize("method", METHODS)
def test_methods(method, both):
    def program(device):
        torch.manual_seed(0)
        # Adapters draw their weights on the CPU, then the whole model is moved.
        model = peft.get_peft_model(tiny.llama("cpu"), METHODS[method]()).to(device)
        inputs = tiny.tokens(2, 8).to(device)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
        losses = steps(model, lambda: model(input_ids=inputs, labels=inputs).loss, 3, optimizer)
        found = {"losses": losses, "gradients": gradients(model)}
        assert found["gradients"]
        with torch.no_grad():
            found["output"] = model.eval()(input_ids=inputs).logits
            if method not in NOT_MERGED:
                merged = model.merge_and_unload()
                found["merged"] = merged(input_ids=inputs).logits
        return found

    both(program, within=1e-4)


def test_an_adapter_is_saved_and_loaded_on_the_device(both, tmp_path):
    def program(device):
        torch.manual_seed(0)
        model = peft.get_peft_model(tiny.llama("cpu"), METHODS["lora"]()).to(device)
        inputs = tiny.tokens(2, 8).to(device)
        steps(model, lambda: model(input_ids=inputs, labels=inputs).loss, 2)
        model.save_pretrained(tmp_path / device)
        again = peft.PeftModel.from_pretrained(tiny.llama(device), tmp_path / device).eval()
        assert {parameter.device.type for parameter in again.parameters()} == {device}
        with torch.no_grad():
            assert torch.equal(again(input_ids=inputs).logits, model.eval()(input_ids=inputs).logits)
            return again(input_ids=inputs).logits

    both(program, within=1e-4)


def test_adapters_are_switched_and_combined(both):
    def program(device):
        torch.manual_seed(0)
        model = peft.get_peft_model(tiny.llama("cpu"), METHODS["lora"](), adapter_name="one")
        model.add_adapter("two", METHODS["lora"]())
        for parameter in model.parameters():
            if parameter.ndim == 2 and parameter.shape[1] == 4:
                torch.nn.init.normal_(parameter)
        model = model.to(device).eval()
        model.add_weighted_adapter(["one", "two"], [0.5, 0.5], adapter_name="both", combination_type="linear")
        inputs, found = tiny.tokens(2, 8).to(device), {}
        with torch.no_grad():
            for name in ("one", "two", "both"):
                model.set_adapter(name)
                found[name] = model(input_ids=inputs).logits
            with model.disable_adapter():
                found["none"] = model(input_ids=inputs).logits
        return found

    both(program, within=1e-4)


def test_mixed_precision_training_of_lora(both):
    def program(device):
        torch.manual_seed(0)
        base = tiny.llama("cpu").to(torch.bfloat16)
        model = peft.get_peft_model(base, METHODS["lora"](), autocast_adapter_dtype=True).to(device)
        inputs = tiny.tokens(2, 8).to(device)
        assert {p.dtype for p in model.parameters() if p.requires_grad} == {torch.float32}
        return steps(model, lambda: model(input_ids=inputs, labels=inputs).loss, 2)

    both(program, within=5e-3)
