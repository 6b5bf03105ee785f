# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Mixed precision: autocast, gradient scaling, accumulation, clipping and functions with their own rules."""

import torch


def make_model(width, layers):
    blocks = []
    for _ in range(layers):
        blocks += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*blocks, torch.nn.Linear(width, width)).cuda()


class Doubled(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(ctx, value):
        assert value.dtype == torch.float32 and not torch.is_autocast_enabled("cuda")
        return value * 2

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        return gradient * 2


torch.manual_seed(0)
device = "cuda"
data = [torch.randn(8, 16, device=device) for _ in range(4)]
targets = [torch.randn(8, 16, device=device) for _ in range(4)]
loss_fn = torch.nn.MSELoss().cuda()
net = make_model(16, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cuda", enabled=True)
for count, (inputs, target) in enumerate(zip(data, targets), 1):
    with torch.autocast(device_type="cuda", dtype=torch.float16):
        output = net(inputs)
        assert output.dtype is torch.float16
        loss = loss_fn(output, target) / 2
        assert loss.dtype is torch.float32
    scaler.scale(loss).backward()
    if count % 2 == 0:
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=0.1)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad(set_to_none=True)
checkpoint = {"model": net.state_dict(), "optimizer": opt.state_dict(), "scaler": scaler.state_dict()}
scaler.load_state_dict(checkpoint["scaler"])
assert scaler.get_scale() == 65536.0

old_scaler = torch.cuda.amp.GradScaler()
with torch.cuda.amp.autocast():
    half = net(data[0])
    assert half.dtype is torch.float16
    doubled = Doubled.apply(half.requires_grad_())
    with torch.cuda.amp.autocast(enabled=False):
        full = net(data[0].float())
old_scaler.scale(doubled.sum()).backward()
assert full.dtype is torch.float32 and torch.get_autocast_dtype("cuda") is torch.float16
if torch.cuda.is_bf16_supported():
    with torch.autocast("cuda", torch.bfloat16):
        assert net(data[0]).dtype is torch.bfloat16
print("done")
