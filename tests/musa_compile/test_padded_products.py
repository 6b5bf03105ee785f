# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pass that pads the operands of matrix products, before Triton kernels are generated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.once

aten = torch.ops.aten
PRODUCTS = (aten.mm.default, aten.addmm.default, aten.bmm.default)
Node = torch.fx.Node


@pytest.fixture
def forced() -> Iterator[None]:
    """Without measurements."""
    from torch._inductor import config

    with config.patch(force_shape_pad=True):
        yield


def passed(program: Callable, *inputs: torch.Tensor, mode: str = "fake") -> torch.fx.GraphModule:
    """The graph of the program after the pass; its results equal the program's."""
    from musa_compile import padded_products

    graph_module = make_fx(program, tracing_mode=mode)(*inputs)
    padded_products.pad(graph_module.graph)
    graph_module.graph.lint()
    graph_module.recompile()
    torch.testing.assert_close(graph_module(*inputs), program(*inputs), equal_nan=True)
    return graph_module


def nodes(graph_module: torch.fx.GraphModule, *targets: object) -> list[Node]:
    return [node for node in graph_module.graph.nodes if node.target in targets]


def shapes(graph_module: torch.fx.GraphModule) -> list[list[int]]:
    """The shape of each operand of the graph's only product."""
    [product] = nodes(graph_module, *PRODUCTS)
    return [list(operand.meta["val"].shape) for operand in product.args]


def copies(graph_module: torch.fx.GraphModule) -> list[Node]:
    return nodes(graph_module, aten.constant_pad_nd.default)


def values(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to("musa", dtype)


@pytest.mark.parametrize(
    ("a", "b", "by_columns", "expected"),
    [
        ((6, 8), (8, 5), "", [[6, 8], [8, 8]]),  # rows of the result
        ((6, 7), (7, 8), "", [[6, 8], [8, 8]]),  # rows of `a`; `b` gets as many rows
        ((6, 7), (7, 8), "a", [[8, 7], [7, 8]]),
        ((6, 7), (7, 5), "b", [[6, 8], [8, 8]]),
        ((6, 7), (7, 5), "ab", [[8, 8], [8, 8]]),
        ((3, 6, 7), (3, 7, 5), "", [[3, 6, 8], [3, 8, 8]]),
        ((3, 6, 7), (3, 7, 5), "a", [[3, 8, 7], [3, 7, 8]]),
    ],
)
def test_operands_get_rows_of_16_bytes(
    forced: None, a: tuple[int, ...], b: tuple[int, ...], by_columns: str, expected: list[list[int]]
) -> None:
    operands = [values(*shape) for shape in (a, b)]
    for at, name in enumerate("ab"):
        if name in by_columns:
            operands[at] = operands[at].mT.contiguous().mT
    assert shapes(passed(torch.matmul, *operands)) == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_elements_of_two_bytes_get_rows_of_eight(forced: None, dtype: torch.dtype) -> None:
    graph_module = passed(torch.mm, values(8, 12, dtype=dtype), values(12, 8, dtype=dtype))
    assert shapes(graph_module) == [[8, 16], [16, 8]]


@pytest.mark.parametrize(
    ("bias", "expected"),
    [((5,), [8]), ((6, 5), [6, 8]), ((1, 5), [1, 8]), ((6, 1), [6, 1]), ((1,), [1])],
    ids=["row", "matrix", "one row", "one column", "number"],
)
def test_a_bias_gets_the_shape_of_the_product(
    forced: None, bias: tuple[int, ...], expected: list[int]
) -> None:
    def program(*operands: torch.Tensor) -> torch.Tensor:
        return torch.addmm(*operands, beta=0.5, alpha=2)

    graph_module = passed(program, values(*bias), values(6, 7), values(7, 5))
    assert shapes(graph_module) == [expected, [6, 8], [8, 8]]
    [product] = nodes(graph_module, *PRODUCTS)
    assert product.kwargs == {"beta": 0.5, "alpha": 2}


def test_a_bias_gets_rows_too(forced: None) -> None:
    graph_module = passed(torch.addmm, values(6, 5), values(7, 6).t(), values(7, 5))
    assert shapes(graph_module) == [[8, 8], [8, 7], [7, 8]]


@pytest.mark.parametrize(
    ("use", "is_copied"),
    [
        (lambda x: x, True),
        (lambda x: x.view(2, 15).t(), True),
        (lambda x: x.split([2, 3], 1)[0], True),
        (lambda x: x.as_strided((3, 5), (10, 1)) + 1, True),
        (lambda x: x.t().as_strided((3, 5), (10, 1)) + 1, True),
        (lambda x: x.t() + 1, False),
        (lambda x: x.split([2, 3], 1)[0] + 1, False),
    ],
    ids=["returned", "view", "part", "strides", "strides of a view", "read", "part read"],
)
def test_a_product_has_the_strides_of_eager_mode_where_they_count(
    forced: None, use: Callable, is_copied: bool
) -> None:
    a, b = values(6, 7), values(7, 5)
    graph_module = passed(lambda a, b: use(torch.mm(a, b)), a, b)
    assert bool(nodes(graph_module, aten.clone.default)) == is_copied
    assert graph_module(a, b).stride() == use(a @ b).stride()


def test_a_product_without_gaps_is_not_copied(forced: None) -> None:
    for a, b in ((values(6, 7), values(7, 8)), (values(7, 6).t(), values(7, 8))):
        graph_module = passed(torch.mm, a, b)
        assert copies(graph_module) and not nodes(graph_module, aten.clone.default)
    assert nodes(passed(torch.bmm, values(2, 7, 6).mT, values(2, 7, 8)), aten.clone.default)


def test_a_product_that_is_kept_for_the_gradient_is_not_copied(forced: None) -> None:
    from musa_compile import padded_products

    a, b = values(6, 7), values(7, 5)
    graph_module = make_fx(lambda a, b: (lambda x: (x.sum(), x))(torch.mm(a, b)), tracing_mode="fake")(a, b)
    [output] = graph_module.graph.find_nodes(op="output")
    output.meta["user_visible_output_idxs"] = [0]
    padded_products.pad(graph_module.graph)
    assert copies(graph_module) and not nodes(graph_module, aten.clone.default)


def test_values_that_are_not_finite_stay_where_they_are(forced: None) -> None:
    a = values(6, 7)
    a[2, 3], a[4, 1] = math.inf, math.nan
    b = values(7, 5)
    product = passed(torch.mm, a, b)(a, b)
    assert product[[0, 1, 3, 5]].isfinite().all() and not product[[2, 4]].isfinite().any()


def test_products_share_the_copy_of_an_operand(forced: None) -> None:
    """The gradients of a linear layer: one product reads the gradient, another one its transpose."""

    def gradients(gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple:
        return torch.mm(gradient, weight), torch.mm(gradient.permute(1, 0), x)

    graph_module = passed(gradients, values(8, 7), values(8, 12), values(7, 12))
    assert [node.args[0].name for node in copies(graph_module)] == ["gradient_1", "weight_1"]
    assert len(nodes(graph_module, *PRODUCTS)) == 2

    def batches(gradient: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple:
        return torch.bmm(gradient, weight), torch.bmm(gradient.permute(0, 2, 1), x)

    assert len(copies(passed(batches, values(2, 8, 7), values(2, 8, 12), values(2, 7, 12)))) == 2


def test_products_before_and_after_a_change_of_their_operand_share_no_copy(forced: None) -> None:
    with torch.library._scoped_library("test_padded_products", "FRAGMENT") as library:
        library.define("double(Tensor(a!) x) -> ()")
        library.impl("double", lambda x: [x.mul_(2)].clear(), "CompositeExplicitAutograd")

        def program(x: torch.Tensor, b: torch.Tensor) -> tuple:
            changed = x.clone()
            before = torch.mm(changed, b)
            torch.ops.test_padded_products.double(changed)
            return before, torch.mm(changed, b)

        graph_module = passed(program, values(6, 7), values(7, 8))
    operands = [node.args[0] for node in copies(graph_module)]
    assert any(operands.count(operand) == 2 for operand in operands)


@pytest.mark.parametrize(
    ("a", "b", "padded"),
    [
        ((8, 12), (12, 8), False),
        ((7, 8), (8, 8), False),  # no row has 7 elements
        ((8, 12), (12, 1), False),
        ((8, 0), (0, 5), False),
        ((8, 12), (12, 5), True),
    ],
    ids=["full rows", "few rows", "vector", "empty", "short rows"],
)
def test_other_products_stay_as_they_are(
    forced: None, a: tuple[int, int], b: tuple[int, int], padded: bool
) -> None:
    assert bool(copies(passed(torch.mm, values(*a), values(*b)))) == padded


def test_operands_of_unknown_strides_stay_as_they_are(forced: None) -> None:
    x = values(6, 20)
    strided = lambda x, b: torch.mm(x[:, :7], b)  # noqa: E731 - the size of a row of `x` is unknown
    assert not copies(passed(strided, x, values(7, 5), mode="symbolic"))


def test_new_nodes_name_the_code_that_they_are_from(forced: None) -> None:
    from musa_compile import padded_products

    graph_module = make_fx(torch.mm, tracing_mode="fake")(values(6, 7), values(7, 5))
    [product] = nodes(graph_module, *PRODUCTS)
    product.meta["stack_trace"], product.meta["original_aten"] = "a line of a program", aten.mm.default
    padded_products.pad(graph_module.graph)
    added = [node for node in graph_module.graph.nodes if node.op == "call_function"]
    assert len(added) == 5
    assert {node.meta.get("stack_trace") for node in added} == {"a line of a program"}


def test_other_dtypes_unknown_sizes_and_other_devices_stay_as_they_are(forced: None) -> None:
    a, b = values(6, 7), values(7, 5)
    assert not copies(passed(torch.mm, a.double(), b.double()))
    assert not copies(passed(torch.mm, a, b, mode="symbolic"))
    assert not copies(passed(torch.mm, a.cpu(), b.cpu()))


def test_the_settings_of_torch_apply(forced: None) -> None:
    from torch._inductor import config

    a, b = values(6, 7), values(7, 5)
    with config.patch(shape_padding=False):
        assert not copies(passed(torch.mm, a, b))
    with config.patch(deterministic=True):
        assert copies(passed(torch.mm, a, b))  # forced, so independent of times


class Clock:
    """Replaces the measurement of a product and of the padded one, in this order."""

    def __init__(self, *times_ms: float) -> None:
        self.times_ms = times_ms
        self.shapes: list[tuple[int, ...]] = []
        self.devices: set[int] = set()

    def __call__(self, _: object, function: Callable[[], torch.Tensor], **__: object) -> float:
        self.shapes.append(tuple(function().shape))
        self.devices.add(torch.musa.current_device())
        return self.times_ms[(len(self.shapes) - 1) % 2]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Clock]]:
    from musa_compile import padded_products, timing

    def set_times(*times_ms: float) -> Clock:
        clock = Clock(*times_ms)
        monkeypatch.setattr(timing, "measure", clock)
        padded_products._is_faster.cache_clear()
        return clock

    yield set_times
    padded_products._is_faster.cache_clear()


WIDE = (1024, 1024), (1024, 1025)  # more multiplications than the least


@pytest.mark.parametrize(("padded_ms", "expected"), [(1.0, True), (1.9, False), (3.0, False)])
def test_only_a_faster_product_is_padded(
    clock: Callable[..., Clock], padded_ms: float, expected: bool
) -> None:
    times = clock(2.0, padded_ms)
    a, b = (values(*shape) for shape in WIDE)
    state = torch.musa.get_rng_state()
    assert bool(copies(passed(torch.mm, a, b))) == expected
    assert times.shapes == [(1024, 1025)] * 2  # both results have the product's shape
    passed(torch.mm, a, b)
    assert len(times.shapes) == 2  # once for each kind of product
    assert torch.equal(torch.musa.get_rng_state(), state)


def test_a_decision_depends_on_the_precision(clock: Callable[..., Clock]) -> None:
    times = clock(2.0, 1.0)
    a, b = (values(*shape) for shape in WIDE)
    passed(torch.mm, a, b)
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        passed(torch.mm, a, b)
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert len(times.shapes) == 4


def test_a_product_is_measured_on_its_device(clock: Callable[..., Clock]) -> None:
    times = clock(2.0, 1.0)
    a, b = (values(*shape).to("musa:1") for shape in WIDE)
    passed(torch.mm, a, b)
    assert times.devices == {1} and torch.musa.current_device() == 0


def test_measured_operands_are_stored_as_in_the_graph() -> None:
    from musa_compile import padded_products

    for shape in ((7, 6), (2, 7, 6)):
        by_columns = values(*shape).mT
        padded = padded_products._pad_tensor(by_columns, 3, 1)
        assert padded.shape[-2:] == (9, 8) and padded.mT.is_contiguous()
        assert torch.equal(padded[..., :6, :7], by_columns) and not padded[..., 6:, :].any()


def test_small_products_and_deterministic_graphs_are_not_measured(clock: Callable[..., Clock]) -> None:
    from torch._inductor import config

    times = clock(2.0, 1.0)
    a, b = (values(*shape) for shape in WIDE)
    assert not copies(passed(torch.mm, a[:1000], b))
    with config.patch(deterministic=True):
        assert not copies(passed(torch.mm, a, b))
    assert not times.shapes


def test_a_product_too_large_to_measure_is_not_padded(
    clock: Callable[..., Clock], monkeypatch: pytest.MonkeyPatch
) -> None:
    from musa_compile import timing

    clock(2.0, 1.0)

    def fails(*_: object, **__: object) -> float:
        raise torch.OutOfMemoryError("no memory for copies")

    a, b = (values(*shape) for shape in WIDE)
    with monkeypatch.context() as patch:
        patch.setattr(timing, "measure", fails)
        assert not copies(passed(torch.mm, a, b))
    assert copies(passed(torch.mm, a, b))  # measured when there is memory


def test_products_are_measured_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    from musa_compile import padded_products, timing

    measure, measured_ms = timing.measure, []

    def noted(*arguments: object, **options: object) -> float:
        measured_ms.append(measure(*arguments, **options))
        return measured_ms[-1]

    monkeypatch.setattr(timing, "measure", noted)
    monkeypatch.setattr(padded_products, "_MIN_MULTIPLICATIONS", 1)
    padded_products._is_faster.cache_clear()
    passed(torch.addmm, values(5), values(60, 70), values(70, 5))
    assert len(measured_ms) == 2 and min(measured_ms) > 0
    padded_products._is_faster.cache_clear()
