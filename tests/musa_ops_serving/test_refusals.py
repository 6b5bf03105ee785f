# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Bad arguments raise errors with the values and the change that fixes the call; bad numbers of device
tensors are assertions of the device, because the host reads none of them."""

from __future__ import annotations

import re

import pytest
import torch

from tests.harness.subprocesses import run_forked
from tests.musa_ops_serving.cases import CASES

FIRST = {case.op: case for case in reversed(CASES) if 0 not in case.arguments[0].shape}


def zeros(*shape, dtype=torch.float32, device="musa"):
    return torch.zeros(*shape, dtype=dtype, device=device)


def ints(*shape, dtype=torch.int32):
    return zeros(*shape, dtype=dtype)


# The operator, changes of the first case's arguments by position or name, and the error.
CALLS = {
    "a query in float64": (
        "paged_attention",
        {0: zeros(39, 4, 64, device="cpu").double},
        "float16, bfloat16 or float32",
    ),
    "a query of 2 dimensions": ("paged_attention", {0: lambda: zeros(39, 64)}, "query of shape"),
    "heads that do not divide": ("paged_attention", {0: lambda: zeros(39, 5, 64)}, "divide, got 5"),
    "another head size": ("paged_attention", {0: lambda: zeros(39, 4, 72)}, "with the head size of query"),
    "a cache of another dtype": (
        "paged_attention",
        {1: lambda: zeros(6, 16, 2, 64).half()},
        "float8_e5m2, got Half",
    ),
    "a cache of bytes": (
        "paged_attention",
        {1: lambda: zeros(6, 16, 2, 64, dtype=torch.uint8)},
        r"Fix: .*view\(",
    ),
    "a cache on the CPU": (
        "paged_attention",
        {1: lambda: zeros(6, 16, 2, 64, device="cpu")},
        "on one device",
    ),
    "a transposed cache": (
        "paged_attention",
        {1: lambda: zeros(6, 16, 64, 2).mT},
        "contiguous last dimension",
    ),
    "a cache of odd strides": (
        "paged_attention",
        {1: lambda: zeros(6, 16, 2, 67)[..., :64], 2: lambda: zeros(6, 16, 2, 64)},
        "multiples of 8",
    ),
    "a head size of 60": (
        "paged_attention",
        {0: lambda: zeros(39, 4, 60), 1: lambda: zeros(6, 16, 2, 60), 2: lambda: zeros(6, 16, 2, 60)},
        "Fix: pad",
    ),
    "heads that do not fit": (
        "paged_attention",
        {0: lambda: zeros(39, 4, 4096), 1: lambda: zeros(6, 16, 2, 4096), 2: lambda: zeros(6, 16, 2, 4096)},
        "do not fit into the shared memory",
    ),
    "a table in int64": (
        "paged_attention",
        {3: lambda: ints(3, 3, dtype=torch.int64)},
        "block_table of dtype Int",
    ),
    "a table of fewer sequences": ("paged_attention", {3: lambda: ints(2, 3)}, "a row for each"),
    "too few starts": ("paged_attention", {4: lambda: ints(3)}, "one more than sequence_lengths"),
    "a window of no key": ("paged_attention", {"window": 0}, "at least one key"),
    "a negative soft cap": ("paged_attention", {"soft_cap": -1.0}, "soft_cap that is positive"),
    "slopes of other heads": (
        "paged_attention",
        {"alibi_slopes": lambda: zeros(2)},
        "4 elements, one for each head",
    ),
    "sinks in float16": ("paged_attention", {"sinks": lambda: zeros(4).half()}, r"Fix: sinks\.float"),
    "scales of other heads": (
        "paged_attention",
        {"key_scale": lambda: zeros(3)},
        "one for each of the 2 key heads",
    ),
    "slots in int32": ("reshape_and_cache", {4: lambda: ints(7)}, "slot_mapping of dtype Long"),
    "fewer keys than slots": ("reshape_and_cache", {0: lambda: zeros(6, 2, 16)}, "at least the 7 tokens"),
    "a value of another dtype": ("reshape_and_cache", {1: lambda: zeros(7, 2, 16).half()}, "dtype of key"),
    "a cache of other heads": ("reshape_and_cache", {2: lambda: zeros(3, 16, 3, 16)}, "kv_heads, head_size"),
    "a value cache of other blocks": (
        "reshape_and_cache",
        {3: lambda: zeros(4, 16, 2, 16)},
        "blocks of key_cache",
    ),
    "a weight of another size": ("rms_norm", {1: lambda: zeros(9)}, "the last dimension of input"),
    "a weight of another dtype": ("rms_norm", {1: lambda: zeros(8).half()}, "dtype of input"),
    "a number": ("rms_norm", {0: lambda: zeros(())}, "at least one dimension"),
    "a residual of another shape": ("add_rms_norm", {1: lambda: zeros(3, 9)}, "as input"),
    "a transposed input": ("add_rms_norm_", {0: lambda: zeros(8, 3).mT}, "contiguous last dimension"),
    "a gate without values": ("silu_and_mul", {0: lambda: zeros(3, 7)}, "even size"),
    "another approximation": ("gelu_and_mul", {1: "erf"}, 'got "erf"'),
    "positions in int32": ("rotary_embedding", {0: lambda: ints(5)}, "positions of dtype Long"),
    "more rotated elements than a head": (
        "rotary_embedding",
        {4: lambda: zeros(20, 66)},
        "not larger than head_size 64",
    ),
    "an odd number of rotated elements": ("rotary_embedding", {4: lambda: zeros(20, 7)}, "even number"),
    "heads of another size": ("rotary_embedding", {1: lambda: zeros(5, 4, 60)}, r"\[5, heads, 64\]"),
    "a transposed query": ("rotary_embedding", {1: lambda: zeros(5, 64, 4).mT}, "changed in place"),
    "a mask of numbers": ("apply_penalties", {1: lambda: zeros(1, 5)}, "prompt_mask of dtype Bool"),
    "counts in float32": ("apply_penalties", {2: lambda: zeros(1, 5)}, "int32 or int64"),
    "a penalty for each token": ("apply_penalties", {3: lambda: zeros(5)}, "one for each sequence"),
    "transposed logits": (
        "apply_penalties",
        {
            0: lambda: zeros(5, 4).mT,
            1: lambda: ints(4, 5).bool(),
            2: lambda: ints(4, 5),
            **{i: lambda: zeros(4) for i in (3, 4, 5)},
        },
        r"Fix: logits\.contiguous",
    ),
    "k as numbers with a point": ("top_k_top_p", {1: lambda: zeros(1)}, "int32 or int64"),
    "p of another size": ("top_k_top_p", {2: lambda: zeros(2)}, "p to be a contiguous float32 tensor of 1"),
    "another scoring": ("moe_route", {"scoring": "relu"}, 'got "relu"'),
    "groups that do not divide": ("moe_route", {"groups": 5}, "divide the 48 experts"),
    "more groups than there are": ("moe_route", {"groups": 8, "top_groups": 9}, "top_groups 9"),
    "k of more experts than kept": ("moe_route", {1: 7, "groups": 8, "top_groups": 1}, "the 6 experts"),
    "a bias in float16": ("moe_route", {"bias": lambda: zeros(48).half()}, "one for each expert"),
    "experts as numbers with a point": ("moe_group", {0: lambda: zeros(4)}, "int32 or int64"),
    "no experts": ("moe_group", {1: 0}, "1 to 2048"),
    "weights of another size": ("lora_shrink", {1: lambda: zeros(3, 8, 65)}, "the size of input"),
    "adapters of other tokens": ("lora_shrink", {2: lambda: ints(4)}, "5 elements"),
    "an offset behind the output": ("lora_expand", {4: 9}, "columns from 9"),
    "an input of a third dtype": ("lora_expand", {0: lambda: zeros(5, 8).half()}, "as lora_shrink returns"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_argument_is_named(ops, name):
    op, changes, message = CALLS[name]
    arguments, options = FIRST[op].on("musa", torch.float32)
    arguments = list(arguments)
    for place, value in changes.items():
        value = value() if callable(value) else value
        value = value.to("musa") if isinstance(value, torch.Tensor) and "float64" in name else value
        if isinstance(place, str):
            options[place] = value
        else:
            arguments[place] = value
    with pytest.raises((RuntimeError, ValueError), match=message):
        getattr(ops, op)(*arguments, **options)


def test_one_tensor_cannot_be_the_input_and_the_residual(ops):
    x = zeros(3, 8)
    with pytest.raises(RuntimeError, match="the same tensor"):
        ops.add_rms_norm_(x, x, zeros(8), 1e-5)


ASSERTIONS = {
    "a block behind the cache": (
        "paged_attention",
        "arguments[3][0, 0] = 1000",
        "a block of block_table is outside",
    ),
    "a negative block": ("paged_attention", "arguments[3][1, 0] = -1", "a block of block_table is outside"),
    "a length behind the table": (
        "paged_attention",
        "arguments[5][0] = 1000",
        "longer than its row of block_table",
    ),
    "a negative length": ("paged_attention", "arguments[5][0] = -1", "longer than its row of block_table"),
    "starts that descend": ("paged_attention", "arguments[4][1] = 39", "query_starts does not divide"),
    "starts behind the tokens": ("paged_attention", "arguments[4][-1] = 50", "query_starts"),
    "a slot behind the cache": (
        "reshape_and_cache",
        "arguments[4][0] = 48",
        "a slot is outside of the cache",
    ),
    "a position behind the table": ("rotary_embedding", "arguments[0][2] = 20", "a position is outside"),
    "a negative position": ("rotary_embedding", "arguments[0][2] = -1", "a position is outside"),
    "an expert that does not exist": (
        "moe_group",
        "arguments[0][2] = arguments[1]",
        "an expert is not below",
    ),
    "an adapter that does not exist": (
        "lora_shrink",
        "arguments[2][1] = 3",
        "an adapter of adapter_of_token",
    ),
    "an adapter of expand that does not exist": (
        "lora_expand",
        "arguments[2][1] = 3",
        "an adapter of adapter_of_token",
    ),
}


@pytest.mark.parametrize("name", ASSERTIONS)
def test_an_index_that_does_not_exist_is_an_assertion_of_the_device(name):
    """In a process of its own, because the device cannot be used afterwards."""
    op, change, message = ASSERTIONS[name]
    done = run_forked(
        "import torch\n"
        "from tests.musa_ops_serving.test_refusals import FIRST\n"
        f"arguments, options = FIRST[{op!r}].on('musa', torch.float32)\n"
        f"{change}\n"
        f"torch.ops.musa_serving.{op}(*arguments, **options)\n"
        "torch.musa.synchronize()\n"
    )
    assert done.returncode != 0
    assert re.search(message, done.stderr), done.stderr[-2000:]
