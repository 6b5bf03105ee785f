# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Who serves, and what the operator databases do not ask."""

from __future__ import annotations

import pytest
import torch

from tests.harness.subprocesses import run_code

OPERATORS = [
    "aten::abs.out",
    "aten::add.Tensor",
    "aten::tril",
    "aten::sum.dim_IntList",
    "aten::_softmax",
    "aten::uniform_",
    "aten::_foreach_add.List",
    "aten::_fused_adamw_",
]


@pytest.mark.parametrize("op", OPERATORS)
def test_served_by_the_pack(musa, ported, op):
    assert torch.musa.ops.explain(op)["provider"] == "ported"


@pytest.mark.once
@pytest.mark.parametrize(("memory", "first"), [("shared", "native"), ("strict", "ported")])
def test_torchs_cpu_kernels_come_first_where_they_can(memory, first):
    program = "import torch; print(torch.musa.ops.explain('aten::tril')['provider'])"
    printed = run_code(program, TORCH_MUSA_OPS=None, MUSA_EMULATOR_MEMORY=memory)
    assert printed.strip() == first


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 4096, 3), (70_000, 1, 2), (2, 3, 100_001)])
def test_sums_of_all_shapes_of_reduction(musa, ported, shape, dim):
    x = torch.randint(-50, 50, shape, dtype=torch.int32)
    assert torch.equal(x.musa().sum(dim).cpu(), x.sum(dim))
    torch.testing.assert_close(x.double().musa().mean(dim).cpu(), x.double().mean(dim))


def test_reductions_repeat_to_the_bit(musa, ported):
    x = torch.randn(1_000_003).musa()
    assert len({x.sum().item() for _ in range(5)}) == 1


def test_numbers_of_the_host_take_an_operands_place(musa, ported):
    x = torch.arange(1000).float()
    number = torch.tensor(2, dtype=torch.float64)
    for f in (lambda a, b: a + b, lambda a, b: b / (a + 1), torch.maximum, lambda a, b: a < b):
        assert torch.equal(f(x.musa(), number).cpu(), f(x, number))
        assert torch.equal(f(x.musa().view(10, 100).t(), number).cpu(), f(x.view(10, 100).t(), number))


def test_mixed_dtypes_and_unaligned_storage(musa, ported):
    x = torch.arange(4097, dtype=torch.int16)
    y = torch.randn(4097, dtype=torch.float64)
    out = torch.empty(4096, dtype=torch.float32)
    torch.add(x[1:].musa(), y[1:].musa(), out=(got := out.musa()))
    assert torch.equal(got.cpu(), torch.add(x[1:], y[1:], out=out))


def test_integers_divided_by_zero_do_not_trap(musa, ported):
    x = torch.tensor([7, -7, 0], dtype=torch.int32, device="musa")
    zero = torch.zeros(3, dtype=torch.int32, device="musa")
    for f in (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        lambda a, b: a // b,
        torch.remainder,
        torch.fmod,
    ):
        f(x, zero).cpu()
    lowest = torch.tensor([-(2**31)], dtype=torch.int32, device="musa")
    assert torch.fmod(lowest, -1).item() == 0


@pytest.mark.parametrize(
    ("fused", "settings"),
    [
        ("Adam", {}),
        ("Adam", {"amsgrad": True, "maximize": True}),
        ("AdamW", {}),
        ("AdamW", {"amsgrad": True}),
        ("SGD", {}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"momentum": 0.9, "dampening": 0.5}),
    ],
)
def test_fused_optimizers_equal_their_plain_form(musa, ported, fused, settings):
    torch.manual_seed(0)
    start = [torch.randn(n) for n in (1, 100, 50_000)]
    grads = [torch.randn_like(p) for p in start]

    def steps(device, **options):
        params = [p.to(device).requires_grad_() for p in start]
        optimizer = getattr(torch.optim, fused)(params, lr=0.1, weight_decay=0.01, **settings, **options)
        for _ in range(3):
            for param, grad in zip(params, grads):
                param.grad = grad.to(device)
            optimizer.step()
        return [p.detach().cpu() for p in params]

    torch.testing.assert_close(steps("musa", fused=True), steps("cpu", foreach=False))
