# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Scaled dot product attention in every combination of backend, shape, mask, dropout and dtype, compared
with its definition in float64. ``python -m tests.musa_ops_mudnn.attention_sweep COUNT`` runs a sample, so
that settings of the whole process can be varied; without COUNT it runs and records all.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import sys
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tests.harness import records

FUSED = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "OVERRIDEABLE")
# '>' separates backends in order of priority, '+' backends without an order.
BACKENDS = (*FUSED, "MATH", "CUDNN_ATTENTION+MATH", "EFFICIENT_ATTENTION>MATH", "MATH>FLASH_ATTENTION")
RANKS = (2, 3, 4)
MASKS = ("none", "causal", "bool", "float", "broadcast", "padding", "blind")
LENGTHS = ((6, 6), (4, 7), (7, 4))
SIZES = ((16, 16), (24, 16), (192, 128))
HEADS = ((2, 2), (4, 2))
DROPOUTS = (0.0, 0.3)
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
LAYOUTS = ("contiguous", "heads inside", "gaps")

# The largest error, relative to the largest value of the reference: a few ULPs, because operands and weights
# are rounded to the dtype.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


class Case(NamedTuple):
    backend: str
    rank: int
    mask: str
    lengths: tuple[int, int]
    sizes: tuple[int, int]
    heads: tuple[int, int]
    dropout: float
    dtype: torch.dtype
    layout: str

    @property
    def grouped(self) -> bool:
        return self.rank > 2 and self.heads[0] != self.heads[1]


def cases() -> list[Case]:
    axes = (BACKENDS, RANKS, MASKS, LENGTHS, SIZES, HEADS, DROPOUTS, DTYPES, LAYOUTS)
    every = (Case(*values) for values in itertools.product(*axes))
    # Operands of two dimensions have no heads to group or transpose.
    return [case for case in every if case.rank > 2 or (case.heads == (2, 2) and case.layout == "contiguous")]


def sample(count: int, of: list[Case]) -> list[Case]:
    return random.Random(0).sample(of, count)


def selected(backends: str):
    names = backends.replace(">", "+").split("+")
    return sdpa_kernel([getattr(SDPBackend, name) for name in names], set_priority=">" in backends)


def _operand(case: Case, heads: int, rows: int, size: int) -> torch.Tensor:
    shape = {2: (rows, size), 3: (heads, rows, size), 4: (2, heads, rows, size)}[case.rank]
    if case.layout == "heads inside":
        swapped = (*shape[:-3], shape[-2], shape[-3], shape[-1])
        return torch.randn(swapped).to(case.dtype).transpose(-3, -2)
    if case.layout == "gaps":
        return torch.randn(*shape[:-1], 2 * size).to(case.dtype)[..., ::2]
    return torch.randn(shape).to(case.dtype)


def _mask(case: Case) -> torch.Tensor | None:
    length, keys = case.lengths
    leading = {2: (), 3: (case.heads[0],), 4: (2, case.heads[0])}[case.rank]
    full = (*leading, length, keys)
    if case.mask in ("none", "causal"):
        return None
    if case.mask == "float":
        return torch.randn(full).to(case.dtype)
    if case.mask == "broadcast":
        return (torch.rand(*(1,) * len(leading), length, keys) > 0.3).index_fill_(-1, torch.tensor([0]), True)
    if case.mask == "padding":
        visible = torch.arange(keys) < torch.randint(1, keys + 1, leading[:1] or (1,)).view(
            -1, *(1,) * (len(full) - 1)
        )
        return visible if case.rank > 2 else visible.view(1, keys)
    mask = (torch.rand(full) > 0.3).index_fill_(-1, torch.tensor([0]), True)
    if case.mask == "blind":
        mask[..., 1, :] = False
    return mask


def reference(case: Case, query, key, value, mask, keep):
    """Computes attention of float64 CPU tensors by its definition."""
    if case.grouped:
        key = key.repeat_interleave(case.heads[0] // case.heads[1], -3)
        value = value.repeat_interleave(case.heads[0] // case.heads[1], -3)
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    if case.mask == "causal":
        scores = scores.masked_fill(torch.ones(case.lengths).triu(1).bool(), float("-inf"))
    elif mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    shifted = scores - scores.detach().amax(-1, keepdim=True).clamp(min=-1e300)
    weights = shifted.exp()
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-300)
    if keep is not None:
        weights = weights * keep / (1 - case.dropout)
    return weights @ value


def error_of(actual: torch.Tensor, expected: torch.Tensor) -> float:
    actual = actual.detach().cpu().double()
    if not actual.numel():
        return 0.0
    return (
        ((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-3))
        .nan_to_num(float("inf"))
        .item()
    )


def check(case: Case) -> str | None:
    """Returns the error of attention or its gradients in this case, or None."""
    torch.manual_seed(0)
    (length, keys), (size, value_size), (heads, kv_heads) = case.lengths, case.sizes, case.heads
    host = [
        _operand(case, heads, length, size),
        _operand(case, kv_heads, keys, size),
        _operand(case, kv_heads, keys, value_size),
    ]
    mask = _mask(case)
    leaves = [tensor.to("musa").requires_grad_() for tensor in host]
    device_mask = None if mask is None else mask.to("musa")

    def attend(query, key, value):
        torch.manual_seed(7)
        with selected(case.backend):
            return scaled_dot_product_attention(
                query, key, value, device_mask, case.dropout, case.mask == "causal", enable_gqa=case.grouped
            )

    out = attend(*leaves)
    if out.dtype != case.dtype:
        return f"dtype {out.dtype}"
    if not torch.equal(out, attend(*leaves)):
        return "the same seed gives another result"
    grad_out = torch.randn(out.shape).to(case.dtype)
    gradients = torch.autograd.grad(out, leaves, grad_out.to("musa"))
    keep = None
    if case.dropout:
        # The values are unit vectors, so the output equals the weights and its zeros are those of dropout.
        units = (
            torch.eye(keys, dtype=case.dtype, device="musa").expand(*leaves[2].shape[:-1], keys).contiguous()
        )
        keep = (attend(leaves[0].detach(), leaves[1].detach(), units) != 0).cpu().double()
    wide = [tensor.double().requires_grad_() for tensor in host]
    wide_mask = mask.double() if case.mask == "float" else mask
    expected = reference(case, *wide, wide_mask, keep)
    errors = {"out": error_of(out, expected)}
    for name, actual, wanted in zip(
        ("query", "key", "value"),
        gradients,
        torch.autograd.grad(expected, wide, grad_out.double()),
        strict=True,
    ):
        errors["gradient of " + name] = error_of(actual, wanted)
    wrong = {name: error for name, error in errors.items() if not error <= TOLERANCE[case.dtype]}
    return f"relative errors {wrong}" if wrong else None


def failures(selection: list[Case]) -> list[str]:
    found = []
    for case in selection:
        try:
            problem = check(case)
        except (RuntimeError, NotImplementedError) as error:
            problem = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if problem:
            found.append(f"{case}: {problem}")
    return found


if __name__ == "__main__":
    chosen = sample(int(sys.argv[1]), cases()) if len(sys.argv) > 1 else cases()
    found = failures(chosen)
    print("\n".join(found[:20]))
    result = f"{len(chosen)} cases of {len(cases())}, {len(found)} wrong"
    print(result)
    if len(sys.argv) == 1:
        own = ("MUSA_EMULATOR_", "TORCH_MUSA_OPS")
        chosen = sorted(item for item in os.environ.items() if item[0].startswith(own))
        settings = " ".join(f"{name}={value}" for name, value in chosen)
        name = re.sub(r"\W+", "_", f"attention_sweep {settings}".strip())
        command = f"{settings} python -m tests.musa_ops_mudnn.attention_sweep".strip()
        records.write(name, command, result, wrong=found)
    sys.exit(bool(found))
