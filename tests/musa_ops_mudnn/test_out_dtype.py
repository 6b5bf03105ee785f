# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Products with `out_dtype=`: values, and the errors that torch.cuda raises."""

from __future__ import annotations

import pytest
import torch

SHAPES = {
    "mm": [(3, 4), (4, 5)],
    "bmm": [(2, 3, 4), (2, 4, 5)],
    "addmm": [(3, 5), (3, 4), (4, 5)],
    "baddbmm": [(2, 3, 5), (2, 3, 4), (2, 4, 5)],
}
HALF, BFLOAT, FLOAT, DOUBLE, COMPLEX = (
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
)


def operands(op, dtype):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES[op]]


def call(op, operands, dtype, **options):
    return getattr(torch, op)(*operands, out_dtype=dtype, **options)


def on_musa(tensors):
    return [tensor.to("musa") for tensor in tensors]


@pytest.mark.parametrize(
    ("own", "dtype"),
    [(HALF, FLOAT), (BFLOAT, FLOAT), (HALF, HALF), (FLOAT, FLOAT), (DOUBLE, DOUBLE), (COMPLEX, COMPLEX)],
    ids=str,
)
@pytest.mark.parametrize("op", SHAPES)
def test_the_product_is_computed_in_the_dtype_of_the_result(musa, op, own, dtype):
    inputs = operands(op, own)
    expected = getattr(torch, op)(*(tensor.to(dtype) for tensor in inputs))
    result = call(op, on_musa(inputs), dtype)
    torch.testing.assert_close(result.cpu(), expected)
    out = torch.empty(0, dtype=dtype, device="musa")
    assert call(op, on_musa(inputs), dtype, out=out) is out
    assert torch.equal(out, result)


def test_autocast_does_not_round_the_factors(musa):
    a, b = on_musa(operands("mm", FLOAT))
    expected = torch.mm(a, b)
    with torch.autocast("musa", dtype=BFLOAT):
        assert torch.equal(torch.mm(a, b, out_dtype=FLOAT), expected)


@pytest.mark.parametrize(("own", "dtype"), [(HALF, BFLOAT), (FLOAT, HALF), (FLOAT, DOUBLE)], ids=str)
@pytest.mark.parametrize("op", SHAPES)
def test_another_dtype_is_refused(musa, op, own, dtype):
    inputs = on_musa(operands(op, own))
    for options in ({}, {"out": torch.empty(0, dtype=dtype, device="musa")}):
        with pytest.raises(
            RuntimeError, match=r"out_dtype must be the same as input dtype.*\nFix: "
        ) as error:
            call(op, inputs, dtype, **options)
        assert error.type is RuntimeError  # and not its subclass NotImplementedError


@pytest.mark.parametrize("op", SHAPES)
def test_operands_that_do_not_match_are_refused(musa, op):
    *others, last = on_musa(operands(op, HALF))
    with pytest.raises(RuntimeError, match="input dtypes must be the same"):
        call(op, [*others, last.float()], FLOAT)
    with pytest.raises(RuntimeError, match="out_dtype must be the dtype of out"):
        call(op, [*others, last], FLOAT, out=torch.empty(0, dtype=HALF, device="musa"))
    with pytest.raises(
        RuntimeError, match=r"shapes cannot be multiplied|Expected size for first two"
    ) as error:
        call(op, [*others, last[..., 1:, :]], FLOAT)
    assert error.type is RuntimeError


@pytest.mark.parametrize("op", ["addmm", "baddbmm"])
def test_the_added_tensor_may_have_either_dtype(musa, op):
    added, *factors = on_musa(operands(op, HALF))
    expected = call(op, [added, *factors], FLOAT)
    assert torch.equal(call(op, [added.float(), *factors], FLOAT), expected)
    with pytest.raises(RuntimeError, match="The added tensor must have the dtype"):
        call(op, [added.double(), *factors], FLOAT)
