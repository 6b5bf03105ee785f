# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls that the hardware's muDNN refuses or computes wrongly go to another provider or are reformulated.

The quirks were measured by others on an S5000; the emulator's muDNN has the same quirks. Each test compares
the results with the CPU's, checks the provider of the call, and has a similar call that muDNN does handle.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from tests.harness.naming import expression
from tests.harness.subprocesses import run_code


def on_both(f, *operands):
    """Calls f on the CPU and on musa, compares the results, and returns the one on musa."""
    expected = f(*operands)
    actual = f(*(operand.to("musa") for operand in operands))
    torch.testing.assert_close(_to_cpu(actual), expected)
    return actual


def name(value):
    """Returns the id of a parameter: the source text of a lambda."""
    return expression(value) if callable(value) else None


def _to_cpu(value):
    return value.cpu() if isinstance(value, torch.Tensor) else type(value)(map(_to_cpu, value))


# ---- operands of no elements: NOT_SUPPORTED


@pytest.mark.parametrize(
    ("op", "f", "shape"),
    [
        ("aten::cos", lambda x: torch.cos(x), (0, 3)),
        ("aten::add.Tensor", lambda x: x + x, (3, 0)),
        ("aten::add.Tensor", lambda x: x + x[:, :1], (0, 3)),
        ("aten::sum.dim_IntList", lambda x: x.sum(0), (0, 3)),
        ("aten::mean.dim", lambda x: x.mean(1), (0, 3)),
        ("aten::mm", lambda x: x @ x.t(), (0, 3)),
        ("aten::mm", lambda x: x @ x.t(), (3, 0)),
        ("aten::bmm", lambda x: torch.bmm(x, x), (0, 3, 3)),
        ("aten::addmm", lambda x: torch.addmm(torch.ones(3, 3).to(x), x, x.t()), (3, 0)),
        ("aten::_softmax", lambda x: x.softmax(1), (0, 3)),
        ("aten::native_layer_norm", lambda x: functional.layer_norm(x, (3,)), (0, 3)),
        ("aten::cat", lambda x: torch.cat([x, x]), (0, 3)),
        ("aten::cumsum", lambda x: x.cumsum(1), (0, 3)),
        ("aten::sort.stable", lambda x: x.sort(1).values, (0, 3)),
        ("aten::nonzero", lambda x: x.nonzero(), (0, 3)),
        ("aten::fill_.Scalar", lambda x: x.clone().fill_(2), (0, 3)),
        ("aten::gelu", lambda x: functional.gelu(x), (0,)),
        ("aten::where.self", lambda x: torch.where(x > 0, x, x), (0, 3)),
    ],
    ids=name,
)
def test_operands_of_no_elements_go_to_the_next_provider(served_by_mudnn, op, f, shape):
    _, served = served_by_mudnn(op, lambda: on_both(f, torch.empty(shape)))
    assert not served


def test_an_empty_tensor_in_a_list_does_not_affect_the_others(device):
    x = torch.randn(4, 3)
    on_both(lambda x: torch.cat([x, x[:0], x]), x)
    on_both(lambda x: torch.cat([torch.empty(0).to(x), x]), x)


# ---- products of float64 matrices: NOT_SUPPORTED


@pytest.mark.parametrize(
    ("op", "f"),
    [
        ("aten::mm", lambda x: x @ x),
        ("aten::mv", lambda x: torch.mv(x, x[0])),
        ("aten::dot", lambda x: torch.dot(x[0], x[1])),
        ("aten::bmm", lambda x: torch.bmm(x.view(1, 4, 4), x.view(1, 4, 4))),
        ("aten::addmm", lambda x: torch.addmm(x, x, x)),
        ("aten::baddbmm", lambda x: torch.baddbmm(x.view(1, 4, 4), x.view(1, 4, 4), x.view(1, 4, 4))),
    ],
    ids=name,
)
def test_products_of_float64_go_to_the_next_provider(served_by_mudnn, op, f):
    x = torch.randn(4, 4)
    assert served_by_mudnn(op, lambda: on_both(f, x))[1]
    result, served = served_by_mudnn(op, lambda: on_both(f, x.double()))
    assert not served and result.dtype == torch.float64


def test_convolutions_of_float64_go_to_the_next_provider(served_by_mudnn):
    op = "aten::convolution_overrideable"

    def f(x):
        return functional.conv2d(x, x)

    x = torch.randn(1, 1, 4, 4)
    assert served_by_mudnn(op, lambda: on_both(f, x))[1]
    assert not served_by_mudnn(op, lambda: on_both(f, x.double()))[1]


# ---- CLIP takes alpha as the minimum and beta as the maximum, and beta is 0 where it is not set


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize(
    ("op", "f"),
    [
        ("aten::clamp", lambda x: x.clamp(min=-1)),
        ("aten::clamp", lambda x: x.clamp(max=3)),
        ("aten::clamp", lambda x: x.clamp(-3, 3)),
        ("aten::clamp", lambda x: x.clamp(3, -3)),
        ("aten::clamp_min", lambda x: torch.clamp_min(x, 2)),
        ("aten::clamp_max", lambda x: torch.clamp_max(x, 2)),
    ],
    ids=name,
)
def test_a_bound_that_is_not_given_has_no_effect(calls_of, op, f, dtype):
    on_both(f, torch.arange(-9, 10).to(dtype))


@pytest.mark.parametrize("f", [functional.relu6, functional.hardtanh], ids=["relu6", "hardtanh"])
def test_activations_with_two_bounds_keep_both(device, f):
    on_both(f, torch.linspace(-9, 9, 50))


def test_clamp_is_served(served_by_mudnn):
    for f in (lambda x: x.clamp(-1, 3), lambda x: x.clamp(min=-1)):
        assert served_by_mudnn("aten::clamp", lambda f=f: on_both(f, torch.linspace(-9, 9, 50)))[1]


# ---- Reduce writes one element only, or crashes, for several dimensions of a broadcast operand


@pytest.mark.parametrize(
    "reduce",
    [
        lambda x, dim: x.sum(dim),
        lambda x, dim: x.mean(dim),
        lambda x, dim: x.amax(dim),
        lambda x, dim: x.amin(dim, keepdim=True),
        lambda x, dim: x.std(dim),
        lambda x, dim: torch.linalg.vector_norm(x, dim=dim),
        lambda x, dim: torch.all(x > 0, dim),
        lambda x, dim: torch.any(x > 0, dim),
        lambda x, dim: x.logsumexp(dim),
    ],
    ids=name,
)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[:1].expand(5, 3, 4),
        lambda x: x[:, :1].expand(2, 5, 4),
        lambda x: x[:1, :1, :1].expand(4, 3, 2),
        lambda x: x.transpose(0, 2),
        lambda x: x[:, ::2, 1:],
    ],
    ids=name,
)
def test_reductions_over_several_dimensions_of_any_view(device, reduce, view):
    x = torch.randn(2, 3, 4)
    for dim in ((0, 1), (0, 2), (1, 2), (0, 1, 2), (1,)):
        on_both(lambda x, dim=dim: reduce(view(x), dim), x)


def test_sums_are_served(served_by_mudnn):
    x = torch.randn(2, 3, 4)
    assert served_by_mudnn("aten::sum.dim_IntList", lambda: on_both(lambda x: x.sum(1), x))[1]


# ---- Softmax refuses operands that are not contiguous


@pytest.mark.parametrize("f", [torch.softmax, torch.log_softmax], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(0, 2),
        lambda x: x[:, ::2],
        lambda x: x[:, :1].expand(4, 3, 5),
        lambda x: x.unsqueeze(0).to(memory_format=torch.channels_last),
    ],
    ids=name,
)
def test_softmax_of_any_view_and_its_gradient(device, f, view):
    x = torch.randn(4, 6, 5)
    for dim in (0, -1):

        def both_ways(x, dim=dim):
            x = x.detach().requires_grad_()
            out = f(view(x), dim)
            (gradient,) = torch.autograd.grad(out, x, view(torch.linspace(0, 1, 120).view(4, 6, 5).to(x)))
            return out.detach(), gradient

        on_both(both_ways, x)


def test_softmax_is_served_for_all_strides(served_by_mudnn):
    x = torch.randn(4, 6)
    assert served_by_mudnn("aten::_softmax", lambda: on_both(lambda x: x.softmax(1), x))[1]
    assert served_by_mudnn("aten::_softmax", lambda: on_both(lambda x: x.t().softmax(0), x))[1]


# ---- products fail for dimensions of size 1 with arbitrary strides

STRIDES = [(1, 0), (0, 1), (0, 0), (1, 1), (7, 3), (1, 9)]


@pytest.mark.parametrize("strides", STRIDES)
@pytest.mark.parametrize("sizes", [(1, 4), (4, 1), (1, 1)])
def test_products_of_matrices_with_a_dimension_of_size_one(device, sizes, strides):
    x, y = torch.randn(64), torch.randn(4, 4)
    # In a dimension whose size is not 1, the stride matters and must not be 0 for distinct elements.
    strides = tuple(stride or int(size != 1) for size, stride in zip(sizes, strides))

    def product(x, y):
        a = x.as_strided(sizes, strides)
        square = y[: sizes[1], : sizes[1]]
        return a @ square, square.t() @ a.t(), torch.addmm(a, a, square), a[None] @ square[None]

    on_both(product, x, y)


def test_outer_products_and_rows_are_served(served_by_mudnn):
    row, column = torch.randn(1, 4), torch.randn(4, 1)
    assert served_by_mudnn("aten::mm", lambda: on_both(lambda a, b: a @ b, row, column))[1]
    assert served_by_mudnn("aten::mm", lambda: on_both(lambda a, b: b @ a, row, column))[1]


@pytest.mark.parametrize("sizes", [(3, 1, 4), (3, 4, 1), (1, 1, 4), (1, 4, 4)])
def test_batches_of_matrices_with_a_dimension_of_size_one(device, sizes):
    x = torch.randn(*sizes)

    def product(x):
        degenerate = x.transpose(1, 2).contiguous().transpose(1, 2)
        return torch.bmm(degenerate, degenerate.transpose(1, 2)), torch.bmm(
            x[:1].expand(2, -1, -1), x[:1].expand(2, -1, -1).mT
        )

    on_both(product, x)


# ---- an operand of another device loses the device: muDNN works on the current one


@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.add_(b),
        lambda a, b: torch.add(a, a, out=b),
        lambda a, b: torch.addmm(a, a, b),
        lambda a, b: functional.layer_norm(a, (4,), b[0]),
        lambda a, b: functional.linear(a, a, b[0]),
        lambda a, b: functional.embedding(b.long(), a),
    ],
    ids=name,
)
def test_operands_of_two_devices_are_refused_and_both_survive(two_devices, f):
    a, b = torch.ones(4, 4, device="musa:0"), torch.ones(4, 4, device="musa:1")
    with pytest.raises(RuntimeError, match="device"):
        f(a, b)
    two_devices.synchronize(0)
    two_devices.synchronize(1)
    assert a.add(1).cpu().eq(2).all() and b.add(1).cpu().eq(2).all()


@pytest.mark.parametrize(
    ("op", "f"),
    [
        ("aten::add.Tensor", lambda x: x + x),
        ("aten::mm", lambda x: x @ x),
        ("aten::_softmax", lambda x: x.softmax(1)),
        ("aten::sum.dim_IntList", lambda x: x.sum(1)),
        ("aten::cat", lambda x: torch.cat([x, x])),
    ],
    ids=name,
)
def test_the_current_device_may_differ_from_the_operands(two_devices, served_by_mudnn, op, f):
    x = torch.randn(4, 4)
    with two_devices.device(0):
        result, served = served_by_mudnn(op, lambda: f(x.to("musa:1")))
        assert two_devices.current_device() == 0
    assert served and result.device == torch.device("musa:1")
    torch.testing.assert_close(result.cpu(), f(x))


# ---- more than eight dimensions


@pytest.mark.parametrize(
    ("op", "f"),
    [
        ("aten::cos", lambda x: torch.cos(x)),
        ("aten::add.Tensor", lambda x: x + x),
        ("aten::mul.Tensor", lambda x: x * x.transpose(0, -1)),
        ("aten::sum.dim_IntList", lambda x: x.sum(0)),
        ("aten::_softmax", lambda x: x.softmax(0)),
        ("aten::cat", lambda x: torch.cat([x, x], -1)),
        ("aten::gelu", lambda x: functional.gelu(x)),
        ("aten::where.self", lambda x: torch.where(x > 0, x, -x)),
    ],
    ids=name,
)
def test_more_than_eight_dimensions_go_to_the_next_provider(served_by_mudnn, op, f):
    assert served_by_mudnn(op, lambda: on_both(f, torch.randn(*[2] * 8)))[1]
    assert not served_by_mudnn(op, lambda: on_both(f, torch.randn(*[2] * 9)))[1]


def test_operands_that_broadcast_to_more_than_eight_dimensions(device):
    on_both(lambda a, b: a + b, torch.randn(*[2] * 5, *[1] * 5), torch.randn(*[2] * 5))


# ---- rounding


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("dim", [(0, 2), (0, 1), (1, 2), 1])
def test_sums_of_half_types_are_rounded_once(device, dtype, dim):
    # In these dtypes 1024 + 0.25 is 1024, so partial sums stored in them would lose every 0.25.
    x = torch.full((4, 3, 5), 0.25, dtype=dtype)
    x[0, :, 0] = 1024
    expected = x.double().sum(dim).to(dtype)
    assert x.to(device).sum(dim).tolist() == expected.tolist()


# ---- numbers that have no result


@pytest.mark.parametrize("rounding", ["floor", "trunc"])
def test_integers_divided_by_zero_leave_the_device_usable(device, rounding):
    """A kernel cannot raise, so, as on any GPU, the quotient is arbitrary; the other elements are correct."""
    divisor = torch.tensor([0, 3, -2], device=device)
    expected = [1, -3 if rounding == "floor" else -2]
    assert torch.div(5, divisor, rounding_mode=rounding).tolist()[1:] == expected
    assert torch.div(divisor, divisor, rounding_mode=rounding).tolist()[1:] == [1, 1]


def test_an_infinite_gradient_is_zero_where_relu6_is_flat(device):
    x = torch.tensor([7.0, 3.0, -1.0], device=device, requires_grad=True)
    torch.nn.functional.relu6(x).backward(torch.full((3,), torch.inf, device=device))
    assert x.grad.tolist() == [0.0, torch.inf, 0.0]


# ---- indices out of range: a kernel cannot raise


@pytest.mark.once
@pytest.mark.parametrize(
    ("memory", "checks", "told"),
    [
        ("shared", None, "IndexError"),
        ("shared", "0", "AcceleratorError"),
        ("strict", None, "AcceleratorError"),
        ("strict", "1", "IndexError"),
    ],
)
def test_indices_are_checked_where_that_is_cheap_or_requested(memory, checks, told):
    code = """
    import torch
    x = torch.arange(4.0, device="musa")
    try:
        x[torch.tensor([7], device="musa")].cpu()
    except (IndexError, RuntimeError) as error:
        print(type(error).__name__)
    """
    environment = {"MUSA_EMULATOR_MEMORY": memory, "TORCH_MUSA_CHECK_INDICES": checks}
    assert run_code(code, **environment).split() == [told]


# ---- labels outside the classes: a kernel cannot raise


@pytest.mark.host_addressable("a kernel on a device cannot raise an error for one label")
@pytest.mark.parametrize("label", [4, -5])
@pytest.mark.parametrize(
    "loss",
    [
        functional.cross_entropy,
        lambda scores, labels: functional.nll_loss(scores.log_softmax(1), labels),
        lambda scores, labels: functional.cross_entropy(scores.view(3, 4, 1, 1), labels.view(3, 1, 1)),
        lambda scores, labels: torch.ops.torch_musa.cross_entropy(scores, labels),
    ],
    ids=["cross_entropy", "nll_loss", "cross_entropy of images", "torch_musa.cross_entropy"],
)
def test_a_wrong_label_is_an_error_and_the_device_stays_usable(musa, loss, label):
    scores = torch.randn(3, 4, device="musa")
    with pytest.raises(IndexError, match=f"Target {label} is out of bounds"):
        loss(scores, torch.tensor([0, label, 1], device="musa"))
    good = torch.tensor([0, -100, 1])
    expected = functional.cross_entropy(scores.cpu(), good)
    torch.testing.assert_close(loss(scores, good.to("musa")).cpu(), expected)
