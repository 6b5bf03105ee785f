# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.compile with captured graphs, and what the compiled function does with its inputs."""

import torch


def timed(function):
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    result = function()
    end.record()
    torch.cuda.synchronize()
    return result, start.elapsed_time(end) / 1000


def foo(x, y):
    return torch.sin(x) + torch.cos(y)


torch.manual_seed(0)
assert torch.cuda.get_device_capability() >= (2, 1)
x, y = torch.randn(10, 10, device="cuda"), torch.randn(10, 10, device="cuda")
captured = torch.compile(foo, backend="cudagraphs")
for _ in range(3):
    result, seconds = timed(lambda: captured(x, y))
    torch.testing.assert_close(result, foo(x, y))
    assert seconds >= 0
assert "cudagraphs" in torch.compiler.list_backends()
torch._dynamo.reset()
counted = torch.compile(lambda value: value * 2 + 1, backend="aot_eager", fullgraph=True)
assert counted(torch.ones(4).cuda()).tolist() == [3.0] * 4
print("done")
