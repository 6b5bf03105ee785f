# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attention with the switch for flash attention."""

import torch
import torch.nn.functional as F

import torch_musa  # noqa: F401

query, key, value = (torch.rand(2, 4, 16, 64, dtype=torch.float16, device="musa") for _ in range(3))
with torch.backends.musa.sdp_kernel(enable_flash=False):
    result = F.scaled_dot_product_attention(query, key, value)
expected = F.scaled_dot_product_attention(query.float(), key.float(), value.float())
torch.testing.assert_close(result.float(), expected, rtol=1e-2, atol=1e-2)
print("done")
