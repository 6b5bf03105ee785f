# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A schedule, tables sorted by the device's time, a trace and stacks."""

import os

import torch
from torch import nn
from torch.profiler import profile, record_function, schedule

import torch_musa  # noqa: F401

model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3)).musa()
criterion = nn.CrossEntropyLoss().musa()
device = torch.device("musa:0")
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
tables = []


def trace_handler(p):
    tables.append(p.key_averages().table(sort_by="self_musa_time_total", row_limit=10))
    p.export_chrome_trace(f"trace_{p.step_num}.json")


with profile(  # noqa: SIM117 - the range is inside the profiler
    schedule=schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2),
    on_trace_ready=trace_handler,
    profile_memory=True,
    record_shapes=True,
    with_stack=True,
    experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),
) as prof:
    with record_function("model_training"):
        for _ in range(10):
            inputs, labels = torch.rand(2, 3, 8, 8).to(device=device), torch.tensor([0, 1]).to(device=device)
            loss = criterion(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()
assert len(tables) == 2 and all("Self MUSA" in table for table in tables)
by_shape = prof.key_averages(group_by_input_shape=True)
assert "[2, 3, 8, 8]" in by_shape.table(sort_by="musa_time_total", row_limit=100)
assert prof.key_averages(group_by_stack_n=5).table(sort_by="self_musa_time_total", row_limit=2)
events = prof.key_averages()
times = [event.self_musa_time_total for event in events]
assert max(times) > 0 and times == [event.self_device_time_total for event in events]
assert os.path.getsize("trace_5.json") > 0
# torch has a list of metrics, and its error names the one for this device.
try:
    prof.export_stacks("stacks.txt", "self_musa_time_total")
except ValueError as error:
    assert "self_privateuse1_time_total" in str(error)
else:
    raise AssertionError("torch takes the name of the device: docs/upstream/profiler_names.md is out of date")
prof.export_stacks("stacks.txt", "self_privateuse1_time_total")
print("done")
