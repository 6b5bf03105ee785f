# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""timm: models train and infer on musa as on the CPU, with EMA, mixup and the prefetching loader."""

from __future__ import annotations

import pytest
import timm
import torch

from tests.ecosystem.training import gradients, moved, steps, without_dropout

# Each with arguments that make it small, and the largest difference: batch norm over few values amplifies
# rounding.
MODELS = {
    "resnet18": ({}, 1e-4),
    "resnet50d": ({}, 1e-3),
    "mobilenetv3_small_050": ({}, 1e-3),
    "efficientnet_b0": ({}, 1e-3),
    "regnetx_002": ({}, 1e-3),
    "convnext_atto": ({}, 1e-4),
    "vit_tiny_patch16_224": ({"img_size": 64, "depth": 2}, 1e-4),
    "deit_tiny_patch16_224": ({"img_size": 64, "depth": 2}, 1e-4),
    "swin_tiny_patch4_window7_224": (
        {"img_size": 64, "window_size": 4, "depths": (1, 1, 1, 1), "drop_path_rate": 0.0},
        1e-4,
    ),
    "mixer_s32_224": ({"img_size": 64}, 1e-4),
    "densenet121": ({"block_config": (2, 2, 2, 2)}, 1e-3),
}


def made(name: str, device: str, **arguments) -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=7, **arguments)
    without_dropout(model.modules())
    return model.to(device)


def images(device: str, count: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return moved((torch.randn(count, 3, 64, 64), torch.arange(count) % 7), device)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, both):
    arguments, within = MODELS[name]

    def program(device):
        model = made(name, device, **arguments)
        x, y = images(device, 4)
        loss_of = lambda: torch.nn.functional.cross_entropy(model(x), y)  # noqa: E731
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        losses = steps(model, loss_of, 1, optimizer)
        found = {"losses": losses, "gradients": gradients(model)}
        with torch.no_grad():
            return {**found, "eval": model.eval()(x)}

    both(program, within=within)
