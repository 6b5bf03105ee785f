# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Timing with torch.utils.benchmark, and ranges for an external profiler."""

import torch
import torch.utils.benchmark as benchmark
from torch.cuda import nvtx
from torch.cuda.nvtx import range_pop, range_push

x = torch.randn(32, 32, device="cuda")
timer = benchmark.Timer(
    stmt="torch.mm(x, x); torch.cuda.synchronize()", setup="import torch", globals={"x": x}, label="mm"
)
assert timer.timeit(3).mean > 0
range_push("outer")
with nvtx.range("inner {}", 1):
    nvtx.mark("a mark")
assert range_pop() == 0
identifier = torch.cuda.nvtx.range_start("across threads")
torch.cuda.nvtx.range_end(identifier)
torch.cuda.profiler.start()
torch.cuda.profiler.stop()
print("done")
