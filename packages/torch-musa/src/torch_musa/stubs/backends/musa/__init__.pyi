# Types of `torch.backends.musa`: the class MusaBackend of torch_musa/musa_backend.py.

from typing import Any

import torch

from torch_musa.attention_switches import (
    allow_fp16_bf16_reduction_math_sdp as allow_fp16_bf16_reduction_math_sdp,
    can_use_cudnn_attention as can_use_cudnn_attention,
    can_use_efficient_attention as can_use_efficient_attention,
    can_use_flash_attention as can_use_flash_attention,
    cudnn_sdp_enabled as cudnn_sdp_enabled,
    enable_cudnn_sdp as enable_cudnn_sdp,
    enable_flash_sdp as enable_flash_sdp,
    enable_math_sdp as enable_math_sdp,
    enable_mem_efficient_sdp as enable_mem_efficient_sdp,
    flash_sdp_enabled as flash_sdp_enabled,
    fp16_bf16_reduction_math_sdp_allowed as fp16_bf16_reduction_math_sdp_allowed,
    is_flash_attention_available as is_flash_attention_available,
    math_sdp_enabled as math_sdp_enabled,
    mem_efficient_sdp_enabled as mem_efficient_sdp_enabled,
    sdp_kernel as sdp_kernel,
)
from torch_musa.musa_backend import Products

matmul: Products
fft_plan_cache: Any  # exists if a pack with Fourier transforms is installed

def is_built() -> bool: ...
def preferred_linalg_library(
    backend: str | torch._C._LinalgBackend | None = None,
) -> torch._C._LinalgBackend: ...
def preferred_blas_library(backend: str | torch._C._BlasBackend | None = None) -> torch._C._BlasBackend: ...
