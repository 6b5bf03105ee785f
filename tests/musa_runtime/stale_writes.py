# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators of torch's CPU kernels on device memory, beside a thread that fills memory and frees it.

The allocator is ordered by streams: a freed block may be allocated again while work that writes to it is
still queued. `python -m tests.musa_runtime.stale_writes [STEP]` calls every STEP-th operator of torch's
database with such work queued for every free block, after each wait for the stream, and prints wrong results.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch
from torch.utils._pytree import tree_leaves, tree_map

from tests.conformance.operators import OPS, RANDOM, UNINITIALISED
from tests.harness.call_observer import check, observed_calls
from tests.harness.emulator import loaded_sdk

_WAITS = ("musaStreamQuery", "musaStreamSynchronize")
ON_THE_CPU = frozenset(("tensor_split",))  # takes indices on the CPU alone
_BYTE = 0x7B  # in every byte, of no number that the samples compute


def stale_writes() -> AbstractContextManager[None]:
    """After each wait for a stream, queues writes to every free block of the device on the current stream."""
    sdk = loaded_sdk()

    def fill_free_blocks(name: str, ended: bool) -> None:
        if not ended or name not in _WAITS:
            return
        stream = ctypes.c_void_p(torch.musa.current_stream().musa_stream)
        for segment in torch.musa.memory_snapshot():
            for block in segment["blocks"]:
                if block["state"] == "inactive":
                    address, size = ctypes.c_void_p(block["address"]), ctypes.c_size_t(block["size"])
                    check(sdk.musaMemsetAsync(address, _BYTE, size, stream))

    return observed_calls(fill_free_blocks)


def moved(value):
    """The value on the device, tensors that are differentiable as leaves."""

    def move(leaf):
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to("musa").requires_grad_(leaf.requires_grad)
        return torch.device("musa") if isinstance(leaf, torch.device) else leaf

    value = tree_map(move, value)
    if isinstance(value, dict) and value.get("device") == "cpu":
        value = {**value, "device": "musa"}
    return value


def results(op, args, kwargs) -> list[torch.Tensor]:
    """The operator's results, and the gradients of its differentiable arguments, as dense CPU tensors."""
    out = [leaf for leaf in tree_leaves(op(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
    inputs = [
        leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    outputs = [leaf for leaf in out if leaf.requires_grad]
    if inputs and outputs:
        ones = [torch.ones_like(leaf) for leaf in outputs]
        out += [g for g in torch.autograd.grad(outputs, inputs, ones, allow_unused=True) if g is not None]
    return [(leaf.to_dense() if leaf.layout is not torch.strided else leaf).detach().cpu() for leaf in out]


def cases() -> Iterator[tuple[str, object, torch.dtype]]:
    for op in OPS:
        if op.name in RANDOM | UNINITIALISED | ON_THE_CPU or "dropout" in op.name:
            continue
        for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
            if dtype in op.dtypes:
                yield f"{op.full_name}, {dtype}", op, dtype
                break


def wrong(op, dtype: torch.dtype) -> str:
    differentiable = dtype.is_floating_point and op.supports_autograd
    sample = next(iter(op.sample_inputs("cpu", dtype, requires_grad=differentiable)), None)
    if sample is None:
        return ""
    arguments = ((sample.input, *sample.args), sample.kwargs)
    on_device = moved(arguments[0]), moved(arguments[1])
    try:
        expected = results(op, *arguments)
    except RuntimeError:
        return ""  # the sample's gradient is undefined on the CPU too
    torch.musa.synchronize()
    with stale_writes():
        actual = results(op, *on_device)
    pairs = zip(expected, actual, strict=True)
    close = (
        torch.allclose(a.to(b.dtype), b, rtol=1e-2, atol=1e-2, equal_nan=True) for a, b in pairs if a.numel()
    )
    return "" if all(close) else "wrong values"


def main() -> None:
    warnings.simplefilter("ignore")
    torch.musa.init()
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = 0
    for name, op, dtype in itertools.islice(cases(), 0, None, step):
        count += 1
        try:
            said = wrong(op, dtype)
        except Exception as error:  # noqa: BLE001 (reported as the case's failure)
            said = f"{type(error).__name__}: {str(error)[:200]}"
        if said:
            print(f"{name}: {said}", flush=True)
    print(f"{count} operators")


if __name__ == "__main__":
    main()
