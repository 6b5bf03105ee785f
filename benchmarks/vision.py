# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torchvision's operators as musa kernels, against its CPU kernels or references in Python."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch

from tests.musa_ops_vision import references, stand_ins

from .measure import Effort, Row, interleaved
from .operators import check_same
from .providers import served_by

BAR = 3.0


def baseline_operators():
    """Returns torch.ops.torchvision with CPU kernels, or references and their name in the report."""
    library = stand_ins.library()
    if library is None:
        return references, "reference in Python"
    with tempfile.TemporaryDirectory() as folder:
        stand_ins.make(library, Path(folder))
        stand_ins.load(Path(folder))
        import torchvision  # noqa: F401 - loads the library
    return torch.ops.torchvision, ""


def first(result) -> torch.Tensor:
    return result if isinstance(result, torch.Tensor) else result[0]


def call(function: Callable, arguments: tuple) -> torch.Tensor:
    return first(function(*arguments))


def gradient(function: Callable, arguments: tuple, places: tuple[int, ...]) -> Callable[[], torch.Tensor]:
    """Returns forward and backward: the gradients of the arguments at these positions, as one tensor."""
    arguments = list(arguments)
    for place in places:
        arguments[place] = arguments[place].clone().requires_grad_()
    variables = [arguments[place] for place in places]

    def run() -> torch.Tensor:
        found = torch.autograd.grad(call(function, arguments).sum(), variables)
        return torch.cat([tensor.flatten() for tensor in found])

    return run


def samples(quick: bool) -> Iterator[tuple[str, str, tuple, tuple[int, ...]]]:
    """Yields description, operator, arguments, and positions of arguments whose gradient is measured."""
    generator = torch.Generator().manual_seed(0)

    def boxes(count: int, size: float) -> torch.Tensor:
        corners = torch.rand(count, 2, generator=generator) * size
        sizes = torch.rand(count, 2, generator=generator) * size / 3 + 1
        return torch.cat([corners, corners + sizes], 1)

    for count in (200,) if quick else (1000, 8000):
        scores = torch.rand(count, generator=generator)
        yield f"{count} boxes", "nms", (boxes(count, 600), scores, 0.5), ()
    channels, regions = (16, 8) if quick else (256, 128)
    images = torch.randn(2, channels, 40, 40, generator=generator)
    index = torch.randint(0, 2, (regions, 1), generator=generator)
    rois = torch.cat([index, boxes(regions, 400)], 1)
    about = f"{regions} regions of {channels} x 40 x 40, 7 x 7 bins"
    yield about, "roi_align", (images, rois, 0.1, 7, 7, 2, True), (0,)
    yield about, "roi_pool", (images, rois, 0.1, 7, 7), (0,)
    by_position = torch.randn(2, 49 * (1 if quick else 10), 40, 40, generator=generator)
    about = f"{regions} regions of {by_position.size(1)} x 40 x 40, 7 x 7 bins"
    yield about, "ps_roi_align", (by_position, rois, 0.1, 7, 7, 2), (0,)
    yield about, "ps_roi_pool", (by_position, rois * torch.tensor([1, 0.8, 0.8, 0.8, 0.8]), 0.1, 7, 7), ()
    channels, size = (8, 12) if quick else (64, 40)
    tensors = (
        torch.randn(2, channels, size, size, generator=generator),
        torch.randn(channels, channels, 3, 3, generator=generator) / 24,
        torch.rand(2, 18, size, size, generator=generator) * 0.8 + 0.1,
        torch.rand(2, 9, size, size, generator=generator),
        torch.randn(channels, generator=generator),
    )
    about = f"2 x {channels} x {size} x {size}, 3 x 3"
    yield about, "deform_conv2d", (*tensors, 1, 1, 1, 1, 1, 1, 1, 1, True), (0, 1, 2, 3, 4)


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, quick: bool) -> Iterator[Row]:
    operators, label = baseline_operators()
    beside = f" (beside a {label})" if label else ""

    def moved(arguments: tuple, place: torch.device) -> tuple:
        return tuple(v.to(place) if isinstance(v, torch.Tensor) else v for v in arguments)

    for about, name, arguments, places in samples(quick):
        there, here = getattr(operators, name), getattr(torch.ops.torchvision, name)
        at_device, at_baseline = moved(arguments, device), moved(arguments, baseline)
        runs = [(name, partial(call, here, at_device), partial(call, there, at_baseline))]
        if places:
            runs.append(
                (f"{name}, forward and backward", gradient(here, at_device, places),
                 gradient(there, at_baseline, places))
            )  # fmt: skip
        for title, run, run_there in runs:
            expected = run_there()
            # Gradients are sums of many terms, whose rounding errors are proportional to the
            # largest.
            scale = expected.abs().max() if expected.is_floating_point() else 1
            check_same(title, run().cpu() / scale, expected / scale)
            served = served_by(run, device)
            pair = interleaved(run, device, run_there, baseline, effort)
            yield Row(
                "vision", f"{title}: {about}{beside}", pair.value * 1e3, pair.baseline * 1e3, "ms", BAR,
                ratio=pair.ratio, spread=pair.spread, served=served,
            )  # fmt: skip
