# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""CPU computations for operators that torch implements for devices only.

Each takes the call's arguments with CPU tensors and returns the operator's results; None marks a result that
is not compared.
"""

import torch

_aten = torch.ops.aten


def of(name):
    """Returns the computation for an operator, e.g. "aten::_thnn_fused_lstm_cell", or None."""
    return _SUBSTITUTES.get(name)


def _attention(query, key, value, attn_bias=None, dropout_p=0.0, is_causal=False, return_debug_mask=False,
               *, scale=None):  # fmt: skip
    # At least float32, as the device accumulates; outputs have the dtype of the query.
    wide = torch.promote_types(query.dtype, torch.float32)
    q, k, v = query.to(wide), *(_for_heads_of(query, t.to(wide)) for t in (key, value))
    scores = _scores(q, k, attn_bias, is_causal, scale)
    output = (scores.softmax(-1).nan_to_num() @ v).to(query.dtype)
    # Without a heads dimension, its shape depends on the device's library.
    lse = scores.logsumexp(-1).to(torch.float32) if query.dim() == 4 else None
    return output, lse, None, None, None, None, None, None, None


def _for_heads_of(query, tensor):
    """Repeats keys or values (N, heads, S, E) for the heads of the query; keeps other shapes."""
    return tensor.repeat_interleave(query.shape[1] // tensor.shape[1], 1) if tensor.dim() == 4 else tensor


def _scores(query, key, bias, is_causal, scale):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * scale
    if is_causal:
        keep = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~keep, -torch.inf)
    if bias is not None:
        scores = scores.masked_fill(~bias, -torch.inf) if bias.dtype is torch.bool else scores + bias
    return scores


def _attention_backward(grad_out, query, key, value, attn_bias, grad_input_mask, out, logsumexp, cum_seq_q,
                        cum_seq_k, max_q, max_k, dropout_p, is_causal, philox_seed, philox_offset, *,
                        scale=None):  # fmt: skip
    wide = torch.promote_types(query.dtype, torch.float32)
    used = query.shape[-1] ** -0.5 if scale is None else scale
    q, do = query.to(wide), grad_out.to(wide)
    k, v = (_for_heads_of(query, t.to(wide)) for t in (key, value))
    p = _scores(q, k, attn_bias, is_causal, scale).softmax(-1).nan_to_num()
    dp = do @ v.transpose(-1, -2)
    ds = p * (dp - (do * (p @ v)).sum(-1, keepdim=True))
    dk = ds.transpose(-1, -2) @ q * used
    dv = p.transpose(-1, -2) @ do
    if key.dim() == 4:  # the sum over the query heads that share a key head
        dk, dv = (t.unflatten(1, (key.shape[1], -1)).sum(2) for t in (dk, dv))
    wanted = [ds @ k * used, dk, dv, None]
    dtypes = [query.dtype, key.dtype, value.dtype, None]
    if grad_input_mask[3] and attn_bias is not None:
        wanted[3] = ds.sum_to_size(attn_bias.shape)
        dtypes[3] = attn_bias.dtype
    return tuple(
        grad.to(dtype) if grad is not None and needed else None
        for grad, dtype, needed in zip(wanted, dtypes, grad_input_mask)
    )


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, -1)
    cell = f.sigmoid() * cx + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell, None


def _rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask):
    wide = torch.promote_types(input.dtype, torch.float32)
    dims = list(range(input.dim() - len(normalized_shape), input.dim()))
    x, dy = input.to(wide), grad_out.to(wide)
    r = rstd.to(wide)
    scaled = dy if weight is None else dy * weight.to(wide)
    dx = r * scaled - x * r.pow(3) * (scaled * x).mean(dims, keepdim=True)
    dw = None
    if weight is not None and output_mask[1]:
        dw = (dy * x * r).sum_to_size(normalized_shape).to(weight.dtype)
    return dx.to(input.dtype) if output_mask[0] else None, dw


_SUBSTITUTES = {
    "aten::_fused_rms_norm_backward": _rms_norm_backward,
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
}
