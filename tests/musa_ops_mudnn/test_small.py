# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Small operands, which the emulator computes in its own loops: the results are bitwise equal to torch's."""

from __future__ import annotations

import math

import pytest
import torch

from tests.harness import skips
from tests.harness.device import computes_float64
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


@pytest.mark.parametrize("value", [NAN, INF, -INF, 3.4e38, 1e-45, 2**40 + 1, True])
def test_a_fill_rounds_as_torchs(musa, value):
    filled, expected = torch.ones(5, device="musa").fill_(value).cpu(), torch.ones(5).fill_(value)
    assert torch.equal(filled.view(torch.int32), expected.view(torch.int32))


def test_a_fill_out_of_range_is_refused(musa):
    for x in (torch.ones(5), torch.ones(5, device="musa")):
        with pytest.raises(RuntimeError, match="overflow"):
            x.fill_(1e39)
    assert torch.ones(2, device="musa").sum().item() == 2


NUMBERS = {
    "divided": lambda x: x / 7,
    "multiplied": lambda x: x * 0.1,
    "added": lambda x: x + 0.1,
    "squared": torch.square,
    "rectified": torch.relu,
    "kept": lambda x: x.clone(memory_format=torch.contiguous_format),
}


@pytest.mark.parametrize("operation", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("shape", [(32, 10), (64, 64), (65, 64)], ids=str)
def test_a_number_that_is_broadcast_is_an_operand(musa, served_by_mudnn, operation, shape):
    for number in (-1.3, NAN):
        x = torch.tensor(number)
        result = operation(x.to("musa").expand(shape)).cpu()
        assert torch.equal(result.view(torch.int32), operation(x.expand(shape)).view(torch.int32))


@pytest.mark.parametrize("operation", [torch.add, torch.sub, torch.mul, torch.div], ids=lambda f: f.__name__)
def test_one_operand_of_two_is_a_number(musa, operation):
    x = torch.randn(9, 7, generator=torch.Generator().manual_seed(0))
    for number in (torch.tensor(0.3), torch.tensor([[3.0]]), torch.tensor(-INF).expand(9, 7)):
        for pair in ((x, number), (number, x)):
            there = operation(*(operand.to("musa").expand_as(operand) for operand in pair))
            assert torch.equal(there.cpu(), operation(*pair))
    own = x.to("musa")
    assert torch.equal(own.mul_(own[0, 0].clone()).cpu(), x * x[0, 0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("dims", [None, 0, 1, (0, 2)], ids=str)
def test_a_mean_is_torchs(musa, served_by_mudnn, dtype, dims):
    for shape in ((3, 7, 5), (40, 64, 5), (2, 2500, 3)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
        found, served = served_by_mudnn("aten::mean.dim", lambda x=x: x.to("musa").mean(dims, keepdim=True))
        assert served == (dtype != torch.float64 or computes_float64())
        assert torch.equal(found.cpu(), x.mean(dims, keepdim=True))
    wide = x.to("musa").mean(dims, dtype=torch.float64).cpu()
    assert torch.equal(wide, x.mean(dims, dtype=torch.float64))


@pytest.mark.parametrize("rows", [1, 31, 64, 65])
@pytest.mark.parametrize("columns", [1, 10, 64])
def test_a_product_with_a_bias_is_torchs(musa, rows, columns):
    generator = torch.Generator().manual_seed(0)
    a, b, bias = (
        torch.randn(*shape, generator=generator) for shape in ((rows, 33), (columns, 33), (columns,))
    )
    for beta, alpha in ((1, 1), (0.5, 2), (0, 1)):
        here = torch.addmm(bias, a, b.t(), beta=beta, alpha=alpha)
        there = torch.addmm(bias.to("musa"), a.to("musa"), b.to("musa").t(), beta=beta, alpha=alpha)
        torch.testing.assert_close(there.cpu(), here)


@pytest.mark.parametrize("exponent", [0, 1, 1.0, 2, 2.0, 3, 0.5, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
def test_powers(musa, dtype, exponent):
    x = torch.randint(1, 9, (5, 6), generator=torch.Generator().manual_seed(0)).to(dtype)
    if dtype == torch.int32 and exponent == -1:
        with pytest.raises(RuntimeError, match="negative integer powers"):
            torch.pow(x.to("musa"), exponent)
        return
    for view in (torch.clone, torch.t, lambda x: x[:, ::2], lambda x: x[:1]):
        there, expected = view(x.to("musa")), view(x) ** exponent
        torch.testing.assert_close(torch.pow(there, exponent).cpu(), expected)
        out = torch.empty(0, dtype=expected.dtype, device="musa")
        torch.testing.assert_close(torch.pow(there, exponent, out=out).cpu(), expected)
        if expected.dtype == dtype:
            torch.testing.assert_close(there.clone().pow_(exponent).cpu(), expected)


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
