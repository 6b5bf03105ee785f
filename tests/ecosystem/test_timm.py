# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""timm: models train and infer on musa as on the CPU, with EMA, mixup and the prefetching loader."""

from __future__ import annotations

import pytest
import timm
import timm.data
import timm.loss
import timm.optim
import timm.utils
import torch

from tests.ecosystem.training import gradients, moved, steps, without_dropout

# Each with arguments that make it small, and the largest allowed difference: batch norm over few values
# amplifies rounding.
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


def test_channels_last_and_autocast(both):
    def program(device):
        model = made("resnet18", device).to(memory_format=torch.channels_last).eval()
        x, _ = images(device)
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            return model(x.contiguous(memory_format=torch.channels_last))

    # bfloat16 has 8 bits, and the devices' lists of operators for autocast differ.
    both(program, within=3e-2)


def test_averages_of_weights(both):
    def program(device):
        model = made("vit_tiny_patch16_224", device, img_size=64, depth=1)
        average = timm.utils.ModelEmaV3(model, decay=0.5)
        x, y = images(device)
        steps(model, lambda: torch.nn.functional.cross_entropy(model(x), y), 2)
        average.update(model)
        with torch.no_grad():
            return average.module.eval()(x)

    both(program, within=1e-4)


def test_mixup(both):
    def program(device):
        mix = timm.data.Mixup(mixup_alpha=0.8, cutmix_alpha=1.0, num_classes=7)  # draws from numpy
        x, y = mix(*images(device, 4))
        loss = timm.loss.SoftTargetCrossEntropy()(torch.nn.functional.one_hot(y.argmax(-1), 7).float(), y)
        return [x * 1, y, loss]

    both(program)


@pytest.mark.parametrize("name", ["adamw", "lamb", "lion", "adan", "muon"])
def test_optimizers(name, both):
    def program(device):
        model = made("vit_tiny_patch16_224", device, img_size=64, depth=1)
        x, y = images(device)
        optimizer = timm.optim.create_optimizer_v2(model, name, lr=1e-3, weight_decay=0.05)
        return steps(model, lambda: torch.nn.functional.cross_entropy(model(x), y), 3, optimizer)

    both(program, within=1e-3)


def test_the_prefetching_loader(both):
    """timm's loader normalizes on the device; it gets the device by name."""

    class Pictures(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, number):
            from PIL import Image

            generator = torch.Generator().manual_seed(number)
            values = torch.randint(0, 255, (32, 32, 3), generator=generator, dtype=torch.uint8)
            return self.transform(Image.fromarray(values.numpy())), number  # create_loader sets it

    def program(device):
        loader = timm.data.create_loader(
            Pictures(),
            (3, 32, 32),
            batch_size=2,
            num_workers=0,
            device=torch.device(device),
            persistent_workers=False,
        )
        return [[x * 1, y] for x, y in loader]

    both(program)
