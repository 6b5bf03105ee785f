# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The overhead of autocast: a training step with it over one without, on the device and the baseline."""

import functools
from collections.abc import Iterator

import torch

from .measure import Effort, Row, calibrate, pair_of, sample
from .training import Job, SmallGPT, sgd, stepper, text

BAR = 1.1
DTYPE = torch.bfloat16  # the CPU's autocast is designed for it


def check(steps: dict, device: torch.device, baseline: torch.device) -> None:
    """Raises unless autocast changes the loss, and gives the same loss on device and baseline."""
    losses = {key: [step().item() for _ in range(3)] for key, step in steps.items()}
    for value, expected in zip(losses[device, True], losses[baseline, True]):
        if not abs(value - expected) <= 1e-2 * abs(expected):
            raise AssertionError(f"under autocast the loss is {value}, on the baseline {expected}")
    if losses[device, True] == losses[device, False]:
        raise AssertionError("autocast changes no loss: it casts nothing")


def measure(job: Job, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    torch.manual_seed(0)
    model, data = job.model(), job.data()
    steps = {}
    for place in (device, baseline):
        for enabled in (False, True):
            region = functools.partial(torch.autocast, place.type, dtype=DTYPE, enabled=enabled)
            steps[place, enabled] = stepper(model, job, data, place, region)
    check(steps, device, baseline)
    count = calibrate([(step, place) for (place, _), step in steps.items()], effort.seconds)
    added: dict[torch.device, list[float]] = {device: [], baseline: []}
    for index in range(effort.rounds):
        # Adjacent samples are compared, so each side goes first in turn.
        for place in (device, baseline) if index % 2 == 0 else (baseline, device):
            with_it, without = (sample(steps[place, enabled], place, count) for enabled in (True, False))
            added[place].append(with_it / without)
    pair = pair_of(added[device], added[baseline])
    medians = (pair.value, pair.baseline)
    return Row("autocast over none", job.name, *medians, "x", BAR, ratio=pair.ratio, spread=pair.spread)


def small_text() -> tuple[torch.Tensor, torch.Tensor]:
    tokens, targets = text()
    return tokens[:2, :16].contiguous(), targets[:32]


JOBS = (
    Job("GPT block", SmallGPT, text, sgd),
    # Little computation and many casts, to measure the overhead of the rules.
    Job("GPT block of width 32, 32 tokens", lambda: SmallGPT(width=32), small_text, sgd),
)


def measure_all(device: torch.device, baseline: torch.device, effort: Effort) -> Iterator[Row]:
    for job in JOBS:
        yield measure(job, device, baseline, effort)
