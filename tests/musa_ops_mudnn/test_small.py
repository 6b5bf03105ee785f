# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Small operands, which the emulator computes in its own loops: the results are bitwise equal to torch's."""

from __future__ import annotations

import math

import pytest
import torch

from tests.harness import skips
from tests.harness.subprocesses import run_code

NAN, INF = math.nan, math.inf

ROWS = {
    "one element": [7.0],
    "ties": [1.0, 3.0, 3.0, -2.0, -2.0],
    "zeros of both signs": [0.0, -0.0, 0.0],
    "a nan behind the extremes": [INF, 2.0, NAN, -INF, NAN],
    "a nan first": [NAN, 1.0, INF],
    "infinities": [-INF, INF, INF, -INF],
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("find", [torch.argmax, torch.argmin], ids=["argmax", "argmin"])
def test_the_position_of_the_maximum_or_minimum_is_the_cpus(musa, served_by_mudnn, find, row):
    x = torch.tensor([ROWS[row], ROWS[row][::-1]])
    there = x.to("musa")
    for dim in (-1, 0, None):
        found, served = served_by_mudnn(f"aten::{find.__name__}", lambda dim=dim: find(there, dim))
        assert served
        assert torch.equal(found.cpu(), find(x, dim))


@pytest.mark.parametrize("shape", [(64, 64), (65, 64)], ids=["in a loop", "by torch"])
def test_the_position_of_the_maximum_or_minimum_in_many_rows(musa, shape):
    x = torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(0)).float()
    for there, here in ((x.to("musa"), x), (x.to("musa").t(), x.t())):
        assert torch.equal(there.argmax(1).cpu(), here.argmax(1))
        assert torch.equal(there.argmin(1, keepdim=True).cpu(), here.argmin(1, keepdim=True))


@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bool, torch.int64], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_slices_by_index(musa, dtype, index_dtype, dim):
    x = (torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0)) * 4).to(dtype)
    index = torch.tensor([2, 0, 2, 1], dtype=index_dtype)
    assert torch.equal(x.to("musa").index_select(dim, index.to("musa")).cpu(), x.index_select(dim, index))


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 1, -2.5])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool], ids=str
)
def test_a_fill_sets_every_element(musa, dtype, value):
    for shape in ((3, 7), (), (1, 4096)):
        here, there = torch.ones(shape, dtype=dtype), torch.ones(shape, dtype=dtype, device="musa")
        filled = there.fill_(value).cpu()
        assert torch.equal(filled, here.fill_(value))
        if dtype.is_floating_point:
            assert torch.equal(filled.signbit(), here.signbit())


def test_a_fill_of_a_view_changes_no_other_element(musa):
    x = torch.ones(4, 6, device="musa")
    x[:, ::2].zero_()
    assert torch.equal(x.cpu(), torch.tensor([0.0, 1.0] * 3).expand(4, 6))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("elements", [1, 255, 1024, 1025])
def test_gelu_equals_torchs_on_both_sides_of_the_limit(musa, elements, approximate):
    x = torch.linspace(-6, 6, elements)
    gelu = torch.nn.functional.gelu
    # torch uses its own kernel up to the limit, and oneDNN's above it.
    torch.testing.assert_close(
        gelu(x.to("musa"), approximate=approximate).cpu(), gelu(x, approximate=approximate)
    )


# An operand in memory that the allocator has freed on the device.
GONE = """
    import torch
    whole = torch.ones(32, 32, device="musa:0")
    large = torch.empty(64 << 20, device="musa:0")
    address = large.data_ptr()
    del large
    torch.musa.empty_cache()
    memory = {memory}
    operand = torch.empty(0, device="musa:0").set_(memory, 0, (32, 32), (32, 1))
    try:
        {operation}
        torch.musa.synchronize(0)
    except RuntimeError as error:
        print("musaErrorIllegalAddress" in str(error))
    else:
        print("no error")
    other = torch.ones(4, device="musa:1")
    print((other + other).tolist())
"""
FREED = 'torch._C._construct_storage_from_data_pointer(address, torch.device("musa:0"), 4096)'
OPERATIONS = {
    "cat": "torch.cat((whole, operand))",
    "add": "whole + operand",
    "relu": "torch.relu(operand)",
    "fill": "operand.zero_()",
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_small_operand_that_was_freed_loses_its_device_and_no_other(operation):
    skips.needs_devices(2)
    lost = run_code(GONE.format(operation=operation, memory=FREED))
    assert lost.splitlines() == ["True", "[2.0, 2.0, 2.0, 2.0]"]


def test_a_small_operand_in_live_memory_loses_no_device():
    skips.needs_devices(2)
    alive = run_code(GONE.format(operation=OPERATIONS["cat"], memory="whole.untyped_storage()"))
    assert alive.splitlines() == ["no error", "[2.0, 2.0, 2.0, 2.0]"]
