# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Dequantizes weights and optimizer states, stored as blocks of 8-bit or 4-bit codes."""

import functools

import torch


def _scale_blocks(values, absmax, blocksize):
    """Multiplies each block of a flat tensor by its scale, in place; the last block may be shorter."""
    whole = values.numel() // blocksize
    if whole:
        values[: whole * blocksize].view(whole, blocksize).mul_(absmax[:whole].unsqueeze(1))
    if whole * blocksize < values.numel():
        values[whole * blocksize :].mul_(absmax[whole])
    return values


def dequantize_blockwise(A, absmax, code, blocksize, dtype):
    """Returns the values of 8-bit codes.

    Args:
        A (Tensor): codes, uint8, any shape.
        absmax (Tensor): float32, the scale of each block of `blocksize` elements of `A` in memory order.
        code (Tensor): float32 of 256 elements, the value of each code.
        blocksize (int): elements per block.
        dtype (torch.dtype): dtype of the result.

    Returns:
        Tensor: of the shape of `A`, `code[A] * absmax` computed in float32.
    """
    values = code.index_select(0, A.reshape(-1).int())
    return _scale_blocks(values, absmax.reshape(-1), blocksize).to(dtype).reshape(A.shape)


def dequantize_blockwise_out(A, absmax, code, blocksize, dtype, out):
    """Writes `dequantize_blockwise` to `out`."""
    out.copy_(dequantize_blockwise(A, absmax, code, blocksize, dtype))


@functools.cache
def _pairs(quant_type, device):
    """Returns the two values of each byte: float32 of shape (256, 2), high four bits first."""
    from bitsandbytes.functional import get_4bit_type

    code = get_4bit_type(quant_type, device=device)
    return torch.cartesian_prod(code, code)


def dequantize_4bit(A, absmax, blocksize, quant_type, shape, dtype):
    """Returns the values of 4-bit codes, two per byte.

    Args:
        A (Tensor): packed codes, contiguous, in the bytes of any dtype.
        absmax (Tensor): float32, the scale of each block.
        blocksize (int): values per block.
        quant_type (str): "nf4" or "fp4".
        shape (sequence of int): shape of the result.
        dtype (torch.dtype): dtype of the result.

    Returns:
        Tensor: the values, computed in float32.
    """
    packed = A.reshape(-1).view(torch.uint8)
    count = 1
    for size in shape:
        count *= size
    values = _pairs(quant_type, A.device).index_select(0, packed.int()).view(-1)[:count]
    return _scale_blocks(values, absmax.reshape(-1), blocksize).to(dtype).view(shape)


def dequantize_4bit_out(A, absmax, blocksize, quant_type, shape, dtype, out):
    """Writes `dequantize_4bit` to `out`."""
    out.copy_(dequantize_4bit(A, absmax, blocksize, quant_type, shape, dtype))


def gemv_4bit_out(A, B, shapeB, absmax, code, blocksize, out):
    """Writes `gemv_4bit`, computed by the default kernel, to `out`."""
    out.copy_(torch.ops.bitsandbytes.gemv_4bit(A, B, shapeB, absmax, code, blocksize))
