# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Counts the operators of a training step that are computed on copies in host memory, if the host cannot
address device memory."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import torch

from .measure import Row
from .training import JOBS, Job, stepper

BAR = 0
STEPS = 2
# Emulator memory that the host cannot address, as on a GPU. On a GPU the variable has no effect.
SETTINGS = {"MUSA_EMULATOR_MEMORY": "strict", "TORCH_MUSA_FALLBACK": "allow"}


def apply_settings() -> None:
    os.environ.update(SETTINGS)


def reported() -> int:
    """Returns the number of operators computed on copies in this process."""
    return sum(row["count"] for row in torch.musa.ops.fallback_report())


def copies_of_a_step(job: Job) -> float:
    """Returns calls computed on copies per step, after steps that create the optimizer's state."""
    if torch.musa.get_device_properties(0).is_integrated:
        raise AssertionError("the host can address this device's memory, so a step could copy nothing")
    torch.manual_seed(0)
    step = stepper(job.model(), job, job.data(), torch.device("musa"))
    before = reported()
    for _ in range(STEPS):
        step()
    torch.musa.synchronize()
    return (reported() - before) / STEPS


def measure_all() -> Iterator[Row]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, apply_settings) as process:
        for job in JOBS:
            copies = process.submit(copies_of_a_step, job).result()
            yield Row(
                "host copies of a step", f"{job.name}, host copies", copies, 0.0, "calls", BAR, by="count"
            )
