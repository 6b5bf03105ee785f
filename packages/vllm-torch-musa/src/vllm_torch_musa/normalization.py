# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""RMS normalization by the serving operators, registered as implementations of vLLM's IR operators."""

from __future__ import annotations

import torch
from vllm import ir


def _plain(
    x: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    return variance_size is None and weight is not None and weight.dtype == x.dtype


def _plain_with_residual(
    x: torch.Tensor,
    x_residual: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> bool:
    return _plain(x, weight, epsilon, variance_size) and x_residual.dtype == x.dtype


@ir.ops.rms_norm.register_impl("musa", supports_args=_plain)
def rms_norm(
    x: torch.Tensor, weight: torch.Tensor | None, epsilon: float, variance_size: int | None = None
) -> torch.Tensor:
    """Returns `x`, of any shape, normalized over its last dimension."""
    return torch.ops.musa_serving.rms_norm(x, weight, epsilon)


@ir.ops.fused_add_rms_norm.register_impl("musa", supports_args=_plain_with_residual, inplace=True)
def fused_add_rms_norm(
    x: torch.Tensor,
    x_residual: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Replaces `x_residual` by the sum and `x` by the normalized sum, and returns both."""
    torch.ops.musa_serving.add_rms_norm_(x, x_residual, weight, epsilon)
    return x, x_residual
