# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls on dense tensors of one shape bypass torch's iterator and give the same result as with it."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

OPERATORS = {
    "add": torch.add,
    "add, scaled": lambda x, y: torch.add(x, y, alpha=3),
    "div": torch.div,
    "gt": torch.gt,
    "maximum": torch.maximum,
    "exp": lambda x, y: torch.exp(x),
    "gelu": lambda x, y: functional.gelu(x),
    "sigmoid": lambda x, y: torch.sigmoid(x),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=2),
    "mul by a number": lambda x, y: x * 3,
    "mul by a CPU tensor": lambda x, y: x * torch.tensor(2.5, dtype=torch.float64),
    "comparison with a number": lambda x, y: x < 0.25,
}

LAYOUTS = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(1, 3),
    "dense, in no known order": lambda x: x.permute(2, 0, 3, 1),
    "with gaps": lambda x: x[..., ::2],
    "expanded": lambda x: x[:1].expand(3, -1, -1, -1),
    "no dimensions": lambda x: x[0, 0, 0, 0],
    "one row, with a stride of its own": lambda x: x[:1].as_strided((1, 4, 3, 6), (7, 18, 6, 1)),
    "one image, with a stride of its own": lambda x: x.contiguous(
        memory_format=torch.channels_last
    ).as_strided((1, 4, 3, 6), (7, 1, 24, 4)),
    "one element": lambda x: x[:1, :1, :1, :1],
}


def operands(dtype, layout):
    generator = torch.Generator().manual_seed(0)
    x, y = ((torch.randn(2, 4, 3, 6, generator=generator) * 4).to(dtype) for _ in range(2))
    return layout(x), layout(y)


def on_device(tensor):
    """A copy on the device with the same strides."""
    if tensor.dim() > 0 and tensor.stride(0) == 0:
        return tensor[:1].to("musa").expand_as(tensor)
    there = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="musa")
    return there.copy_(tensor)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64], ids=str)
@pytest.mark.parametrize("op", OPERATORS)
def test_values_dtype_and_strides_are_the_cpus(musa, op, dtype, layout):
    x, y = operands(dtype, LAYOUTS[layout])
    if dtype == torch.int64 and op == "gelu":
        with pytest.raises(RuntimeError):
            OPERATORS[op](x.to("musa"), y.to("musa"))
        return
    if dtype == torch.int64 and op == "div":
        y = y + (y == 0)
    expected = OPERATORS[op](x, y)
    actual = OPERATORS[op](on_device(x), on_device(y))
    assert actual.dtype == expected.dtype
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual.cpu(), expected)


def test_operands_in_different_orders(musa):
    x, y = operands(torch.float32, LAYOUTS["contiguous"])
    y = y.contiguous(memory_format=torch.channels_last)
    expected, actual = x + y, on_device(x) + on_device(y)
    assert actual.stride() == expected.stride()
    torch.testing.assert_close(actual.cpu(), expected)


def test_operands_of_different_dtypes(musa):
    x, y = operands(torch.float32, LAYOUTS["contiguous"])
    for other in (torch.float64, torch.float16, torch.int32):
        expected, actual = x + y.to(other), x.to("musa") + y.to(other).to("musa")
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual.cpu(), expected)


@pytest.mark.parametrize("op", ["add", "mul", "div"])
def test_in_place(musa, op):
    x, y = operands(torch.float32, LAYOUTS["channels last"])
    there, other = on_device(x), on_device(y)
    result = getattr(there, op + "_")(other)
    assert result is there
    torch.testing.assert_close(there.cpu(), getattr(x, op + "_")(y))


def test_in_place_on_itself(musa):
    x = torch.arange(1.0, 9.0, device="musa")
    assert x.mul_(x).tolist() == [k * k for k in range(1, 9)]


def test_a_result_that_shares_a_part_with_an_operand_is_refused(musa):
    x = torch.arange(8.0, device="musa")
    with pytest.raises(RuntimeError, match=r"(?i)overlap|single memory location"):
        x[1:].add_(x[:-1])
    with pytest.raises(RuntimeError, match=r"(?i)overlap|single memory location"):
        torch.exp(x[1:], out=x[:-1])
    assert x.tolist() == list(range(8))


def test_halves_of_one_tensor_that_do_not_meet(musa):
    x = torch.arange(8.0, device="musa")
    x[:4].add_(x[4:])
    assert x.tolist() == [4, 6, 8, 10, 4, 5, 6, 7]


def test_out_of_another_dtype_and_shape(musa):
    x, y = torch.arange(4.0, device="musa"), torch.ones(4, device="musa")
    wide = torch.empty(4, dtype=torch.float64, device="musa")
    assert torch.add(x, y, out=wide).tolist() == [1, 2, 3, 4]
    empty = torch.empty(0, device="musa")
    assert torch.add(x, y, out=empty).tolist() == [1, 2, 3, 4]
    truth = torch.empty(4, device="musa")
    assert torch.gt(x, y, out=truth).tolist() == [0, 0, 1, 1]
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.add(x, y, out=torch.empty(4, dtype=torch.int32, device="musa"))


def test_operands_that_the_meta_function_rejects_are_rejected(musa):
    x = torch.ones(4, device="musa")
    with pytest.raises(RuntimeError, match="complex"):
        torch.add(x, x, alpha=1j)
    with pytest.raises(RuntimeError, match="rounding_mode"):
        torch.div(x, x, rounding_mode="up")
    with pytest.raises(RuntimeError, match="negative slope"):
        torch.ops.aten.leaky_relu_backward(x, x, -1.0, True)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x - True,
        lambda x: True - x,
        lambda x: x.sub_(True),
        lambda x: x - torch.tensor(True),
        lambda x: torch.sub(x, x, alpha=True),
        lambda x: torch.add(x, x, alpha=True),
        lambda x: x.add_(1, alpha=True),
    ],
)
def test_booleans_in_place_of_numbers_are_refused(musa, f):
    with pytest.raises(RuntimeError) as here:
        f(torch.ones(4))
    x = torch.ones(4, device="musa")
    with pytest.raises(RuntimeError) as there:
        f(x)
    assert str(here.value) in str(there.value)
    assert x.tolist() == [1] * 4


def test_booleans_that_are_accepted_as_numbers(musa):
    x = torch.full((4,), 3.0, device="musa")
    assert ((x * True).tolist(), (x + True).tolist(), (x == True).tolist()) == ([3] * 4, [4] * 4, [False] * 4)  # noqa: E712


def test_a_number_of_a_higher_category_promotes_the_result(musa):
    x = torch.ones(4, device="musa")
    assert (x * torch.tensor(1j)).dtype == torch.complex64
    assert (x * 1j).dtype == torch.complex64
