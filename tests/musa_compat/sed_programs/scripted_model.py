# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""TorchScript, export and functional transforms on the device."""

import io

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).cuda().eval()
x = torch.randn(3, 4, device="cuda")
traced = torch.jit.trace(model, x)
scripted = torch.jit.script(model)
buffer = io.BytesIO()
torch.jit.save(scripted, buffer)
buffer.seek(0)
loaded = torch.jit.load(buffer, map_location="cuda")
for each in (traced, scripted, loaded, torch.jit.freeze(scripted)):
    torch.testing.assert_close(each(x), model(x))


@torch.jit.script
def zeros(count: int):
    return torch.zeros(count, device="cuda")


assert zeros(2).is_cuda
parameters = {name: value.detach() for name, value in model.named_parameters()}


def loss(weights, sample):
    return functional_call(model, weights, (sample.unsqueeze(0),)).sum()


per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
assert per_sample["0.weight"].shape == (3, 8, 4) and per_sample["0.weight"].is_cuda
exported = torch.export.export(model, (x,))
torch.testing.assert_close(exported.module()(x), model(x))
print("done")
