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


def test_graphs_of_host_tensors_stay_as_they_are() -> None:
    x = torch.randn(7, 13).t()
    graph_module = passed(lambda x: (x.argmax(), torch.var_mean(x, [-1])[0], x.exp() / x.exp().sum()), x)
    assert calls(graph_module, aten.var_mean.correction)
    assert calls(graph_module, aten.argmax.default)[0].args[0].meta["val"].dim() == 2
