# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Derivatives of the operators that training uses, by torch's operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def save_norm(ctx: Any, inputs: tuple, output: Tensor) -> None:
    input, weight, ctx.epsilon = inputs
    ctx.save_for_backward(input, weight)


def rms_norm(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    input, weight = ctx.saved_tensors
    factors = (input.float().square().mean(-1, keepdim=True) + ctx.epsilon).rsqrt()
    mask = list(ctx.needs_input_grad[:2])
    return *aten._fused_rms_norm_backward(grad, input, weight.shape, factors, weight, mask), None


def save_gated(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0])
    ctx.approximate = inputs[1] if len(inputs) > 1 else None


def silu_and_mul(ctx: Any, grad: Tensor) -> Tensor:
    gates, values = ctx.saved_tensors[0].chunk(2, -1)
    return torch.cat([aten.silu_backward(grad * values, gates), grad * torch.nn.functional.silu(gates)], -1)


def gelu_and_mul(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    gates, values = ctx.saved_tensors[0].chunk(2, -1)
    of_gates = aten.gelu_backward(grad * values, gates, approximate=ctx.approximate)
    of_values = grad * torch.nn.functional.gelu(gates, approximate=ctx.approximate)
    return torch.cat([of_gates, of_values], -1), None


RULES = {
    "rms_norm": (rms_norm, save_norm),
    "silu_and_mul": (silu_and_mul, save_gated),
    "gelu_and_mul": (gelu_and_mul, save_gated),
}


def register(library: torch.library.Library) -> None:
    """Registers the derivatives. The operators exist."""
    for name, (backward, save) in RULES.items():
        torch.library.register_autograd(f"{library.ns}::{name}", backward, setup_context=save, lib=library)
