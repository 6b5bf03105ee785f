# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Typed constructors, type names and tests of a tensor's device."""

import torch

x = torch.cuda.FloatTensor([1.0, 2.0])
assert x.is_cuda and x.type() == "torch.cuda.FloatTensor" and isinstance(x, torch.cuda.FloatTensor)
assert torch.cuda.LongTensor(2, 3).shape == (2, 3)
assert torch.ones(2).type("torch.cuda.HalfTensor").dtype is torch.half
assert torch.ones(2).type(torch.cuda.DoubleTensor).dtype is torch.double
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
assert Tensor(2, 2).fill_(1.0).sum().item() == 4
storage = x.untyped_storage()
assert storage.device.type == "cuda" and storage.is_cuda and storage.cpu().device.type == "cpu"
assert x.cpu().untyped_storage().cuda().device.type == "cuda"
assert x.new([3.0]).is_cuda and x.new_tensor([1]).is_cuda
module = torch.nn.Linear(2, 2).cuda(0)
assert all(parameter.is_cuda for parameter in module.parameters())
assert x.cuda() is x and x.data_ptr() > 0
packed = torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 1, 3), [2]).cuda()
assert packed.is_cuda
sparse = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,), device="cuda")
assert sparse.is_cuda and torch.cuda.sparse.FloatTensor
assert "cuda:0" in repr(x) and str(x.device) == "cuda:0" and torch.device("cuda", 0) == x.device
torch.set_default_device("cuda")
assert torch.ones(1).is_cuda
torch.set_default_device(None)
if torch.cuda.has_half:
    assert torch.cuda.HalfTensor([1]).dtype is torch.half
print("done")
