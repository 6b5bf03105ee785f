# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Samples of each operator, made on the CPU. A float64 tensor stands for each dtype that the operator takes;
tensors of other dtypes keep theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tests.musa_ops_serving import references

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# The layouts in which float tensors are passed: the elements that a row has behind those of the tensor. Eight
# keep the alignment of the vectors that kernels load, three do not.
LAYOUTS = (0, 8, 3)
# float32 sums of up to a thousand products; halves are rounded once, and some inputs are rounded sums.
TOLERANCE = {
    torch.float32: {"rtol": 2e-5, "atol": 2e-5},
    torch.float16: {"rtol": 2e-3, "atol": 1e-3},
    torch.bfloat16: {"rtol": 1.6e-2, "atol": 8e-3},
}


@dataclass(frozen=True)
class Case:
    """A sample of an operator. `changed`: positions of the arguments that it changes."""

    op: str
    name: str
    arguments: tuple
    options: dict[str, Any] = field(default_factory=dict)
    changed: tuple[int, ...] = ()
    layouts: tuple[int, ...] = LAYOUTS

    def __str__(self) -> str:
        return f"{self.op}-{self.name}"

    def with_tensors(self, change: Callable[[Tensor], Tensor]) -> tuple[tuple, dict[str, Any]]:
        """The arguments and options with each tensor changed."""

        def changed(value: Any) -> Any:
            return change(value) if isinstance(value, Tensor) else value

        return tuple(map(changed, self.arguments)), {k: changed(v) for k, v in self.options.items()}

    def on(self, device: str, dtype: torch.dtype, layout: int = 0) -> tuple[tuple, dict[str, Any]]:
        """Copies of the arguments on a device."""

        def moved(value: Tensor) -> Tensor:
            if value.dtype != torch.float64:
                return value.clone().to(device)
            room = torch.full((*value.shape[:-1], value.shape[-1] + layout), 7.0, dtype=dtype, device=device)
            view = room[..., : value.shape[-1]]
            view.copy_(value)
            return view

        return self.with_tensors(moved)

    def run(self, device: str, dtype: torch.dtype, layout: int = 0) -> list[Tensor]:
        """Results and changed arguments of the operator."""
        arguments, options = self.on(device, dtype, layout)
        return self._results(getattr(torch.ops.musa_serving, self.op)(*arguments, **options), arguments)

    def expected(self, dtype: torch.dtype) -> list[Tensor]:
        """The same of the reference, which gets the numbers of that dtype."""
        arguments, options = self.with_tensors(
            lambda value: value.to(dtype).double() if value.dtype == torch.float64 else value.clone()
        )
        return self._results(getattr(references, self.op)(*arguments, **options), arguments)

    def run_with(self, operators: Any, arguments: tuple) -> Any:
        """Calls the operator with arguments of another form."""
        return getattr(operators, self.op)(*arguments, **self.options)

    def run_reference(self, arguments: tuple) -> Any:
        return getattr(references, self.op)(*arguments, **self.options)

    def _results(self, results: Any, arguments: tuple) -> list[Tensor]:
        if self.changed:
            assert results is None
            return [arguments[place] for place in self.changed]
        return [results] if isinstance(results, Tensor) else list(results)

    def check(self, device: str, dtype: torch.dtype, layout: int = 0) -> None:
        for found, expected in zip(self.run(device, dtype, layout), self.expected(dtype), strict=True):
            if expected.dtype == torch.float64:
                # Weights of experts and results of lora_shrink are float32.
                assert found.dtype in (dtype, torch.float32)
                tolerance = dict(TOLERANCE[found.dtype])
                torch.testing.assert_close(found.cpu().double(), expected, equal_nan=True, **tolerance)
            else:
                found = found.cpu()
                assert found.dtype == expected.dtype
                if expected.is_floating_point():
                    # Bytes of float8 numbers, except of NaN, whose sign devices do not keep.
                    numbers_of = ~expected.float().isnan()
                    assert torch.equal(~found.float().isnan(), numbers_of)
                    found, expected = (x.view(torch.uint8)[numbers_of] for x in (found, expected))
                torch.testing.assert_close(found, expected, rtol=0, atol=0)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32, seed: int = 0) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def attention(
    lengths: list[int],
    queries: list[int],
    heads: int = 4,
    kv_heads: int = 2,
    size: int = 64,
    value_size: int | None = None,
    block_size: int = 16,
    cache_dtype: torch.dtype | None = None,
    padding: int = 0,
    latent: bool = False,
    **options: Any,
) -> tuple[tuple, dict[str, Any]]:
    """Arguments of paged_attention: sequences whose blocks are spread over the cache."""
    value_size = value_size or size
    counts = [-(-length // block_size) for length in lengths]
    blocks, most = sum(counts) + 2, max([1, *counts])
    keys = numbers(blocks, block_size, kv_heads, size, seed=1)
    values = keys[..., :value_size] if latent else numbers(blocks, block_size, kv_heads, value_size, seed=2)
    if cache_dtype is not None:
        keys, values = keys.to(cache_dtype), values.to(cache_dtype)
    places = torch.randperm(blocks, generator=torch.Generator().manual_seed(3)).int()
    table = torch.full((len(lengths), most), -7, dtype=torch.int32)  # a kernel that reads these would fail
    for row, count in zip(table, counts):
        row[:count], places = places[:count], places[count:]
    for row, count, length in zip(table, counts, lengths):
        if unwritten := count * block_size - length:
            # Unwritten memory may have any bits.
            keys[row[count - 1], -unwritten:] = torch.nan
            values[row[count - 1], -unwritten:] = torch.nan
    starts = torch.tensor([0, *queries]).cumsum(0).int()
    query = numbers(int(starts[-1]) + padding, heads, size, seed=4)
    lengths_of = torch.tensor(lengths, dtype=torch.int32)
    options.setdefault("scale", size**-0.5)
    most_query = max([1, *queries])
    return (query, keys, values, table, starts, lengths_of, most_query, max([0, *lengths])), options


def attention_cases() -> Iterator[Case]:
    floats = torch.rand(8, generator=torch.Generator().manual_seed(5))
    samples: dict[str, dict[str, Any]] = {
        "prefill": {"lengths": [5, 33, 1], "queries": [5, 33, 1]},
        "prefill with a cached prefix": {"lengths": [50, 21], "queries": [7, 20]},
        "decode": {"lengths": [5, 70, 1], "queries": [1, 1, 1]},
        "mixed": {"lengths": [5, 70, 33, 9], "queries": [1, 17, 33, 1]},
        "no tokens": {"lengths": [], "queries": []},
        "sequences without tokens and padded tokens":
            {"lengths": [0, 12, 0, 3], "queries": [1, 1, 0, 1], "padding": 5},
        "long decode, split keys": {"lengths": [1500, 40, 0, 700], "queries": [1, 1, 1, 1], "padding": 1},
        "split keys of several tokens": {"lengths": [900, 800], "queries": [3, 2], "window": 650},
        "one head": {"lengths": [40, 9], "queries": [3, 1], "heads": 1, "kv_heads": 1},
        "eight heads of a key head": {"lengths": [40, 9], "queries": [1, 1], "heads": 8, "kv_heads": 1},
        "sixteen heads of a key head": {"lengths": [300, 9], "queries": [1, 1], "heads": 16, "kv_heads": 1},
        "three heads of a key head": {"lengths": [40, 9], "queries": [5, 1], "heads": 6, "kv_heads": 2},
        "not causal": {"lengths": [40, 9], "queries": [5, 9], "causal": False},
        "window": {"lengths": [40, 9, 70], "queries": [20, 9, 1], "window": 6},
        "window of one key": {"lengths": [40, 9], "queries": [3, 1], "window": 1},
        "window, not causal": {"lengths": [40, 9], "queries": [5, 9], "window": 4, "causal": False},
        "window of split keys, two tokens of four heads":
            {"lengths": [1501, 702], "queries": [2, 1], "heads": 4, "kv_heads": 1, "window": 1001},
        **{f"eight heads of {size}": {"lengths": [400, 33], "queries": [1, 1], "heads": 8, "kv_heads": 1,
           "size": size} for size in (64, 128, 256)},
        "soft cap": {"lengths": [40, 9], "queries": [5, 1], "soft_cap": 1.5},
        "ALiBi": {"lengths": [40, 9], "queries": [5, 1], "alibi_slopes": floats[:4]},
        "sinks": {"lengths": [40, 9, 0], "queries": [5, 1, 1], "sinks": floats[:4] * 4 - 2},
        "sinks of split keys":
            {"lengths": [1100, 9], "queries": [1, 1], "sinks": floats[:4] * 4 - 2, "soft_cap": 2.0},
        "all options": {"lengths": [60, 9], "queries": [5, 1], "window": 20, "soft_cap": 2.0,
            "alibi_slopes": floats[:4], "sinks": floats[4:]},
        "blocks of one token": {"lengths": [20, 9], "queries": [5, 1], "block_size": 1},
        "blocks of seven tokens": {"lengths": [20, 9], "queries": [5, 1], "block_size": 7},
        "latent": {"lengths": [70, 9], "queries": [1, 1], "heads": 16, "kv_heads": 1, "size": 576,
            "value_size": 512, "latent": True},
        "latent prefill": {"lengths": [20, 9], "queries": [6, 9], "heads": 4, "kv_heads": 1, "size": 576,
            "value_size": 512, "latent": True},
        "192 and 128": {"lengths": [20, 9], "queries": [6, 1], "size": 192, "value_size": 128},
        **{f"heads of {size}": {"lengths": [20, 70], "queries": [6, 1], "size": size}
           for size in (8, 72, 80, 96, 128, 256, 320, 512)},
        "scales": {"lengths": [40, 9], "queries": [5, 1], "key_scale": floats[:2],
            "value_scale": floats[2:3]},
    }  # fmt: skip
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        scales = {"key_scale": floats[:1], "value_scale": floats[1:2]}
        name = str(dtype).removeprefix("torch.")
        samples[name] = {"lengths": [70, 9], "queries": [5, 1], "cache_dtype": dtype, **scales}
        samples[f"{name}, a scale for each head"] = {
            "lengths": [700, 9], "queries": [1, 1], "cache_dtype": dtype,
            "key_scale": floats[:2], "value_scale": floats[2:4],
        }  # fmt: skip
    for name, sample in samples.items():
        arguments, options = attention(**sample)
        yield Case("paged_attention", name, arguments, options, layouts=(0, 8))


def cache_cases() -> Iterator[Case]:
    slots = torch.tensor([5, -1, 47, 0, 16, -3, 31])
    for name, (heads, size, value_size, padding) in {
        "equal heads": (2, 16, 16, 0), "other values": (1, 24, 8, 0), "odd heads": (3, 5, 7, 2),
        "no heads": (0, 8, 8, 0),
    }.items():  # fmt: skip
        key = numbers(len(slots) + padding, heads, size)
        value = numbers(len(slots) + padding, heads, value_size, seed=1)
        caches = numbers(3, 16, heads, size, seed=2), numbers(3, 16, heads, value_size, seed=3)
        yield Case("reshape_and_cache", name, (key, value, *caches, slots), changed=(2, 3))
    key, value = numbers(7, 2, 16) * 300, numbers(7, 2, 8, seed=1) * 1e-3
    key[0, 0, :4] = torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        caches = torch.zeros(3, 16, 2, 16).to(dtype), torch.zeros(3, 16, 2, 8).to(dtype)
        for name, scales in {
            "": (), " with scales": (torch.tensor([1.7]), torch.tensor([0.002])),
            " with a scale for each head": (torch.tensor([1.0, 2.5]), torch.tensor([0.001, 0.3])),
        }.items():  # fmt: skip
            case = (key, value, *caches, slots, *scales)
            yield Case("reshape_and_cache", f"{dtype}{name}".removeprefix("torch."), case, changed=(2, 3))
    nothing = numbers(0, 2, 16), numbers(0, 2, 16), numbers(3, 16, 2, 16), numbers(3, 16, 2, 16), slots[:0]
    yield Case("reshape_and_cache", "no tokens", nothing, changed=(2, 3))


def layer_cases() -> Iterator[Case]:
    for shape in (
        (3, 8),
        (5, 100),
        (2, 3, 64),
        (70, 128),
        (2, 2049),
        (3, 4096),
        (2, 9000),
        (2, 2, 2, 16),
        (7,),
        (0, 64),
    ):
        weight = numbers(shape[-1], seed=9)
        name = " x ".join(map(str, shape))
        yield Case("rms_norm", name, (numbers(*shape), weight, 1e-5))
        pair = numbers(*shape), numbers(*shape, seed=1), weight, 1e-5
        yield Case("add_rms_norm", name, pair)
        layouts = LAYOUTS if len(shape) < 4 else (0,)
        yield Case("add_rms_norm_", name, pair, changed=(0, 1), layouts=layouts)
        if shape[-1] % 2 == 0:
            yield Case("silu_and_mul", name, (numbers(*shape) * 3,))
            for approximate in ("none", "tanh"):
                yield Case("gelu_and_mul", f"{name} {approximate}", (numbers(*shape) * 3, approximate))
    angles = torch.rand(20, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 6
    places = integers(0, 20, 5, dtype=torch.int64)
    for neox in (True, False):
        for rotated in (64, 32, 24, 2):
            style = "NeoX" if neox else "GPT-J"
            table = torch.cat([angles[:, : rotated // 2].cos(), angles[:, : rotated // 2].sin()], 1)
            heads = numbers(5, 4, 64), numbers(5, 2, 64, seed=1)
            about = f"{style}, {rotated} of 64"
            yield Case("rotary_embedding", about, (places, *heads, 64, table, neox), changed=(1, 2))
        flat = numbers(5, 256), numbers(5, 128, seed=1)
        yield Case("rotary_embedding", f"{style}, flat", (places, *flat, 64, table, neox), changed=(1, 2))
        single = table.float()
        yield Case("rotary_embedding", f"{style}, float32", (places, *flat, 64, single, neox), changed=(1, 2))
        alone = (places, heads[0], None, 64, table, neox)
        yield Case("rotary_embedding", f"{style}, no key", alone, changed=(1,))
    nothing = (places[:0], numbers(0, 4, 64), None, 64, table, True)
    yield Case("rotary_embedding", "no tokens", nothing, changed=(1,))


def sampling_cases() -> Iterator[Case]:
    for rows, size in ((1, 5), (3, 700), (2, 5000), (0, 8)):
        logits = numbers(rows, size) * 3
        mask = integers(0, 2, rows, size).bool()
        factors = [torch.rand(rows, generator=torch.Generator().manual_seed(seed)) + 0.5 for seed in range(3)]
        for dtype in (torch.int32, torch.int64):
            counts = integers(-2, 4, rows, size, dtype=dtype).clamp(min=0)
            case = (logits, mask, counts, *factors)
            yield Case("apply_penalties", f"{rows} x {size} {dtype}", case, changed=(0,))
        k = torch.tensor([3, 0, 40])[:rows]
        p = torch.tensor([0.9, 0.3, 0.0])[:rows]
        about = f"{rows} x {size}"
        for name, choice in {
            "k": (k, None), "p": (None, p), "k and p": (k.int(), p), "none": (None, None),
            "p of 1": (k, p.clamp(1.0)),
        }.items():  # fmt: skip
            yield Case("top_k_top_p", f"{about} {name}", (logits, *choice))
    special = torch.tensor([[torch.inf, 1.0, -torch.inf, 0.0], [-torch.inf] * 4], dtype=torch.float64)
    yield Case("top_k_top_p", "infinities", (special, torch.tensor([2, 2]), None))
    equal = torch.tensor([[1.0, 2.0, 2.0, 2.0, 0.0]], dtype=torch.float64)
    yield Case("top_k_top_p", "equal logits", (equal, torch.tensor([2]), torch.tensor([0.5])))
    zeros = torch.tensor([[-1.0, -0.0, 0.0, -2.0]], dtype=torch.float64)
    yield Case("top_k_top_p", "equal zeros", (zeros, torch.tensor([1]), None))


def expert_cases() -> Iterator[Case]:
    # Whole multiples of 1/8, so that no dtype rounds two scores to one.
    scores = torch.stack([torch.randperm(48, generator=torch.Generator().manual_seed(s)) for s in range(6)])
    scores = scores.double() / 8 - 3
    bias = torch.rand(48, generator=torch.Generator().manual_seed(7)) * 0.01
    for scoring in ("softmax", "sigmoid"):
        for name, options in {
            "all": {}, "not renormalized": {"renormalize": False, "scale": 2.5}, "bias": {"bias": bias},
            "groups": {"groups": 8, "top_groups": 3},
            "groups with a bias": {"groups": 8, "top_groups": 3, "bias": bias, "scale": 2.5},
            "groups of one": {"groups": 48, "top_groups": 6, "bias": bias},
        }.items():  # fmt: skip
            options = {"scoring": scoring, **options}
            yield Case("moe_route", f"{scoring}, {name}", (scores, 6), options)
    yield Case("moe_route", "one expert", (scores[:, :1], 1))
    yield Case("moe_route", "no tokens", (scores[:0], 2))
    many = torch.stack([torch.randperm(512, generator=torch.Generator().manual_seed(s)) for s in range(3)])
    distinct = 2.0 ** (many // 128) * (1 + many % 128 / 128)  # 128 numbers of bfloat16 in each power of two
    yield Case("moe_route", "512 experts", (distinct.double(), 8))
    for rows, count in ((0, 4), (5, 1), (40, 7), (1000, 300)):
        for dtype in (torch.int32, torch.int64):
            experts = integers(0, count, rows, 2, dtype=dtype)
            yield Case("moe_group", f"{rows} x 2 of {count} {dtype}", (experts, count))
    yield Case("moe_group", "rows without an expert", (integers(-1, 5, 333), 6))


def lora_cases() -> Iterator[Case]:
    for tokens, size, rank in ((5, 64, 8), (3, 100, 16), (4, 513, 5), (6, 2048, 40), (0, 16, 4)):
        adapters = integers(-1, 3, tokens)
        name = f"{tokens} x {size}, rank {rank}"
        scaled = numbers(3, rank, size, seed=1) * size**-0.5
        yield Case("lora_shrink", name, (numbers(tokens, size), scaled, adapters, 0.5))
        weights, output = numbers(3, size, rank, seed=1), numbers(tokens, size + 8, seed=2)
        expand = (numbers(tokens, rank), weights, adapters.long(), output, 8)
        yield Case("lora_expand", name, expand, changed=(3,))
        single = (numbers(tokens, rank).float(), *expand[1:4])
        yield Case("lora_expand", f"{name}, float32", single, changed=(3,))


CASES = [
    *attention_cases(),
    *cache_cases(),
    *layer_cases(),
    *sampling_cases(),
    *expert_cases(),
    *lora_cases(),
]
