# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Linear layers with int8 weights only, and with int8 input, weight and result."""

from __future__ import annotations

import pytest
import torch

pytestmark = pytest.mark.usefixtures("musa")

DEVICES = ("musa", "cpu")
STEPS = {"input_scale": 0.25, "weight_scale": 0.5, "output_scale": 4.0}  # powers of two: products are exact


def integers(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


def linear(x, weight, bias=None, *, input_scale, weight_scale, output_scale):
    """The reference, computed in float64, in which these sums are exact."""
    value = torch.nn.functional.linear(x.double() * input_scale, weight.double() * weight_scale)
    if bias is not None:
        value = value + bias.double()
    return (value / output_scale).round().clamp(-128, 127).to(torch.int8)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("shape", [(16,), (5, 16), (2, 3, 16), (3, 1500), (1, 1)])
def test_quantized_linear(device, biased, shape):
    x, weight = integers(*shape), integers(7, shape[-1])
    bias = torch.randint(-9, 9, (7,)).float() if biased else None
    actual = torch.ops.torch_musa.quantized_linear(
        x.to(device), weight.to(device), None if bias is None else bias.to(device), **STEPS
    )
    assert actual.dtype == torch.int8 and actual.device.type == device
    assert torch.equal(actual.cpu(), linear(x, weight, bias, **STEPS))


@pytest.mark.parametrize("device", DEVICES)
def test_scales_that_are_not_powers_of_two_round_within_one_step(device):
    x, weight, bias = integers(9, 64), integers(33, 64), torch.randn(33)
    scales = {"input_scale": 0.013, "weight_scale": 0.0071, "output_scale": 0.37}
    actual = torch.ops.torch_musa.quantized_linear(x.to(device), weight.to(device), bias.to(device), **scales)
    difference = (actual.cpu().int() - linear(x, weight, bias, **scales).int()).abs()
    assert difference.max() <= 1
    assert (difference != 0).float().mean() < 0.01
    assert actual.cpu().abs().max() > 20, "the scales must use the range of int8"


def test_mudnn_serves_quantized_linear_of_any_strides(served_by_mudnn):
    x, weight = integers(16, 5), integers(16, 7)
    there = x.to("musa").t(), weight.to("musa").t()
    actual, by_mudnn = served_by_mudnn(
        "torch_musa::quantized_linear", lambda: torch.ops.torch_musa.quantized_linear(*there, **STEPS)
    )
    assert by_mudnn
    assert torch.equal(actual.cpu(), linear(x.t(), weight.t(), **STEPS))


@pytest.mark.parametrize("shape", [(0, 16), (2, 0, 16), (3, 0)])
def test_no_elements(musa, shape):
    x, weight = integers(*shape), integers(7, shape[-1])
    actual = torch.ops.torch_musa.quantized_linear(x.to("musa"), weight.to("musa"), **STEPS)
    assert torch.equal(actual.cpu(), linear(x, weight, **STEPS))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("operands", "options", "error", "told"),
    [
        ((torch.randn(3, 4), integers(2, 4)), {}, TypeError, "int8 input and weight, not Float and Char"),
        ((integers(3, 4), integers(2, 5)), {}, RuntimeError, r"input \(..., in\) and a weight \(out, in\)"),
        ((integers(3, 4), integers(2, 4), torch.zeros(3)), {}, RuntimeError, "bias of 2 elements"),
        ((integers(3, 4), integers(2, 4)), {"input_scale": 0.0}, ValueError, "positive and finite, not 0,"),
        ((integers(3, 4), integers(2, 4)), {"output_scale": float("nan")}, ValueError, "and nan"),
    ],
)
def test_wrong_operands_are_refused(device, operands, options, error, told):
    moved = [operand.to(device) for operand in operands]
    with pytest.raises(error, match=told):
        torch.ops.torch_musa.quantized_linear(*moved, **{**STEPS, **options})


def test_quantized_linear_compiles(musa):
    x, weight, bias = (operand.to("musa") for operand in (integers(3, 16), integers(7, 16), torch.randn(7)))
    torch.library.opcheck(torch.ops.torch_musa.quantized_linear, (x, weight, bias), STEPS)


# ---- weights of 8 bits


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 32), (5, 64), (40, 96)])
def test_weight_int8pack_mm(served_by_mudnn, dtype, shape):
    x, weight, scales = torch.randn(shape).to(dtype), integers(48, shape[1]), (torch.rand(48) / 100).to(dtype)
    there = [operand.to("musa") for operand in (x, weight, scales)]
    actual, by_mudnn = served_by_mudnn("aten::_weight_int8pack_mm", lambda: torch._weight_int8pack_mm(*there))
    assert by_mudnn
    expected = (x.double() @ weight.double().t()) * scales.double()
    # The sums are computed in float32 and rounded once.
    torch.testing.assert_close(actual.cpu(), expected.to(dtype))


def test_operands_that_torch_rejects_are_rejected(musa):
    x, weight, scales = torch.randn(5, 32), integers(48, 31), torch.rand(48)
    with pytest.raises(RuntimeError) as there:
        torch._weight_int8pack_mm(x.to("musa"), weight.to("musa"), scales.to("musa"))
    with pytest.raises(RuntimeError) as here:
        torch._weight_int8pack_mm(x, weight, scales)
    assert str(here.value).splitlines()[0] in str(there.value)


# ---- torch's quantized dtypes: as on the CPU, where their weights are packed


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_packed_weights_of_torch_serve_tensors_of_musa(musa):
    x = torch.quantize_per_tensor(torch.randn(4, 16), 0.05, 10, torch.quint8)
    weight = torch.quantize_per_tensor(torch.randn(7, 16), 0.05, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight.to("musa"), torch.zeros(7, device="musa"))
    actual = torch.ops.quantized.linear(x.to("musa"), packed, 0.1, 3)
    assert actual.device.type == "musa" and actual.q_scale() == 0.1 and actual.q_zero_point() == 3
    expected = torch.ops.quantized.linear(
        x, torch.ops.quantized.linear_prepack(weight, torch.zeros(7)), 0.1, 3
    )
    assert torch.equal(actual.cpu().int_repr(), expected.int_repr())
