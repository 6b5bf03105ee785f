# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""kornia: image functions, augmentation and geometry on musa as on the CPU."""

from __future__ import annotations

import kornia
import pytest
import torch

from tests.ecosystem.tiny import images


def picture(device: str) -> torch.Tensor:
    return images(2, 3, 24, 24).sigmoid().to(device).requires_grad_()


FUNCTIONS = {
    "gaussian blur": lambda x: kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)),
    "sobel": lambda x: kornia.filters.sobel(x),
    "canny": lambda x: kornia.filters.canny(x)[0],
    "median blur": lambda x: kornia.filters.median_blur(x, (3, 3)),
    "bilateral blur": lambda x: kornia.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "rgb to hsv": lambda x: kornia.color.rgb_to_hsv(x),
    "rgb to lab": lambda x: kornia.color.rgb_to_lab(x),
    "equalize": lambda x: kornia.enhance.equalize(x.detach()),
    "rotate": lambda x: kornia.geometry.rotate(x, torch.tensor([30.0, 60.0], device=x.device)),
    "warp": lambda x: kornia.geometry.warp_perspective(
        x, torch.eye(3, device=x.device).repeat(2, 1, 1), (20, 20)
    ),
    "resize": lambda x: kornia.geometry.resize(x, (10, 12), antialias=True),
    "dilation": lambda x: kornia.morphology.dilation(x, torch.ones(3, 3, device=x.device)),
    "harris": lambda x: kornia.feature.harris_response(x),
    "ssim": lambda x: kornia.metrics.ssim(x, x.flip(-1).detach(), 5),
    "pyramid": lambda x: kornia.geometry.build_pyramid(x, 2)[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, both):
    def program(device):
        x = picture(device)
        found = FUNCTIONS[name](x)
        if not found.requires_grad:
            return found
        found.square().mean().backward()
        return [found, x.grad]

    both(program, within=1e-4)


def test_augmentation(both):
    """Parameters are drawn on the CPU once and applied on each device."""
    chain = kornia.augmentation.AugmentationSequential(
        kornia.augmentation.RandomHorizontalFlip(p=0.5),
        kornia.augmentation.RandomAffine(20.0, p=1.0),
        kornia.augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0),
        data_keys=["input", "mask"],
    )
    torch.manual_seed(0)
    x = picture("cpu").detach()
    chain(x, x[:, :1])
    drawn = chain._params

    def program(device):
        inputs = x.to(device)
        return list(chain(inputs, inputs[:, :1], params=drawn))

    both(program, within=1e-4)


def test_homography(both):
    def program(device):
        source = torch.tensor([[[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.2]]], device=device)
        target = source * 2 + 0.1 * source.flip(1)
        return kornia.geometry.transform_points(kornia.geometry.find_homography_dlt(source, target), source)

    both(program, within=1e-3)


def test_a_detector_of_keypoints(both):
    def program(device):
        torch.manual_seed(0)
        model = kornia.feature.HardNet(pretrained=False).eval().to(device)
        with torch.no_grad():
            return model(images(3, 1, 32, 32).to(device))

    both(program, within=1e-4)
