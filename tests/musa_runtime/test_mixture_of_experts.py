# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Mixtures of experts train on the device as on the CPU: histograms of integers, gathers and sums."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch


class Experts(torch.nn.Module):
    """A router and experts, with the two usual groupings of tokens: sorted by expert, or one mask each."""

    def __init__(self, width: int = 16, hidden: int = 24, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.router = torch.nn.Linear(width, experts, bias=False)
        self.up = torch.nn.Parameter(torch.randn(experts, width, hidden) * 0.1)
        self.down = torch.nn.Parameter(torch.randn(experts, hidden, width) * 0.1)
        self.experts, self.chosen = experts, chosen

    def route(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights, chosen = self.router(tokens).softmax(-1).topk(self.chosen, dim=-1)
        return weights / weights.sum(-1, keepdim=True), chosen

    def sorted_by_expert(self, tokens: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.route(tokens)
        order = chosen.view(-1).argsort(stable=True)
        expert_of = chosen.view(-1)[order]
        # As in transformers, because the CPU has no histogram of integers.
        countable = expert_of.float() if tokens.is_cpu else expert_of.int()
        counts = torch.histc(countable, bins=self.experts, min=0, max=self.experts - 1)
        assert torch.equal(counts.long(), torch.bincount(expert_of, minlength=self.experts))
        rows = order // self.chosen
        parts = tokens[rows].split(counts.long().tolist())
        groups = [torch.nn.functional.silu(part @ self.up[e]) @ self.down[e] for e, part in enumerate(parts)]
        scaled = torch.cat(groups) * weights.view(-1)[order].unsqueeze(-1)
        return torch.zeros_like(tokens).index_add(0, rows, scaled)

    def masked_by_expert(self, tokens: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.route(tokens)
        mask = torch.nn.functional.one_hot(chosen, self.experts).permute(2, 1, 0)
        result = torch.zeros_like(tokens)
        for expert in mask.sum((-1, -2)).gt(0).nonzero().view(-1).tolist():
            place, row = torch.where(mask[expert])
            out = torch.nn.functional.silu(tokens[row] @ self.up[expert]) @ self.down[expert]
            result.index_add_(0, row, out * weights[row, place, None])
        return result


def _step(device: str, way: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    layer = Experts()
    tokens = torch.randn(20, 16)
    layer, tokens = layer.to(device), tokens.to(device).requires_grad_()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.01)
    loss = getattr(layer, way)(tokens).square().sum()
    loss.backward()
    optimizer.step()
    gradients = [parameter.grad for parameter in layer.parameters()]
    return [each.detach().cpu() for each in (loss, tokens.grad, *gradients, *layer.parameters())]


@pytest.mark.needs("musa-ops-ported")
@pytest.mark.parametrize("way", ["sorted_by_expert", "masked_by_expert"])
def test_a_training_step_of_experts_equals_the_cpu(musa, way: str) -> None:
    torch.testing.assert_close(_step("musa", way), _step("cpu", way), rtol=1e-5, atol=1e-5)


@pytest.mark.needs("musa-ops-ported")  # torch's CPU kernel counts floating-point numbers alone
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_are_counted_in_every_dtype(musa, dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 1, 3, 3, 3], dtype=dtype)
    counts = torch.histc(x.musa(), bins=4, min=0, max=3)
    assert counts.dtype is dtype and counts.tolist() == [1, 2, 0, 3]


_SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "num_experts_per_tok": 2,
}


def _mixtral(transformers) -> torch.nn.Module:
    config = transformers.MixtralConfig(
        **_SMALL, num_key_value_heads=2, num_local_experts=4, output_router_logits=True
    )
    return transformers.MixtralForCausalLM(config)


def _qwen3_moe(transformers) -> torch.nn.Module:
    config = transformers.Qwen3MoeConfig(
        **_SMALL, num_key_value_heads=2, moe_intermediate_size=24, num_experts=4, head_dim=8
    )
    return transformers.Qwen3MoeForCausalLM(config)


def _deepseek_v3(transformers) -> torch.nn.Module:
    heads = {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
    experts = {"n_routed_experts": 8, "n_group": 2, "topk_group": 1, "n_shared_experts": 1}
    config = transformers.DeepseekV3Config(
        **_SMALL,
        **heads,
        **experts,
        num_key_value_heads=4,
        moe_intermediate_size=24,
        first_k_dense_replace=1,
        q_lora_rank=16,
        kv_lora_rank=16,
    )
    return transformers.DeepseekV3ForCausalLM(config)


@pytest.mark.full
@pytest.mark.parametrize("make", [_mixtral, _qwen3_moe, _deepseek_v3])
def test_models_of_transformers_train_as_on_the_cpu(musa, make: Callable) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed. Fix: pip install transformers"
    )

    def step(device: str) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = make(transformers).to(device).train()
        ids = torch.randint(0, 64, (2, 16), generator=torch.Generator().manual_seed(1)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        gradients = [each.grad.cpu() for each in model.parameters() if each.grad is not None]
        optimizer.step()
        return [loss.detach().cpu(), *gradients, *(each.detach().cpu() for each in model.parameters())]

    torch.testing.assert_close(step("musa"), step("cpu"), rtol=1e-5, atol=1e-5)
