# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.profiler with a schedule, tables of the device, a trace and ranges."""

import json
import os
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).cuda()
inputs = torch.randn(2, 3, 12, 12).cuda()
activities = [ProfilerActivity.CPU]
if torch.cuda.is_available():
    activities += [ProfilerActivity.CUDA]
with (
    profile(activities=activities, record_shapes=True, profile_memory=True) as prof,
    record_function("model_inference"),
):
    model(inputs)
table = prof.key_averages().table(sort_by="cuda_time_total", row_limit=10)
assert "model_inference" in table and "aten::conv2d" in table
by_shape = prof.key_averages(group_by_input_shape=True)
assert "[2, 3, 12, 12]" in by_shape.table(sort_by="self_cuda_time_total", row_limit=10)
assert "Self" in prof.key_averages().table(sort_by="self_cuda_memory_usage", row_limit=10)
assert sum(event.self_device_time_total for event in prof.key_averages()) > 0
seen = []


def trace_handler(p):
    p.export_chrome_trace(os.path.join(folder, f"trace_{p.step_num}.json"))
    seen.append(p.step_num)


with tempfile.TemporaryDirectory() as folder:
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
        on_trace_ready=trace_handler,
        with_stack=True,
    ) as p:
        for _ in range(6):
            torch.cuda.nvtx.range_push("step")
            model(inputs)
            torch.cuda.nvtx.range_pop()
            p.step()
    with open(os.path.join(folder, f"trace_{seen[0]}.json")) as file:
        events = json.load(file)["traceEvents"]
assert seen == [4] and any(event.get("cat") == "kernel" for event in events)
with torch.cuda.nvtx.range("region"):
    torch.cuda.nvtx.mark("here")
with torch.autograd.profiler.profile(use_device="cuda") as old:
    model(inputs)
assert "aten::conv2d" in old.key_averages().table(sort_by="self_cuda_time_total")
with torch.cuda.profiler.profile():
    model(inputs)
print("done")
