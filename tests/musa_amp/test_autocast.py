# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.autocast("musa") in programs: nesting, cache, gradients, checkpoints, transforms, graphs."""

import typing

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.harness.device import host_can_address_device_memory
from tests.harness.skips import needs_torch
from tests.musa_amp.test_rules import Witness


@pytest.fixture
def matrix(musa):
    torch.manual_seed(0)
    return torch.randn(8, 8, device="musa")


def make_model():
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers).to("musa")


def test_regions_nest_and_restore(matrix):
    assert not torch.is_autocast_enabled("musa")
    with torch.autocast("musa"):
        assert torch.is_autocast_enabled("musa") and torch.get_autocast_dtype("musa") == torch.float16
        assert (matrix @ matrix).dtype == torch.float16
        with torch.autocast("musa", enabled=False):
            assert (matrix @ matrix).dtype == torch.float32
        with torch.autocast("musa", dtype=torch.bfloat16):
            assert (matrix @ matrix).dtype == torch.bfloat16
        assert (matrix @ matrix).dtype == torch.float16
    assert not torch.is_autocast_enabled("musa") and (matrix @ matrix).dtype == torch.float32


def test_a_region_left_by_an_exception_ends(matrix):
    with pytest.raises(KeyError), torch.autocast("musa"):
        raise KeyError
    assert (matrix @ matrix).dtype == torch.float32


def test_the_default_dtype_can_be_set(matrix):
    torch.set_autocast_dtype("musa", torch.bfloat16)
    try:
        with torch.autocast("musa"):
            assert (matrix @ matrix).dtype == torch.bfloat16
    finally:
        torch.set_autocast_dtype("musa", torch.float16)


def test_the_module_has_the_names_of_torch_cuda_amp(musa, matrix):
    assert {"autocast", "GradScaler", "custom_fwd", "custom_bwd"} <= set(vars(musa.amp))
    import torch.musa.amp as imported

    assert imported is musa.amp

    @musa.amp.autocast(dtype=torch.bfloat16)
    def product(a):
        return a @ a

    assert product(matrix).dtype == torch.bfloat16
    with musa.amp.autocast(False):
        assert (matrix @ matrix).dtype == torch.float32
    assert isinstance(musa.amp.GradScaler(), torch.amp.GradScaler)


@pytest.mark.parametrize("cached", [True, False])
def test_a_weight_is_cast_once_per_region_with_the_cache(matrix, cached):
    weight = matrix.clone().requires_grad_()
    casts = []
    for _ in range(2):
        with torch.autocast("musa", cache_enabled=cached):
            products = [matrix.detach() @ weight for _ in range(3)]
        # Kept alive, because a node's Python object that is freed may share its id with the next one.
        nodes = [product.grad_fn.next_functions[1][0] for product in products]
        casts.append(len({id(node) for node in nodes}))
    assert casts == ([1, 1] if cached else [3, 3])


def test_gradients_have_the_dtype_of_their_weights_and_the_values_of_explicit_casts(matrix):
    model = make_model()
    with torch.autocast("musa", dtype=torch.bfloat16):
        output = model(matrix)
    assert output.dtype == torch.bfloat16
    output.float().square().mean().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert {gradient.dtype for gradient in gradients} == {torch.float32}

    explicit = make_model()
    low = torch.bfloat16
    first, norm, gelu, last = explicit
    hidden = torch.nn.functional.linear(matrix.to(low), first.weight.to(low), first.bias.to(low))
    hidden = gelu(norm(hidden.float()))
    result = torch.nn.functional.linear(hidden.to(low), last.weight.to(low), last.bias.to(low))
    torch.testing.assert_close(output, result, rtol=0, atol=0)
    result.float().square().mean().backward()
    for gradient, parameter in zip(gradients, explicit.parameters()):
        torch.testing.assert_close(gradient, parameter.grad, rtol=0, atol=0)


def test_the_backward_pass_runs_in_the_dtypes_of_the_forward_pass(matrix):
    weight = matrix.clone().requires_grad_()
    with torch.autocast("musa"):
        loss = (matrix @ weight).float().sum()
    with Witness() as witness:
        loss.backward()
    assert witness.computed["mm"] == {torch.float16}


class Scaled(torch.autograd.Function):
    """x times 2; records the dtypes of its inputs and whether autocast was enabled."""

    seen: typing.ClassVar[list] = []

    @staticmethod
    def forward(ctx, x):
        Scaled.seen.append((x.dtype, torch.is_autocast_enabled("musa")))
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        Scaled.seen.append((grad.dtype, torch.is_autocast_enabled("musa")))
        return grad * 2


@pytest.mark.parametrize(
    ("options", "forward"),
    [({}, (torch.float16, True)), ({"cast_inputs": torch.float32}, (torch.float32, False))],
)
def test_custom_functions_choose_their_dtype(musa, matrix, options, forward):
    class Custom(Scaled):
        forward = staticmethod(musa.amp.custom_fwd(**options)(Scaled.forward))
        backward = staticmethod(musa.amp.custom_bwd(Scaled.backward))

    Scaled.seen.clear()
    x = matrix.half().requires_grad_()
    with torch.autocast("musa"):
        y = Custom.apply(x)
    y.float().sum().backward()
    assert Scaled.seen == [forward, forward]


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_checkpoint_computes_again_in_the_same_dtypes(matrix, reentrant, dtype):
    def gradients(use):
        model = make_model()
        images = matrix.clone().requires_grad_()
        with torch.autocast("musa", dtype=dtype):
            output = checkpoint(model, images, use_reentrant=reentrant) if use else model(images)
        output.float().square().mean().backward()
        return [images.grad, *(parameter.grad for parameter in model.parameters())]

    for one, other in zip(gradients(True), gradients(False)):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_transforms_see_the_casts(matrix):
    def loss(weight, row):
        return (row @ weight).float().square().sum()

    weight = matrix.clone()
    with torch.autocast("musa"):
        whole = torch.func.grad(lambda w: (matrix @ w).float().square().sum())(weight)
        by_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weight, matrix)
        assert torch.func.vmap(lambda row: row @ weight)(matrix).dtype == torch.float16
        out, product = torch.func.jvp(lambda w: matrix @ w, (weight,), (weight,))
    assert whole.dtype == by_row.dtype == torch.float32
    # The 16-bit sums are rounded in a different order.
    torch.testing.assert_close(by_row.sum(0), whole, rtol=2e-2, atol=2e-1)
    assert out.dtype == product.dtype == torch.float16


def test_a_graph_replays_casts(musa, matrix):
    if not host_can_address_device_memory() and not hasattr(torch.ops.torch_musa, "cross_entropy"):
        pytest.skip("the pack mudnn, which computes in memory that the host cannot address, is not loaded")
    model = make_model()
    with torch.no_grad(), torch.autocast("musa", cache_enabled=False):
        expected = model(matrix)
        stream = musa.Stream()
        stream.wait_stream(musa.current_stream())
        with musa.stream(stream):
            model(matrix)
        musa.current_stream().wait_stream(stream)
        graph = musa.MUSAGraph()
        with musa.graph(graph):
            output = model(matrix)
    assert output.dtype == torch.float16
    graph.replay()
    torch.testing.assert_close(output, expected, rtol=0, atol=0)
    matrix.neg_()
    graph.replay()
    with torch.no_grad(), torch.autocast("musa"):
        torch.testing.assert_close(output, model(matrix), rtol=0, atol=0)


def test_a_compiled_model_casts_as_in_eager_mode(matrix):
    model = make_model()
    compiled = torch.compile(model, backend="aot_eager")
    results = []
    for f in (model, compiled):
        with torch.autocast("musa", dtype=torch.bfloat16):
            results.append(f(matrix))
    torch.testing.assert_close(*results, rtol=0, atol=0)


def test_each_device_has_its_own_switch(two_devices):
    weights = [torch.ones(4, 4, device=f"musa:{index}") for index in range(2)]
    with torch.autocast("musa"), torch.autocast("cpu", dtype=torch.bfloat16):
        assert [(w @ w).dtype for w in weights] == [torch.float16] * 2
        assert (torch.ones(4, 4) @ torch.ones(4, 4)).dtype == torch.bfloat16


# ---- operators of the packs


@pytest.fixture
def own(musa):
    if not hasattr(torch.ops.torch_musa, "cross_entropy"):
        pytest.skip("the pack mudnn, which has these operators, is not loaded")
    return torch.ops.torch_musa


def test_a_fused_convolution_runs_in_16_bits(own):
    images, filters = torch.rand(1, 2, 5, 5, device="musa"), torch.rand(3, 2, 3, 3, device="musa")
    bias = torch.rand(3, device="musa", requires_grad=True)
    with torch.autocast("musa", dtype=torch.bfloat16):
        result = own.conv2d_bias_act(images, filters.requires_grad_(), bias, activation="relu")
        composed = torch.nn.functional.conv2d(images, filters, bias).relu()
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, composed)
    result.float().sum().backward()
    assert bias.grad.dtype == filters.grad.dtype == torch.float32


def test_a_fused_loss_runs_in_float32(own):
    logits = torch.rand(3, 5, device="musa", dtype=torch.float16, requires_grad=True)
    target = torch.tensor([0, 4, 2], device="musa")
    with torch.autocast("musa"):
        loss = own.cross_entropy(logits, target)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(logits.float(), target))
    loss.backward()
    assert logits.grad.dtype == torch.float16


def test_an_operator_of_the_user_takes_a_rule(musa, matrix):
    needs_torch("2.13", "torch.library.register_autocast() for other devices than cpu and cuda")

    @torch.library.custom_op("musa_amp_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert twice(matrix).dtype == torch.float32
    torch.library.register_autocast("musa_amp_test::twice", "musa", torch.float16)
    with torch.autocast("musa", dtype=torch.bfloat16):
        assert twice(matrix).dtype == torch.float16
