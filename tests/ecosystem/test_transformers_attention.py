# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The attention "musa_packed" for transformers: packed rows give the losses and gradients of single rows."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("transformers", reason="needs the package transformers, which tests/ecosystem installs")

from torch.profiler import ProfilerActivity, profile
from transformers import DataCollatorWithFlattening, LlamaConfig, LlamaForCausalLM

import torch_musa.integrations.transformers

LENGTHS = (7, 12, 3)


def llama(**options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "vocab_size": 64}
    config = LlamaConfig(num_attention_heads=4, num_key_value_heads=2, **sizes, **options)
    config._attn_implementation = "musa_packed"
    return LlamaForCausalLM(config).to("musa")


@pytest.fixture(scope="module")
def rows():
    torch.manual_seed(1)
    return [torch.randint(0, 64, (length,)).tolist() for length in LENGTHS]


def packed(rows):
    collator = DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    batch = collator([{"input_ids": row} for row in rows])
    return {name: x.to("musa") if torch.is_tensor(x) else x for name, x in batch.items()}


def operators(run):
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        result = run()
    return result, {event.key for event in recorded.key_averages()}


def is_packed(names):
    return any("_varlen_attn" in name for name in names)


def test_packed_rows_give_the_losses_and_gradients_of_single_sequences(rows):
    model, batch = llama(), packed(rows)
    result, names = operators(lambda: model(**batch))
    assert is_packed(names), names
    result.loss.backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    tokens, losses = sum(LENGTHS) - len(LENGTHS), []
    for row in rows:
        ids = torch.tensor([row], device="musa")
        single = model(ids, labels=ids)
        (single.loss * (len(row) - 1) / tokens).backward()
        losses.append(single.loss.item() * (len(row) - 1) / tokens)
    torch.testing.assert_close(result.loss.item(), sum(losses), rtol=1e-5, atol=1e-6)
    for got, p in zip(gradients, model.parameters()):
        torch.testing.assert_close(got, p.grad, rtol=1e-4, atol=1e-5)


def test_without_lengths_it_is_sdpa(rows):
    model = llama()
    ids = torch.tensor([rows[0], rows[1][:7]], device="musa")
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    result, names = operators(lambda: model(ids, attention_mask=mask).logits)
    assert not is_packed(names)
    model.set_attn_implementation("sdpa")
    torch.testing.assert_close(result, model(ids, attention_mask=mask).logits, rtol=0, atol=0)
    model.set_attn_implementation("musa_packed")
    assert model.generate(ids[:1], max_new_tokens=4, do_sample=False).shape == (1, 11)


def test_with_dropout_it_is_sdpa(rows):
    model = llama(attention_dropout=0.5).train()
    _, names = operators(lambda: model(**packed(rows)))
    assert not is_packed(names)
    _, names = operators(lambda: model.eval()(**packed(rows)))
    assert is_packed(names)


def test_the_module_names_its_implementation():
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    assert ALL_ATTENTION_FUNCTIONS["musa_packed"] is torch_musa.integrations.transformers.packed_attention
