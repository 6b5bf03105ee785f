# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""tensorboard: SummaryWriter and the profiler's handler take tensors and traces of musa."""

from __future__ import annotations

import json

import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter


def test_a_writer_takes_tensors_of_the_device(both, tmp_path):
    def program(device):
        torch.manual_seed(0)
        values = torch.randn(64).to(device)
        model = torch.nn.Linear(4, 2).to(device)
        with SummaryWriter(str(tmp_path / device)) as writer:
            writer.add_scalar("mean", values.mean(), 3)
            writer.add_histogram("values", values, 3)
            writer.add_image("image", torch.rand(3, 8, 8).to(device))
            writer.add_embedding(torch.rand(4, 3).to(device), tag="points")
            writer.add_graph(model, torch.ones(1, 4).to(device))
            writer.add_text("text", "words")
        read = EventAccumulator(str(tmp_path / device)).Reload()
        scalar, histogram = read.Scalars("mean")[0], read.Histograms("values")[0].histogram_value
        assert (scalar.step, int(histogram.num)) == (3, 64)
        return [scalar.value, histogram.sum, histogram.sum_squares]

    both(program)


def test_the_profiler_writes_a_trace_with_kernels(tmp_path):
    from torch.profiler import ProfilerActivity, profile, tensorboard_trace_handler

    x = torch.randn(16, 16, device="musa")
    activities = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]
    with profile(activities=activities, on_trace_ready=tensorboard_trace_handler(str(tmp_path))):
        (x @ x).sum().item()
    trace = json.loads(next(tmp_path.glob("*.pt.trace.json")).read_text())
    assert any(event.get("cat") == "kernel" for event in trace["traceEvents"])
