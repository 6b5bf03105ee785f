# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""TF32 in products and convolutions."""

import torch

import torch_musa

with torch.backends.mudnn.flags(allow_tf32=True):
    assert torch.backends.mudnn.allow_tf32 and torch_musa._MUSAC._get_allow_tf32()
    a, b = torch.randn(64, 64, device="musa"), torch.randn(64, 64, device="musa")
    product = a @ b
assert not torch_musa._MUSAC._get_allow_tf32()
torch.testing.assert_close(a @ b, product, rtol=1e-2, atol=1e-1)
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.backends.mudnn.allow_tf32 = True
assert torch_musa._MUSAC._get_allow_tf32()
torch_musa._MUSAC._musa_synchronize()
print("done")
