# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Attention with the switches of the backends."""

import torch
import torch.nn.functional as F
from torch.backends.cuda import SDPAParams, can_use_efficient_attention, can_use_flash_attention
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
query, key, value = torch.randn(3, 2, 4, 8, 16, device="cuda").unbind(0)
expected = F.scaled_dot_product_attention(query.cpu(), key.cpu(), value.cpu(), is_causal=True)
for flash, math in ((True, False), (False, True)):
    with torch.backends.cuda.sdp_kernel(enable_flash=flash, enable_math=math, enable_mem_efficient=flash):
        assert torch.backends.cuda.flash_sdp_enabled() is flash
        result = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
with sdpa_kernel(SDPBackend.MATH):
    torch.testing.assert_close(
        F.scaled_dot_product_attention(query, key, value, is_causal=True).cpu(),
        expected,
        rtol=1e-4,
        atol=1e-5,
    )
torch.backends.cuda.enable_flash_sdp(True)
torch.backends.cuda.enable_mem_efficient_sdp(True)
torch.backends.cuda.enable_math_sdp(True)
torch.backends.cuda.enable_cudnn_sdp(False)
assert torch.backends.cuda.math_sdp_enabled() and not torch.backends.cuda.cudnn_sdp_enabled()
assert torch.backends.cuda.is_flash_attention_available() in (True, False)
params = SDPAParams(query, key, value, None, 0.0, True, False)
assert can_use_flash_attention(params) in (True, False)
assert can_use_efficient_attention(params, debug=False) in (True, False)
print("done")
