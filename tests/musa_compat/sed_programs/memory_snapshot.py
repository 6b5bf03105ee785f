# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""History of allocations, a snapshot on disk, and the pages made from it."""

import os
import pickle
import tempfile

import torch
from torch.cuda._memory_viz import trace_plot

torch.cuda.memory._record_memory_history(max_entries=1000)
model = torch.nn.Linear(32, 32).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(16, 32, device="cuda")).sum().backward()
    optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "snapshot.pickle")
    torch.cuda.memory._dump_snapshot(path)
    with open(path, "rb") as file:
        loaded = pickle.load(file)
snapshot = torch.cuda.memory._snapshot()
torch.cuda.memory._record_memory_history(enabled=None)
assert loaded["segments"] and loaded["device_traces"][0]
assert {"alloc"} <= {event["action"] for event in snapshot["device_traces"][0]}
assert any(frame["name"] for event in snapshot["device_traces"][0] for frame in event["frames"])
assert "<html>" in trace_plot(loaded) or "script" in trace_plot(loaded)
assert torch.cuda.memory_snapshot()[0]["blocks"]
print("done")
