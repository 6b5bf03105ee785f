# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Compiled programs on musa give the results of eager mode, with each of torch's backends: models and their
training, optimizers, moves between devices, custom operators, attention, function transforms, mutation, and
graphs of the device.
"""

from __future__ import annotations

import functools

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]


@pytest.fixture
def one_rank(tmp_path):
    """A process group of this process alone."""
    dist.init_process_group("mccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def gradients_of(model: nn.Module) -> list[torch.Tensor]:
    """The gradients of the parameters, which are reset."""
    gradients = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    return gradients


def assert_gradients(model: nn.Module, expected: list[torch.Tensor]) -> None:
    actual = gradients_of(model)
    assert len(actual) == len(expected)
    for gradient, wanted in zip(actual, expected):
        assert_same(gradient, wanted)


def test_pointwise(backend):
    def f(x):
        return (x * 2 + 1).relu().sin()

    x = torch.randn(64, 33, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), f(x))


def test_training_of_a_model(backend):
    layers = [nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)]
    model = nn.Sequential(*layers).to("musa")
    x = torch.randn(5, 8, device="musa")
    model(x).sum().backward()
    expected = gradients_of(model)
    torch.compile(model, backend=backend)(x).sum().backward()
    assert_gradients(model, expected)


def test_symbolic_sizes_need_one_compilation(backend):
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)

    def f(x):
        return x.softmax(-1) * x.shape[0]

    compiled = torch.compile(f, backend=counter, dynamic=True, fullgraph=True)
    for size in (3, 7, 12):
        x = torch.randn(size, 5, device="musa")
        assert_same(compiled(x), f(x))
    assert counter.frame_count == 1


def test_moves_between_devices(backend):
    def f(x):
        return (x.to("musa") * 2 + torch.ones(3, device="musa")).cpu()

    x = torch.randn(3)
    result = torch.compile(f, backend=backend, fullgraph=True)(x)
    assert result.device.type == "cpu"
    assert_same(result, x * 2 + 1)


def test_generated_properties_of_tensors(backend):
    def f(x):
        y = x.musa()
        return y * 2 if y.is_musa else y

    x = torch.randn(3)
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), x * 2)


@functools.cache
def custom_operators():
    """Define operators in Python, once: one with a gradient, one for musa that writes to its argument."""

    @torch.library.custom_op("musa_compile_tests::scale", mutates_args=())
    def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
        return x * factor

    def remember_factor(ctx, inputs, output):  # torch passes them by these names
        ctx.factor = inputs[1]

    scale.register_fake(lambda x, factor: torch.empty_like(x))
    scale.register_autograd(
        lambda context, gradient: (gradient * context.factor, None), setup_context=remember_factor
    )

    @torch.library.custom_op("musa_compile_tests::increment_", mutates_args=("x",), device_types="musa")
    def increment_(x: torch.Tensor) -> None:
        x.add_(1)


def test_custom_operators(backend):
    custom_operators()

    def f(x):
        y = torch.ops.musa_compile_tests.scale(x * 2, 3.0).clone()
        torch.ops.musa_compile_tests.increment_(y)
        return y * 2

    x = torch.randn(4, device="musa", requires_grad=True)
    result = torch.compile(f, backend=backend, fullgraph=True)(x)
    assert_same(result, x * 12 + 2)
    result.sum().backward()
    assert_same(x.grad, torch.full((4,), 12.0))


def test_operators_of_torch_musa(backend):
    def f(x):
        return torch.ops.torch_musa.swiglu(x) * 2

    x = torch.randn(4, 8, device="musa")
    gate, value = x.cpu().chunk(2, -1)
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), F.silu(gate) * value * 2)


def test_attention(backend):
    def f(query, key, value):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)

    leaves = [torch.randn(2, 2, 16, 8, device="musa", requires_grad=True) for _ in range(3)]
    result = torch.compile(f, backend=backend, fullgraph=True)(*leaves)
    expected = f(*leaves)
    assert_same(result, expected)
    for gradient, wanted in zip(
        torch.autograd.grad(result.sum(), leaves), torch.autograd.grad(expected.sum(), leaves)
    ):
        assert_same(gradient, wanted)


def test_vmap_of_gradients(backend):
    weight = torch.randn(5, device="musa")

    def f(rows):
        return torch.func.vmap(torch.func.grad(lambda x: (x * weight).tanh().sum()))(rows)

    x = torch.randn(7, 5, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), f(x))


def test_jacobians_and_forward_derivatives(backend):
    def f(x):
        tangent = torch.func.jvp(lambda t: t.exp(), (x,), (torch.ones_like(x),))[1]
        return torch.func.jacrev(lambda t: t.sin() * t.sum())(x), tangent

    x = torch.randn(5, device="musa")
    for actual, expected in zip(torch.compile(f, backend=backend, fullgraph=True)(x), f(x)):
        assert_same(actual, expected)


@pytest.mark.full
def test_second_derivatives():
    x = torch.randn(5, device="musa", requires_grad=True)
    cubes = torch.compile(lambda x: (x**3).sum(), backend="eager")
    [first] = torch.autograd.grad(cubes(x), x, create_graph=True)
    [second] = torch.autograd.grad(first.sum(), x)
    assert_same(second, 6 * x)


def test_compiled_autograd(backend):
    from torch._dynamo import compiled_autograd

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to("musa")
    x = torch.randn(4, 8, device="musa")
    model(x).sum().backward()
    expected = gradients_of(model)
    with compiled_autograd._enable(torch.compile(backend=backend)):
        model(x).sum().backward()
    assert_gradients(model, expected)


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD])
def test_steps_of_optimizers(backend, optimizer):
    model, reference = (nn.Linear(8, 8).to("musa") for _ in range(2))
    reference.load_state_dict(model.state_dict())
    compiled, eager = (optimizer(each.parameters(), lr=0.01) for each in (model, reference))
    step = torch.compile(lambda: compiled.step(), backend=backend)
    x = torch.randn(4, 8, device="musa")
    for _ in range(2):
        for each, update in ((model, step), (reference, eager.step)):
            each.zero_grad()
            each(x).sum().backward()
            update()
    assert_same(model.weight, reference.weight)


def test_mutation_and_views(backend):
    def f(x):
        x.view(-1)[2:].add_(1)
        x.t_().mul_(2)
        return x * 1

    x = torch.randn(4, 4, device="musa")
    reference = x.clone()
    assert_same(torch.compile(f, backend=backend)(x), f(reference))
    assert_same(x, reference)


def test_sizes_that_depend_on_data(backend):
    def f(x):
        return x.nonzero().sum() + x.sum().item() * 2

    x = torch.tensor([0.0, 1.0, 0.0, 2.0], device="musa")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), torch.tensor(10.0))


def test_capture_into_a_graph_by_hand(backend):
    def f(x):
        return (x * 2 + 1).relu().sum(0)

    compiled = torch.compile(f, backend=backend)
    x = torch.randn(8, 8, device="musa")
    compiled(x)
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        result = compiled(x)
    for value in (torch.ones(8, 8), torch.randn(8, 8)):
        x.copy_(value)
        graph.replay()
        assert_same(result, f(value))


def test_data_parallel_of_one_rank(backend, one_rank):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)).to("musa")
    model = nn.parallel.DistributedDataParallel(model)
    x = torch.randn(4, 8, device="musa")
    model(x).sum().backward()
    expected = gradients_of(model)
    torch.compile(model, backend=backend)(x).sum().backward()
    assert_gradients(model, expected)


def test_functional_collectives(backend, one_rank):
    from torch.distributed import _functional_collectives as collectives

    def f(x):
        return collectives.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

    x = torch.ones(4, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), torch.full((4,), 3.0))
