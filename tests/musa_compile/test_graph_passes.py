# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The passes over graphs before C++ kernels are generated: results stay the same, and the passes do what
Inductor does only for tensors on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.harness.skips import needs_torch

pytestmark = pytest.mark.once

aten = torch.ops.aten


def passed(program: Callable, *inputs: torch.Tensor) -> torch.fx.GraphModule:
    """The graph of the program after the passes; its results equal the program's."""
    from musa_compile import graph_passes

    graph_module = make_fx(program, tracing_mode="fake")(*inputs)
    graph_passes.prepare(graph_module)
    graph_module.graph.lint()
    graph_module.recompile()
    torch.testing.assert_close(graph_module(*inputs), program(*inputs))
    for node in graph_module.graph.nodes:
        value = node.meta.get("val")
        if node.op == "call_function" and isinstance(value, torch.Tensor):
            assert value.device.type == inputs[0].device.type, node
    return graph_module


def calls(graph_module: torch.fx.GraphModule, target: object) -> list[torch.fx.Node]:
    return list(graph_module.graph.find_nodes(op="call_function", target=target))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_an_index_among_all_elements_counts_in_the_order_of_dimensions(name: str, keepdim: bool) -> None:
    function, target = getattr(torch, name), getattr(aten, name).default
    x = torch.randn(7, 13, device="musa").t()
    [node] = calls(passed(lambda x: function(x, keepdim=keepdim), x), target)
    assert node.args[0].meta["val"].dim() == 1


def test_an_index_within_a_dimension_stays_as_it_is() -> None:
    x = torch.randn(7, 13, device="musa").t()
    [node] = calls(passed(lambda x: x.argmax(1), x), aten.argmax.default)
    assert node.args[0].meta["val"].dim() == 2


def test_the_compiled_index_is_that_of_eager_mode(compiler: None) -> None:
    x = torch.randn(7, 13, device="musa")

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.t().argmax(), (x * 2).t().argmin(), x.view(7, 13, 1).permute(2, 1, 0).argmax()

    for given in (x, x.t().contiguous().t()):
        assert [index.item() for index in torch.compile(program)(given)] == [
            index.item() for index in program(given)
        ]


@pytest.mark.parametrize("dims", [[-1], [0], [0, 2]])
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("keepdim", [False, True])
def test_variances_of_few_elements_take_two_steps(dims: list[int], correction: int, keepdim: bool) -> None:
    needs_torch("2.13", "config.cpp.use_two_step_variance_threshold")
    x = torch.randn(5, 6, 7, device="musa")
    graph_module = passed(lambda x: torch.var_mean(x, dims, correction=correction, keepdim=keepdim), x)
    assert not calls(graph_module, aten.var_mean.correction)


@pytest.mark.parametrize(
    ("shape", "correction"), [((3, 1500), 1), ((5, 1), 1), ((5, 2), 3)], ids=["many", "one", "corrected"]
)
def test_other_variances_stay_as_they_are(shape: tuple[int, int], correction: int) -> None:
    x = torch.randn(shape, device="musa")
    graph_module = make_fx(lambda x: torch.var_mean(x, [-1], correction=correction), tracing_mode="fake")(x)
    from musa_compile import graph_passes

    graph_passes.prepare(graph_module)
    assert len(calls(graph_module, aten.var_mean.correction)) == 1


def test_a_costly_result_of_several_users_is_kept() -> None:
    x = torch.randn(4, 9, device="musa")

    def program(x: torch.Tensor) -> torch.Tensor:
        scaled = x.exp() * 2
        return scaled / scaled.sum(-1, keepdim=True)

    [node] = calls(passed(program, x), torch.ops.musa_compile.realized.default)
    assert node.args[0].target is aten.mul.Tensor and len(node.users) == 2


@pytest.mark.parametrize(
    "program",
    [lambda x: x.exp() * 2, lambda x: (x + 1) * (x + 1).sum(), lambda x: (x * 3) / (x * 3).sum()],
    ids=["one user", "cheap", "cheap and shared"],
)
def test_other_results_are_not_kept(program: Callable) -> None:
    x = torch.randn(4, 9, device="musa")
    assert not calls(passed(program, x), torch.ops.musa_compile.realized.default)


def in_channels_last(node: torch.fx.Node, count: int) -> list[bool]:
    """Whether each of the first `count` operands is stored so."""
    values = [operand.meta["val"] for operand in node.args[:count]]
    return [value.is_contiguous(memory_format=torch.channels_last) for value in values]


def test_operands_of_convolutions_over_two_dimensions_are_in_channels_last() -> None:
    x, weight = torch.randn(2, 3, 8, 8, device="musa"), torch.randn(4, 3, 3, 3, device="musa")
    graph_module = passed(lambda x, weight: torch.conv2d(x, weight, padding=1), x, weight)
    [node] = calls(graph_module, aten.convolution.default)
    assert in_channels_last(node, 2) == [True, True]

    def backward(gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
        options = ([4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
        return aten.convolution_backward(gradient, x, weight, *options)

    graph_module = passed(backward, torch.randn(2, 4, 8, 8, device="musa"), x, weight)
    [node] = calls(graph_module, aten.convolution_backward.default)
    assert in_channels_last(node, 3) == [True, True, True]


def test_other_convolutions_stay_as_they_are() -> None:
    from torch._inductor import inductor_prims

    x, weight = torch.randn(2, 3, 8, device="musa"), torch.randn(4, 3, 3, device="musa")
    graph_module = passed(lambda x, weight: torch.conv1d(x, weight), x, weight)
    assert not calls(graph_module, inductor_prims.force_stride_order)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
def test_a_compiled_network_has_the_layouts_of_eager_mode(
    compiler: None, memory_format: torch.memory_format
) -> None:
    """Only results within a graph are in channels_last."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 4, 3)
    ).to("musa")
    results = []
    for program in (network, torch.compile(network, fullgraph=True)):
        x = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(1)).to("musa")
        x = x.contiguous(memory_format=memory_format).requires_grad_()
        network.zero_grad()
        out = program(x)
        out.square().mean().backward()
        results.append([out, x.grad, *(parameter.grad for parameter in network.parameters())])
    eager, compiled = results
    torch.testing.assert_close(compiled[0], eager[0], check_stride=True)
    torch.testing.assert_close(compiled[1:], eager[1:])


def accumulated(index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return torch.zeros(5, 9, device=index.device).scatter_add(1, index, source)


@pytest.mark.parametrize("threads", [1, 2])
def test_sums_over_indices_are_calls_if_kernels_use_several_threads(threads: int) -> None:
    from torch._inductor import config

    index, source = torch.randint(9, (7, 5), device="musa").t(), torch.randn(7, 5, device="musa").t()
    with config.patch({"cpp.threads": threads, "cpp.dynamic_threads": False}):
        graph_module = passed(accumulated, index, source)
    called = calls(graph_module, torch.ops.musa_compile.scatter_add_.default)
    kept = calls(graph_module, aten.scatter_add.default)
    assert (len(called), len(kept)) == ((1, 0) if threads > 1 else (0, 1))
    assert all(operand.meta["val"].is_contiguous() for node in called for operand in node.args[2:])


def test_code_in_cpp_adds_in_a_loop() -> None:
    from torch._inductor import config

    index, source = torch.randint(9, (5, 7), device="musa"), torch.randn(5, 7, device="musa")
    with config.patch({"cpp_wrapper": True, "cpp.threads": 2}):
        assert calls(passed(accumulated, index, source), aten.scatter_add.default)


@pytest.mark.host_addressable("the pass is one before C++ kernels")
def test_compiled_sums_over_indices_are_those_of_eager_mode(compiler: None) -> None:
    from torch._inductor import config

    def program(index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return accumulated(index, source.exp()) * 2 + accumulated(index, source)

    before = torch.musa.ops.explain("aten::scatter_add_")["calls"]
    with config.patch({"cpp.threads": 2}):
        compiled = torch.compile(program, fullgraph=True)
        index, source = torch.randint(9, (7, 5), device="musa").t(), torch.randn(7, 5, device="musa").t()
        for _ in range(2):
            torch.testing.assert_close(compiled(index, source), program(index, source))
    assert torch.musa.ops.explain("aten::scatter_add_")["calls"] - before == 4


@pytest.mark.host_addressable("the pass is one before C++ kernels")
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format], ids=str)
@pytest.mark.parametrize(
    "window", [(2,), (3, 2, 1, 1, True), ((3, 2), (2, 1), (1, 0), (1, 2))], ids=["square", "ceil", "dilated"]
)
def test_the_gradient_of_max_pooling_in_channels_last_is_a_call(
    compiler: None, window: tuple, memory_format: torch.memory_format
) -> None:
    from torch._inductor.utils import run_fw_bw_and_get_code

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x.relu(), *window).square().sum()

    x = torch.randn(3, 5, 10, 11).contiguous(memory_format=memory_format).to("musa")
    eager, compiled = (x.clone().requires_grad_() for _ in range(2))
    program(eager).backward()
    _, codes = run_fw_bw_and_get_code(lambda: torch.compile(program, fullgraph=True)(compiled))
    torch.testing.assert_close(compiled.grad, eager.grad)
    assert compiled.grad.stride() == eager.grad.stride()
    called = any("max_pool2d_backward.default" in code for code in codes)
    if memory_format == torch.channels_last:
        needs_torch("2.13", "the gradient of max pooling as additions, in place of which the call is,")
        assert called
    else:
        assert not called


def test_a_gradient_of_max_pooling_that_is_a_result_keeps_its_strides(compiler: None) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(x, 2).sum()

    x = torch.randn(2, 3, 8, 8, device="musa").contiguous(memory_format=torch.channels_last)
    eager, compiled = (x.clone().requires_grad_() for _ in range(2))
    program(eager).backward()
    torch.compile(program, fullgraph=True)(compiled).backward()
    assert torch.equal(compiled.grad, eager.grad)
    assert compiled.grad.stride() == eager.grad.stride()


def test_graphs_of_host_tensors_stay_as_they_are() -> None:
    x = torch.randn(7, 13).t()
    graph_module = passed(lambda x: (x.argmax(), torch.var_mean(x, [-1])[0], x.exp() / x.exp().sum()), x)
    assert calls(graph_module, aten.var_mean.correction)
    assert calls(graph_module, aten.argmax.default)[0].args[0].meta["val"].dim() == 2
