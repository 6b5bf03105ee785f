# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saving, loading on another device, and recomputation in the backward pass."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential, create_selective_checkpoint_contexts

device = torch.device("cuda")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).to(device)
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(2, 8, device="cuda")).sum().backward()
optimizer.step()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "checkpoint.pt")
    torch.save({"epoch": 3, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    on_cpu = torch.load(path, map_location=torch.device("cpu"), weights_only=True)
    on_gpu = torch.load(path, map_location="cuda:0", weights_only=True)
    by_function = torch.load(path, map_location=lambda storage, location: storage.cuda(0))
    as_saved = torch.load(path)
assert not on_cpu["model"]["0.weight"].is_cuda
assert on_gpu["model"]["0.weight"].is_cuda and by_function["model"]["0.weight"].is_cuda
assert str(as_saved["model"]["0.weight"].device) == "cuda:0"
model.load_state_dict(on_cpu["model"])
optimizer.load_state_dict(on_gpu["optimizer"])

inputs = torch.randn(4, 8, device="cuda", requires_grad=True)
gradients = []
for recompute in (False, True):
    torch.cuda.manual_seed(7)
    inputs.grad = None
    if recompute:
        output = checkpoint(model, inputs, use_reentrant=False, preserve_rng_state=True)
    else:
        output = model(inputs)
    output.sum().backward()
    gradients.append(inputs.grad.clone())
assert torch.equal(*gradients)
checkpoint_sequential(model, 2, inputs, use_reentrant=False).sum().backward()
checkpoint(
    model,
    inputs,
    use_reentrant=False,
    context_fn=lambda: create_selective_checkpoint_contexts([torch.ops.aten.addmm.default]),
).sum().backward()
with torch.autograd.graph.save_on_cpu(pin_memory=True):
    output = model(inputs).sum()
output.backward()
with torch.device("cuda"):
    assert nn.Linear(2, 2).weight.is_cuda
print("done")
