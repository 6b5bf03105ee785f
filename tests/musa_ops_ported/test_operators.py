# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The provider of each operator, and cases that the operator databases do not have."""

from __future__ import annotations

import itertools

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


@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz], ids=str
)
def test_numbers_of_8_bits_are_filled(musa, ported, dtype):
    def calls() -> int:
        rows = torch.musa.ops.explain("aten::fill_.Scalar")["candidates"]
        return next(row["calls"] for row in rows if row["provider"] == "ported")

    before = calls()
    x = torch.empty(3, 9, dtype=dtype, device="musa")
    x[:, ::2].fill_(1.3)
    x[:, 1::2].fill_(-200.0)
    expected = torch.empty(3, 9, dtype=dtype)
    expected[:, ::2].fill_(1.3)
    expected[:, 1::2].fill_(-200.0)
    assert torch.equal(x.cpu().view(torch.uint8), expected.view(torch.uint8))
    assert calls() == before + 2
    assert torch.equal(x.zero_().cpu().view(torch.uint8), expected.zero_().view(torch.uint8))


@pytest.mark.once
@pytest.mark.parametrize(("memory", "first"), [("shared", "host"), ("strict", "ported")])
def test_torchs_cpu_kernels_come_first_on_addressable_memory(memory, first):
    program = "import torch; print(torch.musa.ops.explain('aten::tril')['provider'])"
    printed = run_code(program, TORCH_MUSA_OPS=None, MUSA_EMULATOR_MEMORY=memory)
    assert printed.strip() == first


@pytest.mark.parametrize("dim", [None, 0, 1, (0, 2)])
@pytest.mark.parametrize("shape", [(3, 5, 7), (1, 4096, 3), (70_000, 1, 2), (2, 3, 100_001)])
def test_sums_over_all_shapes_of_reduction(musa, ported, shape, dim):
    x = torch.randint(-50, 50, shape, dtype=torch.int32)
    assert torch.equal(x.musa().sum(dim).cpu(), x.sum(dim))
    torch.testing.assert_close(x.double().musa().mean(dim).cpu(), x.double().mean(dim))


def test_reductions_are_bitwise_reproducible(musa, ported):
    x = torch.randn(1_000_003).musa()
    assert len({x.sum().item() for _ in range(5)}) == 1


def test_a_cpu_scalar_can_be_an_operand(musa, ported):
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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cpu_scalar_is_not_rounded_to_a_half_type(musa, ported, dtype):
    # As on CUDA, the result is rounded once, after the operation in float32.
    x = torch.linspace(-3, 3, 4098).to(dtype)
    for number in (0.000618372812985365, 3.14159, 1e-7):
        for f in (torch.add, torch.sub, torch.mul, torch.div):
            for operand in (x, x.view(2049, 2).t()):
                exact = f(operand.float(), number).to(dtype)
                assert torch.equal(f(operand.musa(), number).cpu(), exact), (f.__name__, number)


def test_indices_from_the_last_offset_on_are_in_no_bag(musa, ported):
    weight = torch.randn(5, 3)
    indices, offsets = torch.tensor([0, 4, 1, 2, 3]), torch.tensor([0, 2, 4])

    def bags(device):
        rows = weight.to(device).requires_grad_()
        factors = torch.ones(5, device=device).requires_grad_()
        arguments = {"per_sample_weights": factors, "mode": "sum", "include_last_offset": True}
        result = torch.nn.functional.embedding_bag(indices.to(device), rows, offsets.to(device), **arguments)
        result.square().sum().backward()
        return result.detach().cpu(), rows.grad.cpu(), factors.grad.cpu()

    result, rows, factors = bags("musa")
    torch.testing.assert_close(result, torch.stack([weight[[0, 4]].sum(0), weight[[1, 2]].sum(0)]))
    assert rows[3].eq(0).all() and factors[4] == 0
    torch.testing.assert_close(factors[1], 2 * (result[0] * weight[4]).sum())


def test_a_maximum_beyond_the_last_offset_has_a_gradient(musa, ported):
    weight = torch.tensor([[1.0], [2.0], [9.0]])
    indices, offsets = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2])

    def bags(device):
        rows = weight.to(device).requires_grad_()
        arguments = {"mode": "max", "include_last_offset": True}
        result = torch.nn.functional.embedding_bag(indices.to(device), rows, offsets.to(device), **arguments)
        result.sum().backward()
        return result.detach().cpu(), rows.grad.cpu()

    result, gradient = bags("musa")
    assert result.tolist() == [[1], [9]] and gradient.tolist() == [[1], [0], [1]]
    assert torch.equal(result, bags("cpu")[0])


# Name -> indices and the first position of each bag. A gradient is computed from the sorted positions of each
# row, so the first positions and the first of a bag differ from the others.
BAGS = {
    "repeats of the first index": ([0, 0, 1, 0], [0]),
    "repeats of a later index": ([1, 2, 2, 0, 2], [0]),
    "one index": ([3, 3, 3, 3, 3], [0, 2]),
    "the same indices in several bags": ([0, 2, 0, 0, 1, 2, 2, 0, 0], [0, 3, 7]),
    "empty bags": ([4, 4, 0, 0, 4], [0, 0, 2, 2, 5, 5]),
    "bags of one index": ([0, 0, 1, 1], [0, 1, 2, 3]),
    "rows of a matrix": ([[0, 0, 5], [5, 0, 5], [2, 2, 2]], None),
    "many": (torch.arange(600).mul(7).remainder(11).remainder(6).tolist(), [0, 0, 7, 7, 20, 333]),
}


def bags_and_gradients(device, weight, indices, offsets, factors, **arguments):
    """The result of embedding_bag and the gradients of its weight and factors, on the CPU."""
    leaves = [x.clone().to(device).requires_grad_() for x in (weight, factors) if x is not None]
    places = [None if x is None else x.to(device) for x in (indices, offsets)]
    arguments["per_sample_weights"] = leaves[1] if len(leaves) > 1 else None
    result = torch.nn.functional.embedding_bag(places[0], leaves[0], places[1], **arguments)
    result.backward(torch.arange(1.0, 1 + result.numel()).double().view(result.shape).to(device))
    return [result.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("bags", BAGS)
def test_gradients_of_bags_with_repeated_indices_equal_the_cpus(musa, ported, bags, mode):
    indices, offsets = (None if numbers is None else torch.tensor(numbers) for numbers in BAGS[bags])
    lasts = (False,) if offsets is None else (False, True)
    # Frequencies are not supported for maxima, nor factors except for sums.
    frequencies = (False,) if mode == "max" else (False, True)
    for padding, last, by_frequency, width in itertools.product(
        (None, 0, 2), lasts, frequencies, (1, 3, 200)
    ):
        weight = torch.randn(6, width, dtype=torch.float64)
        factors = torch.randn(indices.shape, dtype=torch.float64) if mode == "sum" else None
        starts = torch.cat([offsets, offsets.new_tensor([len(indices)])]) if last else offsets

        operands = (weight, indices, starts, factors)
        options = {"mode": mode, "include_last_offset": last, "padding_idx": padding}
        expected = bags_and_gradients("cpu", *operands, **options)
        if by_frequency:  # for which torch's CPU kernel divides by the frequencies of other rows
            expected[1] /= indices.flatten().bincount(minlength=6).clamp(min=1)[:, None]
        note = f"padding {padding}, last offset {last}, by frequency {by_frequency}, width {width}"
        there = bags_and_gradients("musa", *operands, **options, scale_grad_by_freq=by_frequency)
        torch.testing.assert_close(there, expected, msg=lambda text, note=note: f"{note}: {text}")


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("start", "end", "steps"), [(-3, 7.5, 50), (0, 49, 50), (1, 4.3, 33), (-2, 2, 1)])
def test_linspace_equals_the_cpus(musa, ported, dtype, start, end, steps):
    if dtype == torch.uint8:
        start, end = abs(start), abs(end)
    expected = torch.linspace(start, end, steps, dtype=dtype)
    torch.testing.assert_close(torch.linspace(start, end, steps, dtype=dtype, device="musa").cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64, torch.int32])
def test_numbers_are_scattered_to_all_dtypes(musa, ported, dtype):
    x, index = torch.zeros(4, dtype=dtype), torch.tensor([0, 2, 2])
    there = x.musa().scatter(0, index.musa(), 2.5, reduce="add")
    assert torch.equal(there.cpu(), x.scatter(0, index, 2.5, reduce="add"))
