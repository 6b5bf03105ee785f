# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Matrix products and quantization for LLM.int8."""

import torch

# Number of int8 products whose sum is below 2**24, up to which float32 is exact.
_EXACT = (1 << 24) // (127 * 127)


def int8_linear_matmul(A, B):
    """Returns the exact product of int8 matrices.

    bitsandbytes' default kernel multiplies in float32, which rounds sums of more than 1040 products.

    Args:
        A (Tensor): int8 of shape (..., K).
        B (Tensor): int8 of shape (N, K).

    Returns:
        Tensor: int32 of shape (..., N).
    """
    out = None
    for a, b in zip(A.split(_EXACT, dim=-1), B.split(_EXACT, dim=-1)):
        part = torch.matmul(a.float(), b.float().t()).int()
        out = part if out is None else out.add_(part)
    return out


def int8_linear_matmul_out(A, B, out):
    """Writes `int8_linear_matmul` to `out`, an int32 tensor."""
    if out.dtype != torch.int32:
        raise ValueError(f"out must be int32, got {out.dtype}")
    out.copy_(int8_linear_matmul(A, B))


def int8_double_quant(A, threshold=0.0):
    """Quantizes rows and columns to int8, by the largest magnitude of each.

    Args:
        A (Tensor): float of shape (..., K), of which all dimensions but the last are rows.
        threshold (float): elements of at least this magnitude are outliers: they are ignored in the scales of
            columns, and become 0. 0.0 disables this.

    Returns:
        tuple: codes by row and by column, int8; scales of rows and of columns, float32; the indices of the
        columns with outliers, or None without a threshold.
    """
    by_row, row_stats, outliers = torch.ops.bitsandbytes.int8_vectorwise_quant(A, threshold=threshold)
    if threshold > 0.0:
        A = A.masked_fill(A.abs() >= threshold, 0.0)
    col_stats = A.abs().reshape(-1, A.shape[-1]).amax(0).float()
    by_column = (A * 127.0 / col_stats).round().to(torch.int8)
    return by_row, by_column, row_stats, col_stats, outliers
