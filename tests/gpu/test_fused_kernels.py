# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls of libmudnn that torch's fused CUDA kernels compute: attention and batch norm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.nn import functional

pytestmark = pytest.mark.once

ROWS = 512


@pytest.fixture(autouse=True)
def by_mudnn() -> Iterator[None]:
    with torch.musa.ops.prefer("*", "mudnn", "ported", "host-copy"):
        yield


MASKS = {
    "none": lambda: None,
    "causal": lambda: torch.ones(ROWS, ROWS, dtype=torch.bool).tril(),
    "padding": lambda: torch.arange(ROWS) < torch.tensor([ROWS, 77])[:, None, None, None],
    "a query without keys": lambda: torch.ones(ROWS, ROWS, dtype=torch.bool).tril(-1),
    "numbers of each head": lambda: torch.linspace(-3, 3, 8 * ROWS * ROWS).view(1, 8, ROWS, ROWS),
    "one number for all keys": lambda: torch.linspace(-3, 3, ROWS).view(ROWS, 1),
}
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def attention(operands: list[torch.Tensor], mask: torch.Tensor | None, causal: bool) -> list[torch.Tensor]:
    """Returns the output, [2, 8, rows, width], and the gradients of the operands."""
    leaves = [operand.detach().requires_grad_() for operand in operands]
    out = functional.scaled_dot_product_attention(*leaves, attn_mask=mask, is_causal=causal, enable_gqa=True)
    weights = torch.linspace(-1, 1, out.numel(), device=out.device).view(out.shape).to(out.dtype)
    return [out, *torch.autograd.grad((out * weights).sum(), leaves)]


def temporary_memory(function) -> int:
    """Returns the bytes that a call takes from torch.cuda's allocator, which libmudnn's functions use."""
    function()
    torch.musa.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    torch.musa.synchronize()
    return torch.cuda.max_memory_allocated() - before


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("heads", "columns"), [(8, ROWS), (2, ROWS), (8, 77)])
def test_attention_of_every_mask(mask: str, heads: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    operands = [
        torch.randn(2, count, rows, 64).to(dtype) for count, rows in ((8, ROWS), *[(heads, columns)] * 2)
    ]
    given = MASKS[mask]()
    if given is not None:
        given = given[..., :columns]
        given = given if given.dtype == torch.bool else given.to(dtype)
    doubles = None if given is None or given.dtype == torch.bool else given.double()
    expected = attention([one.double() for one in operands], given if doubles is None else doubles, False)
    there = [one.to("musa") for one in operands]
    mask_there = None if given is None else given.to("musa")
    for one, other in zip(attention(there, mask_there, False), expected):
        scale = max(1.0, other.abs().max().item())
        assert (one.cpu().double() - other).abs().max().item() <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("heads", [8, 2])
def test_attention_needs_no_memory_for_scores(heads: int, masked: bool, dtype: torch.dtype) -> None:
    rows = 2048
    operands = [torch.randn(2, count, rows, 64, device="musa").to(dtype) for count in (8, heads, heads)]
    mask = torch.ones(rows, rows, dtype=torch.bool, device="musa").tril() if masked else None
    scores = 2 * 8 * rows * rows * 4
    assert temporary_memory(lambda: attention(operands, mask, False)) < scores / 2


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("heads", [8, 2])
def test_causal_attention_of_grouped_heads(heads: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    operands = [torch.randn(2, count, ROWS, 64).to(dtype) for count in (8, heads, heads)]
    expected = attention([one.double() for one in operands], None, True)
    for one, other in zip(attention([operand.to("musa") for operand in operands], None, True), expected):
        scale = max(1.0, other.abs().max().item())
        assert (one.cpu().double() - other).abs().max().item() <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("rows", [1, 2, 33])
def test_attention_of_few_queries_over_a_padded_cache(rows: int) -> None:
    torch.manual_seed(0)
    q = torch.randn(2, 8, rows, 64).half()
    k, v = (torch.randn(2, 2, 300, 64).half() for _ in range(2))
    mask = torch.arange(300) < torch.tensor([300, 41])[:, None, None, None]
    expected = attention([q.double(), k.double(), v.double()], mask, False)
    for one, other in zip(
        attention([q.to("musa"), k.to("musa"), v.to("musa")], mask.to("musa"), False), expected
    ):
        assert (one.cpu().double() - other).abs().max().item() <= 4e-3 * max(1.0, other.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("shape", [(32, 16, 56, 56), (64, 24, 100), (4, 8, 6, 7, 8)])
def test_batch_norm_and_its_gradients(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, weights = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)

    def results(device: str, to: torch.dtype | None = None) -> list[torch.Tensor]:
        norms = {3: torch.nn.BatchNorm1d, 4: torch.nn.BatchNorm2d, 5: torch.nn.BatchNorm3d}
        norm = norms[len(shape)](shape[1]).to(device, to)
        leaf = x.to(device, to).requires_grad_()
        out = norm(leaf)
        out.backward(weights.to(device, to))
        state = [norm.running_mean, norm.running_var]
        return [
            one.detach().cpu().double() for one in (out, leaf.grad, norm.weight.grad, norm.bias.grad, *state)
        ]

    for musa, expected in zip(results("musa"), results("cpu", torch.float64)):
        near = 2e-5 if dtype == torch.float32 else 2e-3
        assert (musa - expected).abs().max().item() <= near * max(1.0, expected.abs().max().item())
