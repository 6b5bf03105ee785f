# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Mixtures of experts: routing and grouped products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vllm.model_executor.layers.fused_moe.activation import MoEActivation
from vllm.model_executor.layers.fused_moe.config import FusedMoEConfig
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod

if TYPE_CHECKING:
    from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts

APPROXIMATIONS = {MoEActivation.GELU: "none", MoEActivation.GELU_TANH: "tanh"}


@UnquantizedFusedMoEMethod.register_oot
class MusaExperts(UnquantizedFusedMoEMethod):
    """Chooses experts for each token, sorts the tokens by expert, and multiplies each group by its weights.

    vLLM calls it "monolithic" because it includes the routing; vLLM's own routing needs kernels of CUDA.
    """

    is_monolithic = True

    def __init__(self, moe: FusedMoEConfig) -> None:
        super().__init__(moe)
        if moe.activation is not MoEActivation.SILU and moe.activation not in APPROXIMATIONS:
            raise NotImplementedError(
                f"Experts with the activation {moe.activation.value} are not served on musa."
            )

    def apply_monolithic(
        self,
        layer: RoutedExperts,
        x: torch.Tensor,
        router_logits: torch.Tensor,
        input_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns the weighted sum of the experts' results, of shape and dtype of `x`, [tokens, hidden]."""
        weights, experts = self._route(layer, x, router_logits)
        tokens, choices = experts.shape
        count = layer.w13_weight.shape[0]
        if layer.expert_map is not None:
            # Experts of other ranks are -1 in the map. They become a last group, which no product covers.
            experts = layer.expert_map[experts.long()].to(torch.int32)
            experts = torch.where(experts < 0, count, experts)
            order, offsets = torch.ops.musa_serving.moe_group(experts, count + 1)
            offsets = offsets[:count]
        else:
            order, offsets = torch.ops.musa_serving.moe_group(experts, count)
        order = order.long()
        of_row = experts.flatten()[order].long()
        rows = x[order // choices]
        row_weights = weights.flatten()[order].unsqueeze(1)
        if layer.apply_router_weight_on_input:
            rows = (rows * row_weights).to(x.dtype)
        hidden = self._product(rows, layer.w13_weight, getattr(layer, "w13_bias", None), of_row, offsets)
        result = self._product(
            self._activate(hidden), layer.w2_weight, getattr(layer, "w2_bias", None), of_row, offsets
        )
        if layer.expert_map is not None:
            result = torch.where((of_row < count).unsqueeze(1), result, 0)
        result = result.float()
        if not layer.apply_router_weight_on_input:
            result = result * row_weights
        # A permutation and a sum, because the order of atomic additions would differ between runs.
        ordered = torch.empty_like(result)
        ordered[order] = result
        return ordered.view(tokens, choices, -1).sum(1).to(x.dtype)

    def _route(
        self, layer: RoutedExperts, x: torch.Tensor, router_logits: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns weights and experts of the tokens, both [tokens, choices]."""
        if layer.custom_routing_function is not None:
            return layer.custom_routing_function(
                hidden_states=x, gating_output=router_logits, topk=layer.top_k, renormalize=layer.renormalize
            )
        grouped = layer.use_grouped_topk
        return torch.ops.musa_serving.moe_route(
            router_logits,
            layer.top_k,
            scoring=layer.scoring_func,
            renormalize=layer.renormalize,
            groups=layer.num_expert_group if grouped else 1,
            top_groups=layer.topk_group if grouped else 1,
            bias=layer.e_score_correction_bias,
            scale=layer.routed_scaling_factor,
        )

    def _activate(self, hidden: torch.Tensor) -> torch.Tensor:
        if self.moe.activation is MoEActivation.SILU:
            return torch.ops.musa_serving.silu_and_mul(hidden)
        return torch.ops.musa_serving.gelu_and_mul(hidden, APPROXIMATIONS[self.moe.activation])

    @staticmethod
    def _product(
        rows: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        of_row: torch.Tensor,
        offsets: torch.Tensor,
    ) -> torch.Tensor:
        """Returns rows [n, in] times weights [experts, out, in]; `offsets`: the ends of the experts' rows."""
        product = torch.nn.functional.grouped_mm(rows, weight.transpose(-2, -1), offs=offsets)
        return product if bias is None else product + bias[of_row.clamp(max=bias.shape[0] - 1)]
