# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Samples of each operator: arguments as torch.ops.torchvision takes them, made on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from tests.musa_ops_vision import references


@dataclass(frozen=True)
class Case:
    """A sample of an operator. `differentiable`: positions of the arguments that have a gradient."""

    name: str
    op: str
    arguments: tuple
    differentiable: tuple[int, ...] = (0,)

    def __str__(self) -> str:
        return f"{self.op}-{self.name}"

    def reference(self, *arguments):
        return getattr(references, self.op)(*arguments)

    def tensors(self) -> list[torch.Tensor]:
        return [value for value in self.arguments if isinstance(value, torch.Tensor)]

    def with_tensors(self, change) -> tuple:
        """The arguments with each tensor changed."""
        return tuple(change(value) if isinstance(value, torch.Tensor) else value for value in self.arguments)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def boxes(count: int, size: float, seed: int = 0) -> torch.Tensor:
    """(count, 4): x1, y1, x2, y2, some of them outside of [0, size]."""
    random = generator(seed)
    corners = torch.rand(count, 2, generator=random, dtype=torch.float64) * size * 1.2 - size * 0.1
    sizes = torch.rand(count, 2, generator=random, dtype=torch.float64) * size * 0.6
    return torch.cat([corners, corners + sizes], 1)


def rois(count: int, images: int, size: float, seed: int = 0) -> torch.Tensor:
    """(count, 5): the image's index and a box."""
    index = torch.randint(0, images, (count, 1), generator=generator(seed)).double()
    return torch.cat([index, boxes(count, size, seed + 1)], 1)


def nms_cases() -> Iterator[Case]:
    for count in (0, 1, 2, 63, 64, 65, 130, 700):
        for threshold in (0.0, 0.3, 0.5, 1.0):
            scores = torch.rand(count, generator=generator(count), dtype=torch.float64)
            yield Case(f"{count}-{threshold}", "nms", (boxes(count, 100), scores, threshold), ())
    equal = torch.full((100,), 0.5, dtype=torch.float64)
    yield Case("equal scores", "nms", (boxes(100, 30), equal, 0.4), ())
    flat = boxes(70, 50)
    flat[::3, 2:] = flat[::3, :2]
    yield Case("boxes without area", "nms", (flat, torch.linspace(0, 1, 70).double(), 0.2), ())
    twice = boxes(50, 50).repeat(2, 1)
    yield Case("each box twice", "nms", (twice, torch.linspace(0, 1, 100).double(), 0.999), ())


def region_cases() -> Iterator[Case]:
    images = torch.randn(2, 3, 11, 13, generator=generator(1), dtype=torch.float64)
    some = rois(7, 2, 12)
    for ratio in (-1, 0, 2):
        for aligned in (False, True):
            name = f"ratio {ratio}{' aligned' if aligned else ''}"
            yield Case(name, "roi_align", (images, some, 1.0, 3, 2, ratio, aligned))
    yield Case(
        "small scale", "roi_align", (images, some * torch.tensor([1, 4, 4, 4, 4]), 0.25, 2, 2, 2, True)
    )
    yield Case("many channels", "roi_align", (images.repeat(1, 7, 1, 1), some, 1.0, 2, 2, 1, True))
    yield Case("no regions", "roi_align", (images, some[:0], 1.0, 3, 2, 2, False))
    yield Case("empty regions", "roi_align", (images, some[:, [0, 1, 2, 1, 2]], 1.0, 2, 2, -1, False))
    for scale in (1.0, 0.5):
        yield Case(f"scale {scale}", "roi_pool", (images, some, scale, 3, 2))
    yield Case("no regions", "roi_pool", (images, some[:0], 1.0, 3, 2))
    outside = some + torch.tensor([0, 40, 40, 40, 40])
    yield Case("outside", "roi_pool", (images, outside, 1.0, 2, 2))
    yield Case("outside", "roi_align", (images, outside, 1.0, 2, 2, 2, True))
    by_position = torch.randn(2, 12, 11, 13, generator=generator(2), dtype=torch.float64)
    for ratio in (-1, 2):
        yield Case(f"ratio {ratio}", "ps_roi_align", (by_position, some, 0.8, 3, 2, ratio))
    yield Case("no regions", "ps_roi_align", (by_position, some[:0], 1.0, 3, 2, 2))
    for scale in (1.0, 0.5):
        yield Case(f"scale {scale}", "ps_roi_pool", (by_position, some, scale, 3, 2))
    yield Case("no regions", "ps_roi_pool", (by_position, some[:0], 1.0, 3, 2))


def convolution_cases() -> Iterator[Case]:
    random = generator(3)

    def normal(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def between(*shape):
        """Offsets between pixels in every dtype, because derivatives by an offset jump at pixels."""
        whole = torch.randint(-2, 2, shape, generator=random)
        return (whole + torch.randint(3, 14, shape, generator=random) / 16).double()

    # Kernel, stride, padding, dilation, groups, offset groups, with a mask, images.
    settings = {
        "3x3": ((3, 3), (1, 1), (1, 1), (1, 1), 1, 1, True, 2),
        "without mask": ((3, 3), (1, 1), (0, 1), (1, 1), 1, 1, False, 1),
        "strided": ((2, 3), (2, 1), (1, 0), (1, 2), 1, 2, True, 2),
        "groups": ((3, 2), (1, 2), (1, 1), (2, 1), 2, 4, True, 3),
        "1x1": ((1, 1), (1, 1), (0, 0), (1, 1), 4, 1, False, 1),
        "no images": ((3, 3), (1, 1), (1, 1), (1, 1), 1, 1, True, 0),
    }
    for name, (
        kernel,
        stride,
        padding,
        dilation,
        groups,
        offset_groups,
        use_mask,
        images,
    ) in settings.items():
        size = (8, 7)
        out = [
            (size[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)
        ]
        taps = offset_groups * kernel[0] * kernel[1]
        mask = (
            torch.rand(images, taps, *out, generator=random, dtype=torch.float64)
            if use_mask
            else normal(images, 1)
        )
        arguments = (
            normal(images, 8, *size), normal(4, 8 // groups, *kernel), between(images, 2 * taps, *out),
            mask, normal(4), *stride, *padding, *dilation, groups, offset_groups, use_mask,
        )  # fmt: skip
        yield Case(name, "deform_conv2d", arguments, (0, 1, 2, 3, 4) if use_mask else (0, 1, 2, 4))


CASES = [*nms_cases(), *region_cases(), *convolution_cases()]
WITH_GRADIENT = [case for case in CASES if case.differentiable]
