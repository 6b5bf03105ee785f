# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch.nn.SwishGLU`, `torch.nn.RoPE` and their functions, which the vendor adds to torch by a patch.

The pack's import hook calls `add`, which adds them to torch, unless torch has an attribute of the same name.
"""


def add():
    """Adds the names to torch."""
    functional = torch.nn.functional
    for module, name, value in (
        (torch.nn, "SwishGLU", SwishGLU),
        (torch.nn, "RoPE", RoPE),
        (functional, "swish_glu", swish_glu),
        (functional, "rope", rope),
        (torch, "swish_glu", swish_glu),
        (torch, "rope", rope),
    ):
        if not hasattr(module, name):
            setattr(module, name, value)


# Imported after `add` is defined: if a program imports this module before torch, the hook
# is looked up in this partially initialized module.
import torch  # noqa: E402


def swish_glu(input):
    """silu(a) * b, where a, b = input.chunk(2, -1) (Shazeer 2020).

    On musa, uses a pack's fused operator if there is one.

    Args:
        input (torch.Tensor): floating point, (..., 2 * n).

    Returns:
        torch.Tensor: of input's dtype, (..., n).
    """
    if input.device.type == "musa" and hasattr(torch.ops.torch_musa, "swiglu"):
        return torch.ops.torch_musa.swiglu(input)
    first, second = input.chunk(2, -1)
    return torch.nn.functional.silu(first) * second


def rope(input, freq_cis, rotary_interleaved=False, batch_first=False, multi_latent_attention=False):
    """Rotary position embedding (Su et al. 2021), by the operator `torch_musa::rope` of a pack.

    Args:
        input (torch.Tensor): (positions, batch, heads, elements), or (batch, positions, heads, elements)
            with batch_first; without the batch if three-dimensional.
        freq_cis (torch.Tensor): angles (positions, elements), or cosine and sine
            (positions, elements / 2, 2).
        rotary_interleaved (bool): adjacent elements form a pair; otherwise elements half a row apart.
        batch_first (bool): the batch is the first dimension.
        multi_latent_attention (bool): elements are in the order of multi-head latent attention.

    Returns:
        torch.Tensor: of input's shape and dtype.

    Raises:
        RuntimeError: if no installed pack has the operator.
    """
    if not hasattr(torch.ops.torch_musa, "rope"):
        torch.musa.init()  # loads the packs and their operators
    if not hasattr(torch.ops.torch_musa, "rope"):
        raise RuntimeError(
            "torch.rope needs the operator torch_musa::rope, which no loaded pack has.\n"
            "Likely causes: the pack with this operator is not installed, is disabled, or failed to load.\n"
            "Fix: python -m torch_musa packs, which lists packs and why one was not loaded"
        )
    return torch.ops.torch_musa.rope(
        input,
        freq_cis,
        interleaved=rotary_interleaved,
        batch_first=batch_first,
        multi_latent=multi_latent_attention,
    )


class SwishGLU(torch.nn.Module):
    """:func:`swish_glu` as a module without parameters."""

    def forward(self, input):
        return swish_glu(input)


class RoPE(torch.nn.Module):
    """:func:`rope` as a module without parameters, with the vendor's signature.

    Args:
        freq_cis (torch.Tensor): see :func:`rope`. It moves with the module and is not in its state.
        rotary_interleaved, batch_first, multi_latent_attention (bool): see :func:`rope`.
    """

    def __init__(self, freq_cis, rotary_interleaved=False, batch_first=False, multi_latent_attention=False):
        super().__init__()
        self.register_buffer("freq_cis", freq_cis, persistent=False)
        self.rotary_interleaved = rotary_interleaved
        self.batch_first = batch_first
        self.multi_latent_attention = multi_latent_attention

    def forward(self, input):
        flags = self.rotary_interleaved, self.batch_first, self.multi_latent_attention
        return rope(input, self.freq_cis, *flags)

    def extra_repr(self):
        return (
            f"rotary_interleaved={self.rotary_interleaved}, batch_first={self.batch_first}, "
            f"multi_latent_attention={self.multi_latent_attention}"
        )
