# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that serve language models against compositions of torch's operators on the baseline device.

Attention is compared with a gather of the pages and `scaled_dot_product_attention`. For decoding, the name of
a row has the fraction of the device's memory bandwidth that the keys and values of the cache take, if the
device reports its bandwidth.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional

from .measure import Effort, Pair, Row, interleaved
from .providers import served_by

BAR = 1.0
BLOCK, HEADS, KV_HEADS, SIZE = 16, 32, 8, 128
TOLERANCE = 3e-2  # largest difference relative to the largest number; halves are rounded


@dataclass(frozen=True)
class Case:
    """Two functions of the same tensors. `bytes`: those that an optimal kernel reads; 0 if not counted."""

    name: str
    operator: Callable[..., Tensor]
    composition: Callable[..., Tensor]
    tensors: tuple[Tensor, ...]
    bytes: int = 0


def attention(
    sequences: int,
    length: int,
    heads: int,
    kv_heads: int,
    queries: int,
    dtype: torch.dtype,
    place: torch.device,
) -> Case:
    """`queries` new tokens of each sequence of `length` tokens.

    place: where the caches, which are large, are made.
    """
    pages = -(-length // BLOCK)
    caches = torch.randn(2, sequences * pages, BLOCK, kv_heads, SIZE, dtype=dtype, device=place)
    query = torch.randn(sequences * queries, heads, SIZE).to(dtype)
    table = torch.randperm(sequences * pages).view(sequences, pages).int()
    starts = torch.arange(sequences + 1).int() * queries
    lengths = torch.full((sequences,), length, dtype=torch.int32)
    scale = SIZE**-0.5

    def paged(
        query: Tensor, keys: Tensor, values: Tensor, table: Tensor, starts: Tensor, lengths: Tensor
    ) -> Tensor:
        return torch.ops.musa_serving.paged_attention(
            query, keys, values, table, starts, lengths, queries, length, scale=scale
        )

    def gathered(query: Tensor, keys: Tensor, values: Tensor, table: Tensor, *rest: Tensor) -> Tensor:
        flat = table.flatten().long()
        shape = (sequences, pages * BLOCK, kv_heads, SIZE)
        rows = [
            cache.index_select(0, flat).view(shape)[:, :length].transpose(1, 2) for cache in (keys, values)
        ]
        new = query.view(sequences, queries, heads, SIZE).transpose(1, 2)
        # All keys of one new token; of several, each sees those before it.
        mask = None
        if queries > 1:
            places = torch.arange(length, device=query.device)
            mask = places <= places[length - queries :, None]
        out = functional.scaled_dot_product_attention(
            new, *rows, attn_mask=mask, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2).reshape(query.shape)

    kind = "decode" if queries == 1 else f"{queries} tokens"
    name = f"paged_attention, {kind}: {sequences} x {length}, {heads} heads of {kv_heads}"
    read = 2 * sequences * length * kv_heads * SIZE * dtype.itemsize
    return Case(name, paged, gathered, (query, *caches, table, starts, lengths), read if queries == 1 else 0)


def layers(tokens: int, size: int, dtype: torch.dtype) -> Iterator[Case]:
    ops = torch.ops.musa_serving
    x, residual = torch.randn(tokens, size).to(dtype), torch.randn(tokens, size).to(dtype)
    weight, about = torch.rand(size).to(dtype), f"{tokens} x {size}"
    yield Case(
        f"rms_norm: {about}", lambda x, w: ops.rms_norm(x, w, 1e-6),
        lambda x, w: functional.rms_norm(x, w.shape, w, 1e-6), (x, weight),
    )  # fmt: skip
    yield Case(
        f"add_rms_norm: {about}", lambda x, r, w: ops.add_rms_norm(x, r, w, 1e-6)[0],
        lambda x, r, w: functional.rms_norm(x + r, w.shape, w, 1e-6), (x, residual, weight),
    )  # fmt: skip

    def gated(x: Tensor) -> Tensor:
        gates, values = x.chunk(2, -1)
        return functional.silu(gates) * values

    yield Case(f"silu_and_mul: {about}", ops.silu_and_mul, gated, (x,))


def choices(sequences: int, vocabulary: int, experts: int) -> Iterator[Case]:
    ops = torch.ops.musa_serving
    logits = torch.randn(sequences, vocabulary) * 3
    k, p = torch.full((sequences,), 50), torch.full((sequences,), 0.9)

    def sorted_choice(logits: Tensor, k: Tensor, p: Tensor) -> Tensor:
        values, order = logits.sort(-1, descending=True)
        values = values.masked_fill(torch.arange(vocabulary, device=k.device) >= k[:, None], -math.inf)
        shares = values.softmax(-1)
        values = values.masked_fill(shares.cumsum(-1) - shares >= p[:, None], -math.inf)
        return torch.empty_like(values).scatter_(-1, order, values).exp()

    yield Case(
        f"top_k_top_p: {sequences} x {vocabulary}",
        lambda *choice: ops.top_k_top_p(*choice).exp(),
        sorted_choice,
        (logits, k, p),
    )

    def best(scores: Tensor) -> Tensor:
        weights = scores.softmax(-1).topk(8).values
        return weights / weights.sum(-1, keepdim=True)

    scores = torch.randn(sequences, experts)
    yield Case(f"moe_route: {sequences} x {experts}", lambda s: ops.moe_route(s, 8)[0], best, (scores,))


def cases(quick: bool, place: torch.device) -> Iterator[Case]:
    half = torch.float16
    if quick:
        for queries in (1, 4):
            yield attention(2, 40, 8, 2, queries, torch.float32, place)
        yield from layers(4, 64, torch.float32)
        yield from choices(2, 200, 16)
        return
    for sequences, length in product((8, 32, 64), (1024, 4096, 32768)):
        yield attention(sequences, length, HEADS, KV_HEADS, 1, half, place)
    for sequences, length in ((1, 32768), (8, 4096)):
        yield attention(sequences, length, HEADS, HEADS, 1, half, place)
    yield attention(4, 4096, HEADS, KV_HEADS, 512, half, place)
    for tokens in (16, 4096):
        yield from layers(tokens, 8192, half)
    yield from choices(64, 128256, 256)


def bandwidth(device: torch.device) -> float:
    """Bytes a second of the device's memory; 0 if it does not report them."""
    if device.type == "cpu":
        return 0
    properties = torch.get_device_module(device).get_device_properties(device)
    clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
    return 2 * clock * 1e3 * width / 8  # two transfers in a cycle; the clock is in kHz and the width in bits


def title(case: Case, pair: Pair, device: torch.device) -> str:
    peak = bandwidth(device)
    if not case.bytes or not peak:
        return case.name
    return f"{case.name} ({case.bytes / pair.value / peak:.2f} of the bandwidth)"


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, quick: bool) -> Iterator[Row]:
    torch.get_device_module(device).init()
    torch.manual_seed(0)
    for case in cases(quick, baseline):
        # Through the host: torch copies between no two kinds of devices.
        here, there = (tuple(t.cpu().to(place) for t in case.tensors) for place in (device, baseline))

        def run(case: Case = case, tensors: tuple[Tensor, ...] = here) -> Tensor:
            return case.operator(*tensors)

        def run_there(case: Case = case, tensors: tuple[Tensor, ...] = there) -> Tensor:
            return case.composition(*tensors)

        found, expected = run().cpu().double(), run_there().cpu().double()
        if (found - expected).abs().max() > TOLERANCE * expected.abs().max():
            raise RuntimeError(f"{case.name}: the operator and the composition disagree, nothing to time")
        pair = interleaved(run, device, run_there, baseline, effort)
        yield Row(
            "serving", title(case, pair, device), pair.value * 1e3, pair.baseline * 1e3, "ms", BAR,
            ratio=pair.ratio, spread=pair.spread, served=served_by(run, device),
        )  # fmt: skip
