# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""einops: its functions and layers on musa."""

from __future__ import annotations

import einops
import pytest
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce

from tests.ecosystem.training import gradients

FUNCTIONS = {
    "rearrange": lambda x: einops.rearrange(x, "b (h a) (w c) -> b h w (a c)", a=2, c=2),
    "reduce": lambda x: einops.reduce(x, "b h w -> b w", "max"),
    "repeat": lambda x: einops.repeat(x, "b h w -> b r h w", r=2),
    "einsum": lambda x: einops.einsum(x, x, "b i k, b j k -> b i j"),
    "pack": lambda x: einops.pack([x, x * 2], "b * w")[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, both):
    def program(device):
        x = torch.arange(2 * 4 * 6.0).reshape(2, 4, 6).to(device).requires_grad_()
        y = FUNCTIONS[name](x)
        (y * y).sum().backward()
        return [y, x.grad]

    both(program)


def test_layers(both):
    def program(device):
        torch.manual_seed(0)
        layers = torch.nn.Sequential(
            Rearrange("b (h w) -> b h w", h=4),
            EinMix("b h w -> b h c", weight_shape="w c", bias_shape="c", w=6, c=5),
            Reduce("b h c -> b c", "mean"),
        ).to(device)
        loss = layers(torch.arange(48.0).reshape(2, 24).to(device)).square().sum()
        loss.backward()
        return [loss, gradients(layers)]

    both(program)
