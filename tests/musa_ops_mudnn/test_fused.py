# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.ops.torch_musa: values and gradients equal plain torch's, on musa through muDNN and on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("musa")

DEVICES = ("musa", "cpu")


@dataclass
class Case:
    """A call, its reference in plain torch, and a function that makes its operands on the CPU."""

    op: str
    reference: Callable
    operands: Callable[[torch.dtype], list]
    options: dict = field(default_factory=dict)
    # Indices of the operands that have a gradient, among the floating operands.
    differentiable: tuple[int, ...] = (0,)

    def call(self, *operands):
        return getattr(torch.ops.torch_musa, self.op)(*operands, **self.options)


def _swiglu(x):
    a, b = x.chunk(2, -1)
    return functional.silu(a) * b


def _rope(x, freqs, *, interleaved=False, batch_first=True, multi_latent=False):
    """Rotates each pair (u, v) by its angle t: (u cos t - v sin t, v cos t + u sin t)."""
    positions = 1 if batch_first and x.dim() == 4 else 0
    if freqs.dim() == 3 and freqs.shape[2] == 2 and freqs.shape[1] != 1:
        size = 2 * freqs.shape[1]
        cosine, sine = freqs.unbind(-1)  # one angle for each pair
        of_first = of_second = (cosine, sine)
    else:
        size = freqs.shape[-1]
        angles = freqs.reshape(freqs.shape[0], size)
        halves = (angles[:, ::2], angles[:, 1::2]) if interleaved else angles.chunk(2, -1)
        of_first, of_second = [(half.cos(), half.sin()) for half in halves]
    length = x.shape[positions]
    shape = [1] * x.dim()
    shape[positions], shape[-1] = length, size // 2
    (cosine_u, sine_u), (cosine_v, sine_v) = [
        [part[:length].reshape(shape) for part in parts] for parts in (of_first, of_second)
    ]
    turned, rest = x[..., :size], x[..., size:]
    if multi_latent:
        turned = torch.cat([turned[..., ::2], turned[..., 1::2]], -1)
    u, v = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    first, second = u * cosine_u - v * sine_u, v * cosine_v + u * sine_v
    if interleaved:
        turned = torch.stack([first, second], -1).flatten(-2)
    else:
        turned = torch.cat([first, second], -1)
    return torch.cat([turned.to(x.dtype), rest], -1)


def _conv(x, weight, bias=None, add=None, *, stride=1, padding=0, dilation=1, groups=1, activation="none"):
    out = functional.conv2d(x, weight, bias, stride, padding, dilation, groups)
    if add is not None:
        out = out + add
    return out if activation == "none" else getattr(functional, activation)(out)


def _cross_entropy(x, target, weight=None, *, reduction=1, **options):
    return functional.cross_entropy(
        x, target, weight, reduction=("none", "mean", "sum")[reduction], **options
    )


def _angles(*shape):
    return lambda dtype: [torch.randn(*shape, dtype=dtype), torch.rand(16, 8) * 6]


def _image(dtype, memory_format=torch.contiguous_format):
    return torch.randn(2, 4, 7, 6, dtype=dtype).to(memory_format=memory_format)


def _with_bias_and_add(memory_format=torch.contiguous_format):
    def operands(dtype):
        # The slope of hardswish jumps at 3, so rounding across it would give an element another gradient.
        scale = 0.3 if dtype.itemsize == 2 else 1
        return [
            _image(dtype, memory_format),
            torch.randn(6, 4, 3, 3, dtype=dtype).to(memory_format=memory_format) * 0.2 * scale,
            torch.randn(6, dtype=dtype) * scale,
            torch.randn(2, 6, 7, 6, dtype=dtype) * scale,
        ]

    return operands


def _labels(dtype, ignored=-100):
    target = torch.randint(0, 5, (9,))
    target[3] = ignored
    return [torch.randn(9, 5, dtype=dtype), target]


CASES = {
    "swiglu": Case("swiglu", _swiglu, lambda dtype: [torch.randn(3, 5, 8, dtype=dtype)]),
    "swiglu of a vector": Case("swiglu", _swiglu, lambda dtype: [torch.randn(6, dtype=dtype)]),
    "swiglu, strided": Case("swiglu", _swiglu, lambda dtype: [torch.randn(8, 5, dtype=dtype).t()[:, ::2]]),
    "rope": Case("rope", _rope, _angles(2, 10, 3, 12)),
    "rope, all elements": Case("rope", _rope, _angles(2, 16, 3, 8)),
    "rope, interleaved": Case("rope", _rope, _angles(2, 10, 3, 12), {"interleaved": True}),
    "rope, positions first": Case("rope", _rope, _angles(10, 2, 3, 12), {"batch_first": False}),
    "rope without batch": Case("rope", _rope, _angles(10, 3, 12)),
    "rope, multi-latent": Case("rope", _rope, _angles(2, 10, 3, 12), {"multi_latent": True}),
    "rope, dimensions between": Case(
        "rope", _rope, lambda dtype: [torch.randn(2, 5, 3, 8, dtype=dtype), torch.rand(5, 1, 1, 8)]
    ),
    "rope of pairs": Case(
        "rope", _rope, lambda dtype: [torch.randn(2, 5, 3, 8, dtype=dtype), torch.rand(7, 4, 2)]
    ),
    "rope of pairs, interleaved": Case(
        "rope",
        _rope,
        lambda dtype: [torch.randn(2, 5, 3, 8, dtype=dtype), torch.rand(7, 3, 2)],
        {"interleaved": True},
    ),
    "conv2d": Case(
        "conv2d_bias_act",
        _conv,
        lambda dtype: [_image(dtype), torch.randn(6, 4, 3, 3, dtype=dtype) * 0.2],
        differentiable=(0, 1),
    ),
    "conv2d, strided window": Case(
        "conv2d_bias_act",
        _conv,
        lambda dtype: [
            _image(dtype),
            torch.randn(6, 2, 3, 2, dtype=dtype) * 0.2,
            torch.randn(6, dtype=dtype),
        ],
        {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2], "groups": 2, "activation": "relu"},
        differentiable=(0, 1, 2),
    ),
    **{
        f"conv2d, {activation}": Case(
            "conv2d_bias_act",
            _conv,
            _with_bias_and_add(),
            {"padding": 1, "activation": activation},
            differentiable=(0, 1, 2, 3),
        )
        for activation in ("none", "relu", "sigmoid", "tanh", "hardswish", "silu")
    },
    "conv2d, channels last": Case(
        "conv2d_bias_act",
        _conv,
        _with_bias_and_add(torch.channels_last),
        {"padding": 1, "activation": "silu"},
        differentiable=(0, 1, 2, 3),
    ),
    "cross_entropy": Case("cross_entropy", _cross_entropy, _labels),
    "cross_entropy, each": Case("cross_entropy", _cross_entropy, _labels, {"reduction": 0}),
    "cross_entropy, sum": Case("cross_entropy", _cross_entropy, _labels, {"reduction": 2}),
    "cross_entropy, smoothed": Case("cross_entropy", _cross_entropy, _labels, {"label_smoothing": 0.2}),
    "cross_entropy, weighted": Case(
        "cross_entropy",
        _cross_entropy,
        lambda dtype: [*_labels(dtype, ignored=2), torch.rand(5, dtype=dtype)],
        {"label_smoothing": 0.1, "ignore_index": 2},
    ),
}

# Cases that muDNN does not support, or is not known to support.
COMPOSED = {
    "swiglu of nothing": Case("swiglu", _swiglu, lambda dtype: [torch.randn(0, 8, dtype=dtype)]),
    "swiglu of float64": Case("swiglu", _swiglu, lambda dtype: [torch.randn(3, 8, dtype=torch.float64)]),
    "swiglu of nine dimensions": Case("swiglu", _swiglu, lambda dtype: [torch.randn(*[2] * 9, dtype=dtype)]),
    "rope of float64": Case(
        "rope", _rope, lambda dtype: [torch.randn(2, 5, 3, 8, dtype=torch.float64), torch.rand(5, 8)]
    ),
    "rope of nothing": Case(
        "rope", _rope, lambda dtype: [torch.randn(0, 5, 3, 8, dtype=dtype), torch.rand(5, 8)]
    ),
    "conv2d of float64": Case(
        "conv2d_bias_act",
        _conv,
        lambda dtype: _with_bias_and_add()(torch.float64),
        {"padding": 1, "activation": "relu"},
        differentiable=(0, 1, 2, 3),
    ),
    "cross_entropy of images": Case(
        "cross_entropy",
        _cross_entropy,
        lambda dtype: [torch.randn(2, 5, 3, 4, dtype=dtype), torch.randint(0, 5, (2, 3, 4))],
        {"label_smoothing": 0.1},
    ),
    "cross_entropy of probabilities": Case(
        "cross_entropy",
        _cross_entropy,
        lambda dtype: [
            torch.randn(4, 5, dtype=dtype),
            torch.rand(4, 5, dtype=dtype),
            torch.rand(5, dtype=dtype),
        ],
        {"label_smoothing": 0.1},
    ),
    "cross_entropy of one sample": Case(
        "cross_entropy", _cross_entropy, lambda dtype: [torch.randn(5, dtype=dtype), torch.tensor(2)]
    ),
}

ALL = {**CASES, **COMPOSED}


def with_gradients(case, operands, device):
    """Copies the operands to a device; the differentiable ones require a gradient."""
    return [
        operand.detach().to(device).requires_grad_(index in case.differentiable)
        for index, operand in enumerate(operands)
    ]


def gradients(f, operands):
    result = f(*operands)
    torch.manual_seed(1)
    outer = torch.randn(result.shape).to(result)
    inner = [operand for operand in operands if operand.requires_grad]
    return result.detach(), torch.autograd.grad(result, inner, outer)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ALL)
def test_values_and_gradients_are_those_of_plain_torch(name, device):
    case = ALL[name]
    operands = case.operands(torch.float32)
    expected = gradients(
        lambda *operands: case.reference(*operands, **case.options), with_gradients(case, operands, "cpu")
    )
    actual = gradients(case.call, with_gradients(case, operands, device))
    assert actual[0].device.type == device and all(value.device.type == device for value in actual[1])
    torch.testing.assert_close(
        [actual[0].cpu(), *(value.cpu() for value in actual[1])], [expected[0], *expected[1]]
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_half_types_differ_only_by_rounding(name, dtype):
    case = CASES[name]
    operands = case.operands(dtype)
    exact = [operand.double() if operand.is_floating_point() else operand for operand in operands]
    expected = gradients(
        lambda *operands: case.reference(*operands, **case.options), with_gradients(case, exact, "cpu")
    )
    actual = gradients(case.call, with_gradients(case, operands, "musa"))
    assert actual[0].dtype == dtype and all(value.dtype == dtype for value in actual[1])
    # The backward pass has several roundings, of up to 3e-4 (float16) and 2e-3 (bfloat16) each.
    rtol = 2e-3 if dtype == torch.float16 else 2e-2
    for value, wanted in zip([actual[0], *actual[1]], [expected[0], *expected[1]]):
        atol = rtol * float(wanted.abs().max())
        torch.testing.assert_close(value.cpu().double(), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CASES)
def test_muDNN_serves_the_call_and_its_gradient(name, served_by_mudnn):
    case = CASES[name]
    operands = with_gradients(case, case.operands(torch.float32), "musa")
    result, served = served_by_mudnn(f"torch_musa::{case.op}", lambda: case.call(*operands))
    assert served
    if case.op != "conv2d_bias_act":  # whose gradient is composed of torch's operators
        backward = f"torch_musa::{case.op}_backward"
        _, served = served_by_mudnn(
            backward, lambda: torch.autograd.grad(result, operands[0], result.detach())
        )
        assert served


@pytest.mark.parametrize("name", COMPOSED)
def test_cases_that_muDNN_does_not_support_are_composed_on_the_device(name, served_by_mudnn, musa):
    case = COMPOSED[name]
    operands = [operand.to("musa") for operand in case.operands(torch.float32)]
    op = f"torch_musa::{case.op}"
    _, served = served_by_mudnn(op, lambda: case.call(*operands))
    assert not served
    told = {row["provider"]: row["calls"] for row in musa.ops.explain(op)["candidates"]}
    assert told["runtime"] > 0 and told["host-copy"] == 0 and told.get("host", 0) == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_results_have_the_strides_of_the_fake_kernels(name, device):
    case = CASES[name]
    operands = [operand.to(device) for operand in case.operands(torch.float32)]
    actual = case.call(*operands)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = case.call(*(mode.from_tensor(operand) for operand in operands))
    assert (fake.shape, fake.stride(), fake.dtype, fake.device.type) == (
        actual.shape,
        actual.stride(),
        actual.dtype,
        device,
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_opcheck(name, device):
    case = CASES[name]
    operands = with_gradients(case, case.operands(torch.float32), device)
    tests = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    if device == "cpu":  # torch has this check for the CPU only
        tests.append("test_autograd_registration")
    torch.library.opcheck(
        getattr(torch.ops.torch_musa, case.op).default, operands, case.options, test_utils=tests
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op", ["swiglu_backward", "rope_backward", "cross_entropy_backward"])
def test_opcheck_of_gradients(op, device):
    operands = {
        "swiglu_backward": [torch.randn(3, 4), torch.randn(3, 8)],
        "rope_backward": [torch.randn(2, 5, 3, 8), torch.rand(5, 8)],
        "cross_entropy_backward": [torch.randn(()), *_labels(torch.float32)],
    }[op]
    operands = [operand.to(device) for operand in operands]
    tests = ["test_schema", "test_faketensor"]
    torch.library.opcheck(getattr(torch.ops.torch_musa, op).default, operands, test_utils=tests)


@pytest.mark.parametrize(
    "name",
    ["swiglu", "rope", "rope, interleaved", "rope, multi-latent"]
    + [f"conv2d, {activation}" for activation in ("none", "sigmoid", "tanh", "silu", "hardswish")],
)
def test_first_and_second_derivatives_equal_finite_differences(name):
    case = CASES[name]
    small = {
        "swiglu": [torch.randn(2, 4)],
        "rope": [torch.randn(1, 3, 1, 6), torch.rand(3, 4)],
        "conv2d_bias_act": [torch.randn(1, 2, 3, 3), torch.randn(2, 2, 2, 2), torch.randn(2)],
    }[case.op]
    options = {**case.options, "padding": 0} if case.op == "conv2d_bias_act" else case.options

    def call(*operands):
        return getattr(torch.ops.torch_musa, case.op)(*operands, **options)

    operands = with_gradients(case, [operand.double() for operand in small], "cpu")
    assert torch.autograd.gradcheck(call, operands)
    assert torch.autograd.gradgradcheck(call, operands)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["swiglu", "rope", "conv2d, silu", "conv2d, relu", "cross_entropy"])
def test_a_compiled_model_has_them_in_one_graph(name, backend):
    case = CASES[name]
    operands = case.operands(torch.float32)

    def model(*operands):
        return case.call(*operands).sin()

    expected = gradients(model, with_gradients(case, operands, "cpu"))
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    actual = gradients(compiled, with_gradients(case, operands, "musa"))
    torch.testing.assert_close(
        [actual[0].cpu(), *(value.cpu() for value in actual[1])], [expected[0], *expected[1]]
    )
    torch._dynamo.reset()


def test_a_gradient_that_does_not_exist_is_refused():
    x, freqs = torch.randn(2, 5, 3, 8), torch.rand(5, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="rope has no gradient with respect to freqs"):
        torch.ops.torch_musa.rope(x, freqs)
    scores, target = torch.randn(4, 5, requires_grad=True), torch.rand(4, 5, requires_grad=True)
    with pytest.raises(RuntimeError, match="cross_entropy has no gradient with respect to target"):
        torch.ops.torch_musa.cross_entropy(scores, target)
    loss = torch.ops.torch_musa.cross_entropy(scores, target.detach())
    (gradient,) = torch.autograd.grad(loss, scores, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second derivative.\nFix: use torch\.nn\.functional"):
        gradient.sum().backward()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ops, make: ops.swiglu(make(3, 5)), r"whose last dimension splits in two"),
        (lambda ops, make: ops.swiglu(make(2, 4).int()), r"swiglu takes a floating tensor"),
        (
            lambda ops, make: ops.swiglu_backward(make(2, 4), make(2, 4)),
            r"does not belong to an input of shape",
        ),
        (lambda ops, make: ops.rope(make(2, 5, 3, 8), make(4, 8)), r"do not fit an input"),
        (lambda ops, make: ops.rope(make(2, 5, 3, 8), make(5, 7)), r"do not fit an input"),
        (lambda ops, make: ops.rope(make(5, 8), make(5, 8)), r"do not fit an input"),
        (
            lambda ops, make: ops.conv2d_bias_act(make(1, 2, 4, 4), make(2, 2, 3, 3), activation="softsign"),
            r"supports the activations none, relu.*but got 'softsign'",
        ),
        (
            lambda ops, make: ops.conv2d_bias_act(make(1, 2, 4, 4), make(2, 2, 3, 3), None, make(1, 2, 4, 4)),
            r"add must have the result's dtype and shape",
        ),
        (lambda ops, make: ops.conv2d_bias_act(make(1, 3, 4, 4), make(2, 2, 3, 3)), r"channels"),
        (lambda ops, make: ops.conv2d_bias_act(make(1, 2, 2, 2), make(2, 2, 3, 3)), r"[Kk]ernel size"),
    ],
)
def test_wrong_operands_are_refused_and_the_error_names_the_expected_ones(call, message, device):
    with pytest.raises((RuntimeError, ValueError), match=message):
        call(torch.ops.torch_musa, lambda *shape: torch.randn(*shape).to(device))
    assert (torch.ones(2, device=device) + 1).cpu().eq(2).all()


def test_operands_of_two_devices_are_refused_and_the_device_survives(two_devices):
    x, freqs = torch.randn(2, 5, 3, 8, device="musa:0"), torch.rand(5, 8, device="musa:1")
    with pytest.raises(RuntimeError, match="device"):
        torch.ops.torch_musa.rope(x, freqs)
    for index in (0, 1):
        assert torch.ones(2, device=f"musa:{index}").add(1).cpu().eq(2).all()


def test_the_result_is_on_the_operands_device_not_on_the_current_one(two_devices):
    x = torch.randn(3, 8)
    with torch.musa.device(0):
        result = torch.ops.torch_musa.swiglu(x.to("musa:1"))
    assert result.device == torch.device("musa:1")
    torch.testing.assert_close(result.cpu(), _swiglu(x))


def test_a_policy_without_muDNN_computes_the_same(musa):
    x = torch.randn(3, 8)
    with musa.ops.prefer("torch_musa::swiglu", "runtime"):
        assert musa.ops.explain("torch_musa::swiglu")["provider"] == "runtime"
        torch.testing.assert_close(torch.ops.torch_musa.swiglu(x.to("musa")).cpu(), _swiglu(x))
    assert musa.ops.explain("torch_musa::swiglu")["provider"] == "mudnn"
