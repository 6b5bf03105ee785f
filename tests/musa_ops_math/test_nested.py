# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Nested tensors: operators and attention equal those of their components on the CPU, and no operand is
copied to the host."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
LENGTHS = (3, 5, 1, 7)


def components(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn((length, *shape), generator=generator).to(dtype) for length in LENGTHS]


def nested(tensors: list[torch.Tensor], layout: torch.layout, grad: bool = False) -> torch.Tensor:
    return torch.nested.nested_tensor(tensors, layout=layout, device="musa", requires_grad=grad)


def close(found: torch.Tensor, expected: list[torch.Tensor], bound: float = 1e-5) -> None:
    for one, other in zip(found.unbind(), expected, strict=True):
        torch.testing.assert_close(one.cpu().to(other.dtype), other, rtol=bound, atol=bound)


OPERATORS = {
    "relu": lambda x: x.relu(),
    "gelu": lambda x: F.gelu(x),
    "silu": lambda x: F.silu(x),
    "sum with a number": lambda x: x * 2.0,
    "sum of two": lambda x: x + x,
    "product of two": lambda x: x * x,
    "softmax": lambda x: x.softmax(-1),
    "linear": lambda x: F.linear(x, torch.linspace(-1, 1, 48).view(6, 8).to(x.device)),
    "layer_norm": lambda x: F.layer_norm(x, (8,), torch.ones(8).to(x.device), torch.zeros(8).to(x.device)),
    "clone": lambda x: x.clone(),
    "cos": lambda x: x.cos(),
}


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_equal_those_of_the_components(served, name, layout):
    tensors = components(8)
    close(OPERATORS[name](nested(tensors, layout)), [OPERATORS[name](x) for x in tensors])


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_padding(served, layout):
    tensors = components(8)
    padded = torch.nested.to_padded_tensor(nested(tensors, layout), -1.0)
    for row, component in zip(padded.cpu(), tensors, strict=True):
        assert torch.equal(row[: len(component)], component) and (row[len(component) :] == -1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_attention_of_jagged_tensors(served, dtype):
    heads = [components(2, 16, dtype=dtype, seed=seed) for seed in range(3)]
    q, k, v = (nested(tensors, torch.jagged).transpose(1, 2) for tensors in heads)
    found = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
    expected = [
        F.scaled_dot_product_attention(*(x.float().transpose(0, 1)[None] for x in rows))[0].transpose(0, 1)
        for rows in zip(*heads, strict=True)
    ]
    close(found, expected, 5e-3 if dtype == torch.float16 else 1e-5)


def test_a_padded_tensor_and_back(served):
    tensors = components(8)
    jagged = nested(tensors, torch.jagged)
    dense = torch.nested.to_padded_tensor(jagged, 0.0)
    back = torch.ops.aten._padded_dense_to_jagged_forward(dense, [jagged.offsets()], sum(LENGTHS))
    assert torch.equal(back.cpu(), torch.cat(tensors))
    cut = torch.ops.aten._jagged_to_padded_dense_forward(jagged.values(), [jagged.offsets()], [4], 0.0)
    assert torch.equal(cut, dense[:, :4])
    short = torch.ops.aten._padded_dense_to_jagged_forward(dense[:, :4], [jagged.offsets()], sum(LENGTHS))
    assert torch.equal(
        short.cpu(), torch.cat([F.pad(x[:4], (0, 0, 0, len(x) - len(x[:4]))) for x in tensors])
    )


def test_rows_of_no_component_are_left_out(served):
    values = torch.randn(10, 2)
    for offsets in ([0, 3, 7], [2, 3, 7]):
        arguments = values, [torch.tensor(offsets)], [4], -1.0
        expected = torch.ops.aten._jagged_to_padded_dense_forward(*arguments)
        found = torch.ops.aten._jagged_to_padded_dense_forward(
            values.to("musa"), [torch.tensor(offsets).to("musa")], [4], -1.0
        )
        assert torch.equal(found.cpu(), expected)


def test_shapes_that_layer_norm_refuses(musa):
    wide = [torch.randn(2, 8), torch.randn(3, 8)]
    for tensors, shape in ((wide, (4,)), (wide, (2, 4)), ([torch.randn(2, 8), torch.randn(2, 4)], (4,))):
        for device in ("cpu", "musa"):
            one, zero = torch.ones(shape).to(device), torch.zeros(shape).to(device)
            x = torch.nested.nested_tensor(tensors, device=device)
            with pytest.raises(RuntimeError):
                F.layer_norm(x, (shape[-1],) if len(shape) == 1 else (8,), one, zero)


def test_the_gradient_of_a_linear_layer(served):
    tensors, weight = components(8), torch.linspace(-1, 1, 48).view(6, 8)
    x, on_device = nested(tensors, torch.strided), weight.to("musa").requires_grad_()
    torch.nested.to_padded_tensor(F.linear(x, on_device), 0.0).sum().backward()
    expected = weight.clone().requires_grad_()
    sum(F.linear(tensor, expected).sum() for tensor in tensors).backward()
    torch.testing.assert_close(on_device.grad.cpu(), expected.grad)
