# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training steps with the tools of ``torch_musa.debug``, against the same steps without them."""

from collections.abc import Iterator

import torch

from .measure import Effort, Row, interleaved
from .training import JOBS, stepper

NAMES = ("ResNet, AdamW", "GPT block, AdamW")  # of training jobs
# `compare` recomputes everything on the CPU and compares by element.
BARS = {"compare": 10.0, "track_nonfinite": 6.0, "log_operators": 4.0}


def measure_all(device: torch.device, effort: Effort) -> Iterator[Row]:
    from torch_musa import debug  # not imported for other groups

    tools = {
        "compare": lambda: debug.compare(None),
        "track_nonfinite": debug.track_nonfinite,
        "log_operators": debug.log_operators,
    }
    for job in (job for job in JOBS if job.name in NAMES):
        step = stepper(job.model(), job, job.data(), device)
        for name, tool in tools.items():

            def watched(tool=tool, step=step):
                with tool():
                    step()

            pair = interleaved(watched, device, step, device, effort)
            yield Row(
                "debugging tool / none",
                f"{name}: {job.name}",
                pair.value * 1e3,
                pair.baseline * 1e3,
                "ms",
                BARS[name],
                ratio=pair.ratio,
                spread=pair.spread,
            )
