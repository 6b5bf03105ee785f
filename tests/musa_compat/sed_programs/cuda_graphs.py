# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole-network capture, partial capture and a pool that graphs share."""

import torch

torch.manual_seed(0)
N, D_in, H, D_out = 8, 16, 8, 4
model = torch.nn.Sequential(
    torch.nn.Linear(D_in, H), torch.nn.Dropout(p=0.2), torch.nn.Linear(H, D_out)
).cuda()
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
static_input = torch.randn(N, D_in, device="cuda")
static_target = torch.randn(N, D_out, device="cuda")
s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss_fn(model(static_input), static_target).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(s)
g = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    assert torch.cuda.is_current_stream_capturing()
    static_loss = loss_fn(model(static_input), static_target)
    static_loss.backward()
    optimizer.step()
losses = []
for _ in range(10):
    static_input.copy_(torch.ones(N, D_in))
    static_target.copy_(torch.zeros(N, D_out))
    g.replay()
    losses.append(static_loss.item())
assert losses[-1] < losses[0]
g.reset()

first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
source = torch.arange(4.0, device="cuda")
with torch.cuda.graph(first, pool=torch.cuda.graph_pool_handle()):
    doubled = source * 2
with torch.cuda.graph(second, pool=first.pool(), stream=torch.cuda.Stream()):
    result = doubled + 1
source.fill_(5)
first.replay()
second.replay()
torch.cuda.synchronize()
assert result.tolist() == [11.0] * 4

module = torch.nn.Linear(4, 4).cuda()
graphed = torch.cuda.make_graphed_callables(module, (torch.randn(2, 4, device="cuda"),))
output = graphed(torch.ones(2, 4, device="cuda"))
output.sum().backward()
assert module.weight.grad.tolist() == [[2.0] * 4] * 4
assert isinstance(first, torch.cuda.graphs.CUDAGraph) and issubclass(torch.cuda.CUDAGraph, object)
print("done")
