# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The attention "musa_packed" for transformers: computes each sequence of a packed row separately.

    import torch_musa.integrations.transformers
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="musa_packed")
    collator = DataCollatorWithFlattening(return_flash_attn_kwargs=True)

If such a collator passes the lengths, it calls `torch.nn.attention.varlen`, while `sdpa` computes the
products of all pairs of tokens in the row and masks them. Without lengths it calls `sdpa`. If transformers is
missing, the import raises an ImportError.
"""

import importlib.util
import inspect

import torch

if importlib.util.find_spec("transformers") is None:
    raise ImportError(
        "torch_musa.integrations.transformers needs transformers, which is not installed.\n"
        "Fix: pip install transformers"
    )

from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

__all__ = ["packed_attention"]

_NAME = "musa_packed"
_GROUPED = "enable_gqa" in inspect.signature(varlen_attn).parameters


def packed_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **kwargs):
    """Computes causal attention of packed sequences.

    Args:
        module (Module): the attention layer, whose `num_key_value_groups` is used.
        query (Tensor): shape (1, heads, tokens, size) if sequences are packed.
        key, value (Tensor): shape (1, key heads, tokens, size).
        attention_mask (Tensor or None): used by `sdpa` only; the lengths contain the same information.
        dropout (float): if nonzero, `sdpa` is called.
        scaling (float or None): scale of the products; default: as in `sdpa`.
        kwargs: `cu_seq_lens_q`, int32 of shape (sequences + 1,), the start of each sequence, and
            `max_length_q`.

    Returns:
        tuple: output of shape (1, tokens, heads, size), and None for the weights.
    """
    starts = kwargs.get("cu_seq_lens_q")
    if starts is None or not _is_plain(module, query, key, dropout, kwargs):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
    groups = query.shape[1] // key.shape[1]
    grouped = {}
    if groups > 1 and _GROUPED:
        grouped = {"enable_gqa": True}
    elif groups > 1:
        key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    starts = starts.to(query.device, torch.int32)
    longest = int(kwargs["max_length_q"])
    output = varlen_attn(
        query, key, value, starts, starts, longest, longest, scale=scaling, window_size=(-1, 0), **grouped
    )
    return output.unsqueeze(0), None


def _is_plain(module, query, key, dropout, kwargs):
    """Whether packed attention gives the same result: causal, no window, dropout or cache, one row."""
    causal = kwargs.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    options = ("sliding_window", "softcap", "position_bias", "cache", "s_aux")
    return (
        causal
        and dropout == 0.0
        and query.shape[0] == 1
        and query.shape[2] == key.shape[2]
        and all(kwargs.get(option) is None for option in options)
    )


AttentionInterface.register(_NAME, packed_attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)
