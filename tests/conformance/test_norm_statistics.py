# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Layer and batch norm of 16-bit inputs save mean and rstd in float32, whichever provider serves them.

torch.cuda and torch's fake kernels for musa tensors do so; torch's CPU kernels save them in the dtype of the
parameters. Rounded to 16 bits, the statistics make the input gradient of short rows wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

from tests.harness.device import host_can_address_device_memory

aten = torch.ops.aten

pytestmark = pytest.mark.once  # the tests set the order of providers themselves

HALVES = (torch.float16, torch.bfloat16)
ORDERS = (("mudnn",), ("ported", "host-copy"), ("host",), ("host-copy",))
ROWS, COLUMNS = 4, 6  # rows of layer norm; the columns are the channels of batch norm
SHAPES = ((100_000, 3), (4, 4096))

# Operator -> call with input, weight, bias, running mean and running variance.
FORWARD: dict[str, Callable] = {
    "native_layer_norm": lambda x, w, b, m, v: aten.native_layer_norm(x, [COLUMNS], w, b, 1e-5),
    "native_batch_norm": lambda x, w, b, m, v: aten.native_batch_norm(x, w, b, m, v, True, 0.1, 1e-5),
    "native_batch_norm without statistics": lambda x, w, b, m, v: aten.native_batch_norm(
        x, w, b, None, None, True, 0.1, 1e-5
    ),
    "_native_batch_norm_legit": lambda x, w, b, m, v: aten._native_batch_norm_legit(
        x, w, b, m, v, True, 0.1, 1e-5
    ),
    "_native_batch_norm_legit.no_stats": lambda x, w, b, m, v: aten._native_batch_norm_legit.no_stats(
        x, w, b, True, 0.1, 1e-5
    ),
    "_batch_norm_with_update": lambda x, w, b, m, v: aten._batch_norm_with_update(x, w, b, m, v, 0.1, 1e-5),
    # In evaluation mode the saved statistics are empty; the fake kernel gives them the shape of the channels.
    "native_batch_norm in evaluation": lambda x, w, b, m, v: aten.native_batch_norm(
        x, w, b, m, v, False, 0.1, 1e-5
    ),
    "_native_batch_norm_legit_no_training": lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training(
        x, w, b, m, v, 0.1, 1e-5
    ),
    # torch.cuda, like its fake kernel, saves the statistics of group norm in the dtype of the input.
    "native_group_norm": lambda x, w, b, m, v: aten.native_group_norm(x, w, b, ROWS, COLUMNS, 1, 2, 1e-5),
}
# The forms of FORWARD with out=, in the order of the results.
OUT: dict[str, Callable] = {
    "native_layer_norm": lambda x, w, b, m, v, o: aten.native_layer_norm.out(
        x, [COLUMNS], w, b, 1e-5, out0=o[0], out1=o[1], out2=o[2]
    ),
    "native_batch_norm": lambda x, w, b, m, v, o: aten.native_batch_norm.out(
        x, w, b, m, v, True, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2]
    ),
    "_native_batch_norm_legit": lambda x, w, b, m, v, o: aten._native_batch_norm_legit.out(
        x, w, b, m, v, True, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2]
    ),
    "_native_batch_norm_legit.no_stats": lambda x, w, b, m, v, o: aten._native_batch_norm_legit.no_stats_out(
        x, w, b, True, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2]
    ),
    "_batch_norm_with_update": lambda x, w, b, m, v, o: aten._batch_norm_with_update.out(
        x, w, b, m, v, 0.1, 1e-5, out=o[0], save_mean=o[1], save_invstd=o[2], reserve=o[3]
    ),
}


@pytest.fixture(autouse=True)
def _needs_musa(device: str) -> None:
    if device != "musa":
        pytest.skip("the providers of musa are compared")


def served_by(*providers: str, backward: bool | None = None) -> contextlib.AbstractContextManager:
    """Pins layer, batch and group norm to providers: all operators, or those of one direction."""
    if "host" in providers and not host_can_address_device_memory():
        pytest.skip("the provider 'host' needs device memory that the host can address")
    stack = contextlib.ExitStack()
    for operator in ("native_layer_norm", "*batch_norm*", "native_group_norm"):
        if backward is not True:
            stack.enter_context(torch.musa.ops.prefer(f"aten::{operator}", *providers))
    for operator in ("native_layer_norm_backward", "*batch_norm*_backward*"):
        if backward is not False:
            stack.enter_context(torch.musa.ops.prefer(f"aten::{operator}", *providers))
    return stack


def operands(
    dtype: torch.dtype, parameters: torch.dtype | None, device: str = "musa"
) -> list[torch.Tensor | None]:
    """Returns input, weight, bias, running mean and running variance; None for `parameters` leaves out the
    weight and the bias, and the running statistics have the dtype of the input."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, COLUMNS, generator=generator).to(device, dtype)
    weight, bias, mean, variance = torch.rand(4, COLUMNS, generator=generator).add(0.5).unbind()
    affine = [None if parameters is None else each.to(device, parameters) for each in (weight, bias)]
    return [x, *affine, *(each.to(device, parameters or dtype) for each in (mean, variance))]


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("parameters", ("own", torch.float32, None), ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_results_have_the_dtypes_of_fake_tensors(dtype, parameters, order):
    parameters = dtype if parameters == "own" else parameters
    found, expected = {}, {}
    for name, call in FORWARD.items():
        if name == "_batch_norm_with_update" and parameters is None:
            continue  # the fake kernel needs a weight
        if name == "native_group_norm" and parameters == torch.float32:
            continue  # torch.cuda refuses it
        given = operands(dtype, parameters)
        with FakeTensorMode() as mode:
            fake = [None if each is None else mode.from_tensor(each) for each in given]
            expected[name] = [each.dtype for each in call(*fake)]
        with served_by(*order):
            found[name] = [each.dtype for each in call(*given)]
    assert found == expected
    layer_norm = [dtype, torch.float32, torch.float32]
    assert expected["native_layer_norm"] == expected["native_batch_norm"] == layer_norm


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("parameters", ("own", torch.float32, None), ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", OUT)
def test_out_arguments_may_have_the_dtypes_of_the_results(name, dtype, parameters, order):
    given = operands(dtype, dtype if parameters == "own" else parameters)
    again = [None if each is None else each.clone() for each in given]
    with served_by(*order):
        expected = FORWARD[name](*given)
        outs = [each.new_empty(0) for each in expected]
        OUT[name](*again, outs)
    for out, result in zip([*outs, *again], [*expected, *given], strict=True):
        assert (out is None) == (result is None)
        if out is not None:
            torch.testing.assert_close(out, result, rtol=0, atol=0)


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_running_statistics_are_updated_in_their_own_dtype(dtype, order):
    x, weight, bias, mean, variance = operands(dtype, dtype)
    wide = [each.cpu().float() for each in (x, weight, bias, mean, variance)]
    aten.native_batch_norm(*wide, True, 0.1, 1e-5)
    with served_by(*order):
        aten.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)
    torch.testing.assert_close(mean.cpu(), wide[3].to(dtype))
    torch.testing.assert_close(variance.cpu(), wide[4].to(dtype))


def exact_gradient(
    x: torch.Tensor, grad: torch.Tensor, mean: torch.Tensor, rstd: torch.Tensor
) -> torch.Tensor:
    """The input gradient of layer norm over the last dimension, in float64, with these statistics."""
    x, grad, mean, rstd = (each.double() for each in (x, grad, mean, rstd))
    normalized = (x - mean) * rstd
    along = (grad * normalized).mean(1, keepdim=True)
    return rstd * (grad - grad.mean(1, keepdim=True) - normalized * along)


class Case:
    """Rows with a gradient, on the CPU, and the input gradient that float64 gives."""

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype):
        generator = torch.Generator().manual_seed(1)
        self.x, self.grad = torch.randn(2, *shape, generator=generator).to(dtype).unbind()
        wide = self.x.double()
        self.mean = wide.mean(1, keepdim=True)
        self.rstd = (wide.var(1, correction=0, keepdim=True) + 1e-5).rsqrt()
        self.exact = exact_gradient(self.x, self.grad, self.mean, self.rstd)

    def bound(self) -> torch.Tensor:
        """The error of each element if statistics and arithmetic have float32's precision: the result is
        rounded once, and the mean is off by a few units of the last place of the row's largest element, which
        rstd magnifies."""
        wide = self.x.double().abs().amax(1, keepdim=True) * self.rstd
        terms = self.rstd * self.grad.double().abs().amax(1, keepdim=True) * (1 + wide) ** 2
        rounding = torch.finfo(self.x.dtype)
        return (
            self.exact.abs() * rounding.eps / 2
            + rounding.smallest_normal * rounding.eps
            + terms * 16 * torch.finfo(torch.float32).eps
        )

    def within(self, gradient: torch.Tensor) -> bool:
        return bool(((gradient.cpu().double() - self.exact).abs() <= self.bound()).all())


NORMS: dict[str, Callable] = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    # Each row is a channel.
    "batch_norm": lambda x: F.batch_norm(x.T.contiguous(), None, None, training=True).T,
    "layer_norm with weight": lambda x: F.layer_norm(
        x, x.shape[1:], torch.ones_like(x[0]), torch.zeros_like(x[0])
    ),
    "batch_norm with weight": lambda x: (
        F.batch_norm(
            x.T.contiguous(), None, None, torch.ones_like(x[:, 0]), torch.zeros_like(x[:, 0]), training=True
        ).T
    ),
}


def gradient_of(norm: str, case: Case, forward: tuple[str, ...], backward: tuple[str, ...]) -> torch.Tensor:
    x = case.x.to("musa").requires_grad_()
    with served_by(*forward, backward=False), served_by(*backward, backward=True):
        (gradient,) = torch.autograd.grad(NORMS[norm](x), x, case.grad.to("musa"))
    assert gradient.dtype == case.x.dtype
    return gradient


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_input_gradients_have_the_precision_of_float32_statistics(shape, dtype, norm):
    case = Case(shape, dtype)
    rounded = [statistic.to(dtype) for statistic in (case.mean, case.rstd)]
    assert case.within(exact_gradient(case.x, case.grad, case.mean.float(), case.rstd.float()).to(dtype))
    assert not case.within(exact_gradient(case.x, case.grad, *rounded).to(dtype)), "16 bits suffice"
    orders = [order for order in ORDERS if order != ("host",) or host_can_address_device_memory()]
    wrong = [order for order in orders if not case.within(gradient_of(norm, case, order, order))]
    assert not wrong


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        pytest.param(*pair, id=f"{pair[0][0]} then {pair[1][0]}")
        for pair in ((one, other) for one in ORDERS for other in ORDERS if one != other)
    ],
)
def test_one_provider_reads_the_statistics_of_another(forward, backward, norm):
    case = Case((1000, 3), torch.bfloat16)
    assert case.within(gradient_of(norm, case, forward, backward))


@pytest.mark.parametrize("order", ORDERS, ids=",".join)
@pytest.mark.parametrize("parameters", ("own", torch.float32, None), ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_backward_accepts_statistics_in_16_bits(dtype, parameters, order):
    x, weight, bias, running_mean, running_var = operands(dtype, dtype if parameters == "own" else parameters)
    grad = x.flip(0)
    given = weight is not None
    with served_by(*order):
        _, mean, rstd = aten.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5)
        _, save_mean, save_invstd = aten.native_batch_norm(x, weight, bias, None, None, True, 0.1, 1e-5)

        def gradients(to: torch.dtype) -> list[torch.Tensor]:
            saved = [each.to(to) for each in (save_mean, save_invstd)]
            running = [each.to(to) for each in (running_mean, running_var)]
            layer = aten.native_layer_norm_backward(
                grad, x, [COLUMNS], mean.to(to), rstd.to(to), weight, bias, [True, given, given]
            )
            calls = [
                layer,
                aten.native_batch_norm_backward(
                    grad, x, weight, None, None, *saved, True, 1e-5, [True, True, True]
                ),
                aten.native_batch_norm_backward(
                    grad, x, weight, *running, None, None, False, 1e-5, [True, True, True]
                ),
            ]
            if given:
                calls.append(
                    aten.batch_norm_backward(
                        grad, x, weight, None, None, *saved, True, 1e-5, [True] * 3, x.new_empty(0).byte()
                    )
                )
            return [each for call in calls for each in call if each is not None]

        precise, coarse = gradients(torch.float32), gradients(dtype)
    wanted = [dtype, *[weight.dtype if given else dtype] * 2]
    layer_norm = wanted if given else [dtype]
    assert [each.dtype for each in precise] == layer_norm + wanted * (3 if given else 2)
    for one, other in zip(precise, coarse, strict=True):
        torch.testing.assert_close(other, one, rtol=0.1, atol=0.1)


@pytest.mark.host_addressable("other providers than 'host' are captured by the SDK")
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_graph_of_host_kernels_has_the_dtypes_and_values_of_eager_calls(dtype):
    given = operands(dtype, dtype)
    captured = [each.clone() for each in given]
    grad = given[0].flip(0)

    def step(x, weight, bias, mean, variance):
        layer = aten.native_layer_norm(x, [COLUMNS], weight, bias, 1e-5)
        batch = aten.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)
        return [
            *layer,
            *batch,
            *aten.native_layer_norm_backward(grad, x, [COLUMNS], *layer[1:], weight, bias, [True] * 3),
            *aten.native_batch_norm_backward(
                grad, x, weight, mean, variance, *batch[1:], True, 1e-5, [True] * 3
            ),
        ]

    with served_by("host"):
        expected = step(*given)
        graph = torch.musa.MUSAGraph()
        with torch.musa.graph(graph):
            results = step(*captured)
        graph.replay()
        torch.musa.synchronize()
    for result, wanted in zip([*results, *captured], [*expected, *given], strict=True):
        torch.testing.assert_close(result, wanted, rtol=0, atol=0)
