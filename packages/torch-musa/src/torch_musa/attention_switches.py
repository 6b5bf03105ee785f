# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The switches of `scaled_dot_product_attention` in `torch.backends.musa`, named as in `torch.backends.cuda`.

A musa device has one fused kernel, which is allowed by any of torch's switches flash, mem_efficient, cudnn
and overrideable. torch.backends.cuda has no function for the last, so turning CUDA's three switches off would
still allow the kernel. The functions here keep overrideable equal to `flash or mem_efficient or cudnn`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
from torch import _C

if TYPE_CHECKING:
    from collections.abc import Iterator


def flash_sdp_enabled() -> bool:
    """Whether the switch for flash attention is on (torch's setting)."""
    return _C._get_flash_sdp_enabled()


def mem_efficient_sdp_enabled() -> bool:
    """Whether the switch for memory-efficient attention is on (torch's setting)."""
    return _C._get_mem_efficient_sdp_enabled()


def cudnn_sdp_enabled() -> bool:
    """Whether the switch for attention by the vendor's library is on (torch's setting)."""
    return _C._get_cudnn_sdp_enabled()


def math_sdp_enabled() -> bool:
    """Whether attention composed of matrix products is allowed (torch's setting)."""
    return _C._get_math_sdp_enabled()


def enable_flash_sdp(enabled: bool) -> None:
    """Allows or forbids flash attention. With all three fused switches off, it is composed.

    Args:
        enabled (bool): the new setting.
    """
    _C._set_sdp_use_flash(enabled)
    _follow()


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allows or forbids memory-efficient attention; see :func:`enable_flash_sdp`.

    Args:
        enabled (bool): the new setting.
    """
    _C._set_sdp_use_mem_efficient(enabled)
    _follow()


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allows or forbids attention by the vendor's library; see :func:`enable_flash_sdp`.

    Args:
        enabled (bool): the new setting.
    """
    _C._set_sdp_use_cudnn(enabled)
    _follow()


def enable_math_sdp(enabled: bool) -> None:
    """Allows or forbids attention composed of matrix products.

    Args:
        enabled (bool): the new setting.
    """
    _C._set_sdp_use_math(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether composed attention may accumulate in float16 and bfloat16 (torch's setting)."""
    return _C._get_math_sdp_allow_fp16_bf16_reduction()


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Allows or forbids accumulation in float16 and bfloat16 in composed attention.

    Args:
        enabled (bool): the new setting.
    """
    _C._set_math_sdp_allow_fp16_bf16_reduction(enabled)


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Sets the four switches within a block. `torch.nn.attention.sdpa_kernel` is the newer interface.

    Args:
        enable_flash, enable_math, enable_mem_efficient, enable_cudnn (bool): the settings of the block.
    """
    before = (
        flash_sdp_enabled(),
        math_sdp_enabled(),
        mem_efficient_sdp_enabled(),
        cudnn_sdp_enabled(),
    )
    fused = _C._get_overrideable_sdp_enabled()
    try:
        _set_all(enable_flash, enable_math, enable_mem_efficient, enable_cudnn)
        yield
    finally:
        _set_all(*before)
        _C._set_sdp_use_overrideable(fused)


def can_use_flash_attention(params: _C._SDPAParams, debug: bool = False) -> bool:
    """Whether `scaled_dot_product_attention` uses the fused kernel, by the switch for flash attention.

    Args:
        params (SDPAParams): query, key, value, mask, dropout, is_causal and enable_gqa.
        debug (bool): accepted as in torch.backends.cuda; no reason is logged.
    """
    return flash_sdp_enabled() and _is_fused(params)


def can_use_efficient_attention(params: _C._SDPAParams, debug: bool = False) -> bool:
    """As :func:`can_use_flash_attention`, by the switch for memory-efficient attention."""
    return mem_efficient_sdp_enabled() and _is_fused(params)


def can_use_cudnn_attention(params: _C._SDPAParams, debug: bool = False) -> bool:
    """As :func:`can_use_flash_attention`, by the switch for attention by the vendor's library."""
    return cudnn_sdp_enabled() and _is_fused(params)


def is_flash_attention_available() -> bool:
    """Whether some attention of float16 tensors is computed by the device's fused kernel."""
    if not torch.musa.is_available():  # type: ignore[attr-defined]
        return False
    query = torch.empty(1, 1, 16, 64, dtype=torch.float16, device="musa")
    params = _C._SDPAParams(query, query, query, None, 0.0, False, False)
    return flash_sdp_enabled() and _is_fused(params)


def _is_fused(params: _C._SDPAParams) -> bool:
    """Whether torch chooses the one fused kernel of musa, OVERRIDEABLE, for these arguments."""
    if params.query.device.type != "musa":
        return False
    choice = torch._fused_sdp_choice(
        *(params.query, params.key, params.value),
        attn_mask=params.attn_mask,
        dropout_p=params.dropout,
        is_causal=params.is_causal,
        enable_gqa=params.enable_gqa,
    )
    return choice == torch.nn.attention.SDPBackend.OVERRIDEABLE.value


def _set_all(flash: bool, math: bool, mem_efficient: bool, cudnn: bool) -> None:
    enable_flash_sdp(flash)
    enable_math_sdp(math)
    enable_mem_efficient_sdp(mem_efficient)
    enable_cudnn_sdp(cudnn)


def _follow() -> None:
    fused = flash_sdp_enabled() or mem_efficient_sdp_enabled() or cudnn_sdp_enabled()
    _C._set_sdp_use_overrideable(fused)


FUNCTIONS = (
    allow_fp16_bf16_reduction_math_sdp,
    can_use_cudnn_attention,
    can_use_efficient_attention,
    can_use_flash_attention,
    cudnn_sdp_enabled,
    enable_cudnn_sdp,
    enable_flash_sdp,
    enable_math_sdp,
    enable_mem_efficient_sdp,
    flash_sdp_enabled,
    fp16_bf16_reduction_math_sdp_allowed,
    is_flash_attention_available,
    math_sdp_enabled,
    mem_efficient_sdp_enabled,
    sdp_kernel,
)
