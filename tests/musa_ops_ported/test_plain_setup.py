# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Elementwise operators whose iterators are set up without torch's general setup if operands are plain."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from musa_ops_ported.codegen.emit import NUMBERS_ALLOWED, PLAIN

pytestmark = pytest.mark.usefixtures("ported")

BINARY = sorted(NUMBERS_ALLOWED)
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# Operands that are plain, and operands that the general setup must take.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda x: x,
    "dimensions of size 1": lambda x: x[:1, :, :, :1].contiguous(),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "transposed": lambda x: x.transpose(0, 1),
    "every second": lambda x: x[..., ::2],
    "expanded": lambda x: x[:, :1].expand(-1, 3, -1, -1),
    "of one number": lambda x: x[0, 0, 0, 0],
    "empty": lambda x: x[:0],
    "negated": lambda x: torch._neg_view(x),
}


def call(name: str) -> Callable[..., torch.Tensor]:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base)
    return getattr(packet, overload or "default")


def operands(name: str, dtype: torch.dtype) -> list[torch.Tensor]:
    """Returns operands for which each of the operators is defined."""
    count = sum(str(one.type) == "Tensor" for one in call(name)._schema.arguments)
    generator = torch.Generator().manual_seed(7)
    return [torch.rand(2, 3, 4, 6, generator=generator).add(0.25).to(dtype) for _ in range(count)]


def weights(name: str) -> list[float]:
    """Returns the numbers that an operator requires."""
    schema = call(name)._schema
    return [0.3] * sum(str(one.type) == "number" and not one.has_default_value() for one in schema.arguments)


def moved(tensors: list[torch.Tensor], layout: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Returns the operands in a layout, on the host and on the device."""
    view = LAYOUTS[layout]
    return [view(one) for one in tensors], [view(one.to("musa")) for one in tensors]


def check(result: torch.Tensor, expected: torch.Tensor) -> None:
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    assert result.stride() == expected.stride()
    # The CPU's kernels of 16-bit numbers round results in between.
    tolerance = {"rtol": 2e-3, "atol": 1e-3} if expected.dtype is torch.float16 else {}
    torch.testing.assert_close(result.cpu(), expected, equal_nan=True, **tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", sorted(PLAIN))
def test_every_operator_in_every_layout(name: str, layout: str) -> None:
    for dtype in DTYPES:
        host, device = moved(operands(name, dtype), layout)
        check(call(name)(*device, *weights(name)), call(name)(*host, *weights(name)))


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_given_outputs(name: str) -> None:
    host, device = moved(operands(name, torch.float32), "plain")
    expected = call(name)(*host, *weights(name))
    outs = {
        "fits": torch.empty_like(device[0]),
        "too small": torch.empty(0, device="musa"),
        "strided": torch.empty(2, 3, 4, 12, device="musa")[..., ::2],
        "an operand": device[0],
    }
    keyword = "grad_input" if "backward" in name else "out"
    packet = call(name).overloadpacket
    for kind, out in outs.items():
        result = packet(*device, *weights(name), **{keyword: out})
        assert result is out and result.shape == expected.shape, kind
        torch.testing.assert_close(out.cpu(), expected, msg=kind)


@pytest.mark.parametrize("name", BINARY)
def test_in_place(name: str) -> None:
    base, _, overload = name.partition(".")
    in_place = getattr(getattr(torch.ops.aten, f"{base}_"), overload)
    host, device = moved(operands(name, torch.float32), "plain")
    version = device[0]._version
    assert in_place(device[0], device[1]) is device[0]
    assert device[0]._version == version + 1
    check(device[0], call(name)(*host))
    check(in_place(device[0], device[0]), in_place(call(name)(*host), call(name)(*host)))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("layout", ["plain", "dimensions of size 1", "of one number", "empty", "transposed"])
def test_numbers_of_the_host(name: str, layout: str) -> None:
    floats = [torch.tensor(1.5, dtype=dtype) for dtype in DTYPES]
    numbers = [2, 2.5, torch.tensor(3), *floats]
    if name != "sub.Tensor":
        numbers.append(True)
    for dtype in (*DTYPES, torch.int64):
        (host, _), (device, _) = moved(operands(name, torch.float32), layout)
        host, device = host.mul(4).to(dtype), device.mul(4).to(dtype)
        operator = getattr(torch, name.partition(".")[0])
        # torch's CPU kernels divide no complex numbers of 16-bit parts.
        whole = [] if dtype is torch.float16 else [torch.tensor(2 + 1j)]
        for number in (*numbers, *whole):
            check(operator(device, number), operator(host, number))
            if isinstance(number, torch.Tensor):
                check(operator(number, device), operator(number, host))


def test_operands_of_several_dtypes_and_shapes() -> None:
    x, y = operands("add.Tensor", torch.float32)
    shapes = (y[:1], y[..., :1], y[0, 0, 0])
    for other in (y.double(), y.half(), y.long(), y.bool(), y.to(torch.complex64), *shapes):
        for operator in (torch.add, torch.mul, torch.div):
            check(operator(x.to("musa"), other.to("musa")), operator(x, other))


def test_mistakes_have_the_messages_of_torch() -> None:
    buffer = torch.rand(100, device="musa")
    x, shifted = buffer[:50], buffer[10:60]
    with pytest.raises(RuntimeError, match=r"single memory location|partially overlap"):
        torch.add(x, x, out=shifted)
    with pytest.raises(RuntimeError, match=r"single memory location|partially overlap"):
        shifted.mul_(x)
    with pytest.raises(RuntimeError, match="Boolean alpha"):
        torch.add(x, x, alpha=True)
    with pytest.raises(RuntimeError, match="complex"):
        torch.add(x, x, alpha=1j)
    with pytest.raises(RuntimeError, match=r"can't be cast|dtype"):
        torch.add(x, x, out=torch.empty(50, dtype=torch.int64, device="musa"))
    with pytest.raises(RuntimeError, match=r"must match|size"):
        x + buffer[:30]
    with pytest.raises(RuntimeError, match=r"same device|on musa"):
        torch.add(x, torch.rand(50))
    with pytest.raises(RuntimeError, match=r"same device|on musa"):
        torch.addcmul(x, x, torch.tensor(2.0, device="cpu").expand(50))


def test_a_lazy_copy_is_made_for_outputs_alone() -> None:
    x = torch.rand(50, device="musa")
    lazy = torch._lazy_clone(x)
    assert torch.equal((lazy + lazy).cpu(), (x + x).cpu())
    assert torch._C._is_cow_tensor(lazy)
    before = x.cpu()
    lazy.add_(x)
    assert not torch._C._is_cow_tensor(lazy)
    assert torch.equal(x.cpu(), before) and torch.equal(lazy.cpu(), before + before)


@pytest.mark.full
def test_more_elements_than_an_index_of_32_bits_holds() -> None:
    elements = (1 << 31) + 5
    x = torch.ones(elements, dtype=torch.float16, device="musa")
    x.add_(x)
    assert x[-3:].tolist() == [2.0] * 3 and x[:3].tolist() == [2.0] * 3
