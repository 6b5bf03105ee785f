# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each operator of CUDA's autocast table computes on musa in the table's dtype, and returns the table's."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.musa_amp import table

LOW = (torch.float16, torch.bfloat16)
# Copies and views that prepare operands.
PREPARATION = ("_to_copy", "clone", "copy_", "detach", "alias", "empty_like", "zeros_like", "ones_like")


class Witness(TorchDispatchMode):
    """Records in which dtypes operators below autocast compute: `dtype=` if given, else the operands'."""

    def __init__(self):
        super().__init__()
        self.computed = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        if name not in PREPARATION and not func.is_view:
            told = kwargs.get("dtype")
            operands = {
                leaf.dtype
                for leaf in tree_leaves((args, kwargs))
                if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
            }
            if operands:
                self.computed.setdefault(name, set()).update({told} if told else operands)
        return func(*args, **kwargs)


def overload(name):
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def maker(dtype):
    return lambda *shape: (torch.rand(*shape, device="musa") * 0.8 + 0.1).to(dtype)


def zeros(*shape):
    return torch.zeros(*shape, dtype=torch.int64, device="musa")


def run(name, operands, low):
    """Returns the result's dtype of one call under autocast, and the dtypes computed in, by operator."""
    with torch.autocast("musa", dtype=low), Witness() as witness:
        result = overload(name)(*operands)
    first = next(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
    return first.dtype, witness.computed


def assert_all_in(computed, dtype):
    assert computed, "no operator computed anything"
    assert {name: dtypes for name, dtypes in computed.items() if dtypes != {dtype}} == {}


def test_the_table_is_that_of_the_installed_torch(musa):
    def registered(key):
        names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
        return {name.removeprefix("aten::") for name in names if name.startswith("aten::")}

    cuda = registered("AutocastCUDA")
    assert cuda == set(table.ALL) and len(table.ALL) == len(cuda) == 119
    assert registered("AutocastPrivateUse1") == cuda - set(table.WITHOUT_COUNTERPART)


@pytest.mark.parametrize("low", LOW, ids=str)
@pytest.mark.parametrize("name", table.LOWER_PRECISION)
def test_operands_of_float32_are_cast_down(musa, name, low):
    dtype, computed = run(name, table.LOWER_PRECISION[name](maker(torch.float32), zeros), low)
    assert dtype == low
    assert_all_in(computed, low)


@pytest.mark.parametrize("low", LOW, ids=str)
@pytest.mark.parametrize("name", table.FLOAT32)
def test_operands_of_16_bits_are_cast_up(musa, name, low):
    dtype, computed = run(name, table.FLOAT32[name](maker(low), zeros), low)
    assert dtype == torch.float32
    assert_all_in(computed, torch.float32)


@pytest.mark.parametrize("low", LOW, ids=str)
@pytest.mark.parametrize("name", [*table.FLOAT32_RESULT, *table.FLOAT32_RESULT_BY_OTHER_OVERLOAD])
def test_results_are_float32(musa, name, low):
    operands = {**table.FLOAT32_RESULT, **table.FLOAT32_RESULT_BY_OTHER_OVERLOAD}[name](maker(low), zeros)
    dtype, computed = run(name, operands, low)
    assert dtype == torch.float32
    assert_all_in(computed, torch.float32)


@pytest.mark.parametrize("name", table.FLOAT32_RESULT)
def test_a_dtype_that_the_caller_names_is_respected(musa, name):
    operands = table.FLOAT32_RESULT[name](maker(torch.float16), zeros)
    with torch.autocast("musa"):
        assert overload(name)(*operands, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize("low", LOW, ids=str)
@pytest.mark.parametrize("name", table.PROMOTED)
def test_operands_are_cast_to_the_widest(musa, name, low):
    call = table.PROMOTED[name]
    for first, expected in ((torch.float32, torch.float32), (low, low)):
        dtype, computed = run(name, call(maker(first), maker(low), zeros), low)
        assert dtype == expected
        assert_all_in(computed, expected)


FLOAT64 = {
    **table.LOWER_PRECISION,
    **table.FLOAT32,
    **table.FLOAT32_RESULT,
    **table.FLOAT32_RESULT_BY_OTHER_OVERLOAD,
}


@pytest.mark.parametrize("name", FLOAT64)
def test_float64_is_not_cast(musa, name):
    dtype, computed = run(name, FLOAT64[name](maker(torch.float64), zeros), torch.float16)
    assert dtype == torch.float64
    assert_all_in(computed, torch.float64)


def test_binary_cross_entropy_is_refused_and_the_error_names_the_alternative(musa):
    probability = torch.full((3,), 0.5, device="musa")
    with torch.autocast("musa"):
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            torch.nn.functional.binary_cross_entropy(probability, probability)
        with torch.autocast("musa", enabled=False):
            torch.nn.functional.binary_cross_entropy(probability, probability)


@pytest.mark.parametrize("name", ["relu", "add.Tensor", "tanh", "mul.Tensor"])
def test_an_operator_without_a_rule_keeps_the_dtype(musa, name):
    for dtype in (torch.float32, torch.float16, torch.float64):
        operands = [maker(dtype)(3)] * (2 if name.endswith("Tensor") else 1)
        assert run(name, operands, torch.bfloat16)[0] == dtype


def test_cpu_tensors_are_not_cast(musa):
    a = torch.rand(3, 3)
    with torch.autocast("musa"):
        assert (a @ a).dtype == torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (a.to("musa") @ a.to("musa")).dtype == torch.float32


def test_the_witness_records_operands_without_autocast(musa):
    a = maker(torch.float32)(4, 4)
    with Witness() as witness:
        torch.mm(a, a)
    assert witness.computed == {"mm": {torch.float32}}
