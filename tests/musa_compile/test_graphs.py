# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`mode="reduce-overhead"`: a compiled function is captured on its third run and replayed from then on, and
its results stay valid. If it cannot be captured, it runs as before and logs the reason.
"""

from __future__ import annotations

import contextlib
import copy
import logging

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.harness.parts import sample
from tests.musa_compile.comparison import assert_same, scaled

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]


@pytest.fixture
def graphed(compiler, monkeypatch):
    """The GraphedCalls that the test creates, in order of compilation."""
    from musa_compile import graphs

    made = []
    initialize = graphs.GraphedCall.__init__

    def remember(self, *arguments, **keywords):
        initialize(self, *arguments, **keywords)
        made.append(self)

    monkeypatch.setattr(graphs.GraphedCall, "__init__", remember)
    yield made
    made.clear()


def reduce_overhead(function, **keywords):
    return torch.compile(function, mode="reduce-overhead", fullgraph=True, **keywords)


def captured(call) -> list[bool]:
    """For each set of symbolic sizes of a GraphedCall, whether it has a graph."""
    return [entry.graph is not None for entry in call.entries.values()]


@pytest.mark.inductor
def test_results_stay_valid_after_later_runs(graphed):
    compiled = reduce_overhead(scaled)
    inputs = [torch.randn(8, device="musa") for _ in range(6)]
    results = [compiled(x) for x in inputs]
    for x, result in zip(inputs, results):
        assert_same(result, scaled(x))
    [call] = graphed
    assert captured(call) == [True] and call.reason is None


@pytest.mark.inductor
def test_a_program_that_marks_its_steps_runs_as_before(graphed):
    compiled = reduce_overhead(scaled)
    for _ in range(5):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(8, device="musa")
        once = compiled(x)
        torch.compiler.cudagraph_mark_step_begin()
        assert_same(compiled(once.clone()), scaled(scaled(x)))
        assert_same(once, scaled(x))
    assert captured(graphed[0]) == [True]


@pytest.mark.inductor
def test_an_input_at_its_address_is_read_in_place(graphed):
    compiled = reduce_overhead(scaled)
    x = torch.randn(8, device="musa")
    for _ in range(5):
        x.copy_(torch.randn(8))
        assert_same(compiled(x), scaled(x))
    [call] = graphed
    [entry] = call.entries.values()
    assert entry.graph is not None and entry.copies == []
    # The input has another address after the capture: this run is not replayed, and the next capture copies
    # it.
    y = torch.randn(8, device="musa")
    assert_same(compiled(y), scaled(y))
    assert entry.graph is None
    assert_same(compiled(y), scaled(y))
    assert [at for at, _ in entry.copies] == [0]


class Addresses:
    """Tensors that keep their addresses, by name."""

    def __init__(self):
        self.kept = {}

    def __call__(self, name, size=4):
        if name not in self.kept:
            self.kept[name] = torch.ones(size, device="musa")
        return self.kept[name]


@pytest.fixture
def graphed_call():
    from musa_compile.graphs import GraphedCall

    return GraphedCall


def test_symbolic_sizes_have_a_graph_each(graphed_call):
    at = Addresses()
    call = graphed_call(lambda inputs: (inputs[1] * inputs[0],))
    for size in (3, 4, 3, 4, 3, 4, 3, 4):
        [result] = call([size, at(size, size)])
        assert_same(result, torch.full((size,), float(size)))
    assert captured(call) == [True, True]


def test_a_mutated_input_that_stays_is_written_by_the_graph(graphed_call):
    at = Addresses()

    def increment(inputs):
        inputs[0].add_(1)
        return (inputs[0] * 2,)

    call = graphed_call(increment, mutated=(0,))
    for run in range(6):
        [result] = call([at("x")])
        assert_same(at("x"), torch.full((4,), run + 2.0))
        assert_same(result, torch.full((4,), 2 * run + 4.0))
    assert captured(call) == [True] and call.reason is None


def test_an_input_that_is_returned_is_the_callers(graphed_call):
    at = Addresses()
    call = graphed_call(lambda inputs: (inputs[0], inputs[0] * 2, 7, None))
    for _ in range(5):
        x, double, number, nothing = call([at("x")])
        assert x is at("x") and (number, nothing) == (7, None)
        assert_same(double, x * 2)
    assert captured(call) == [True]


def _writes_what_moves(inputs):
    inputs[0].add_(1)
    return (inputs[0] * 2,)


def _waits_for_the_host(inputs):
    return (inputs[0] * inputs[0].sum().item(),)


@pytest.mark.parametrize(
    ("function", "mutated", "make_inputs", "reason"),
    [
        pytest.param(
            _writes_what_moves,
            (0,),
            lambda at: [torch.ones(4, device="musa")],
            "it writes to an input that is not always at the same address",
            id="mutated",
        ),
        pytest.param(
            lambda inputs: (inputs[0][1:],),
            (),
            lambda at: [at("x")],
            "an output is a view of an input",
            id="view",
        ),
        pytest.param(
            _waits_for_the_host, (), lambda at: [at("x")], "it cannot be captured", id="uncapturable"
        ),
    ],
)
def test_the_reason_for_running_without_graphs_is_logged_and_results_are_right(
    graphed_call, caplog, function, mutated, make_inputs, reason
):
    at = Addresses()
    call = graphed_call(function, mutated=mutated)
    kept = []  # makes new inputs have other addresses
    with caplog.at_level(logging.WARNING, logger="musa_compile.graphs"):
        for _ in range(5):
            inputs = make_inputs(at)
            [expected] = function([value.clone() for value in inputs])
            kept.append(inputs)
            [result] = call(list(inputs))
            assert_same(result, expected)
    assert call.reason.startswith(reason) and call.entries == {}
    assert [reason in record.getMessage() for record in caplog.records] == [True]


@torch.compiler.nested_compile_region
def _region(x):
    return x + torch.rand(8).to("musa", non_blocking=True)


# Programs that read or compute tensors in host memory, which a graph does not record.
ON_THE_HOST = {
    "random numbers": lambda x, s: x + torch.rand(8).to("musa", non_blocking=True),
    "operator": lambda x, s: x + torch.multinomial(torch.ones(8), 8).to("musa", non_blocking=True),
    "result": lambda x, s: (x + 1, torch.rand(8))[1],
    "both results": lambda x, s: (x + 1, torch.rand(8)),
    "region": lambda x, s: _region(x) * 2,
    "input": lambda x, s: x * 2 + s.to("musa", non_blocking=True),
    "number": lambda x, s: x * s[0],
}


@pytest.mark.inductor
@pytest.mark.parametrize("name", sample(ON_THE_HOST, len(ON_THE_HOST)))
def test_work_on_the_host_is_done_in_each_run(graphed, name):
    compiled = reduce_overhead(ON_THE_HOST[name])
    x, s, found = torch.ones(8, device="musa"), torch.ones(8), []
    for run in range(6):
        s.fill_(run)
        results = compiled(x, s)
        result = results[-1] if isinstance(results, tuple) else results
        found.append(tuple(result.tolist()))
    assert len(set(found)) == 6
    for call in graphed:
        assert call.reason == "it reads or computes tensors in host memory" and call.entries == {}


RANDOM = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "rand": lambda x: x + torch.rand(1024, device="musa"),
    "randn": lambda x: x + torch.randn_like(x),
    "bernoulli": lambda x: torch.bernoulli(x * 0.5),
    "multinomial": lambda x: torch.multinomial(x, 8),
    "normal": lambda x: x.clone().normal_(),
    "poisson": lambda x: torch.poisson(x * 1000),
    "randperm": lambda x: torch.randperm(64, device="musa"),
    "pooling": lambda x: F.fractional_max_pool2d(x.cumsum(0).view(1, 4, 16, 16), 2, output_size=7),
}


@pytest.mark.inductor
@pytest.mark.parametrize("provider", sample(["host", None], 2))
def test_each_replay_draws_other_numbers(graphed, provider):
    order = contextlib.nullcontext() if provider is None else torch.musa.ops.prefer("*", provider)
    x = torch.ones(1024, device="musa")
    with order:
        compiled = reduce_overhead(lambda x: [program(x) for program in RANDOM.values()])
        results = [[tuple(each.flatten().tolist()) for each in compiled(x)] for _ in range(7)]
    for name, found in zip(RANDOM, zip(*results)):
        assert len(set(found)) == 7, name
    assert [captured(call) for call in graphed] == [[True]]


def test_inputs_that_keep_moving_end_the_graphs(graphed_call, monkeypatch):
    from musa_compile import graphs

    at = Addresses()
    # Each input keeps its address until its own run, and is copied from the next capture on.
    count = graphs._MOVES + 2
    call = graphed_call(lambda inputs: (sum(inputs),))
    kept = []
    for moved in range(count):
        for _ in range(3):
            inputs = [at((n, n < moved), 4) for n in range(count)]
            kept.append(inputs)
            [result] = call(list(inputs))
            assert_same(result, torch.full((4,), float(count)))
    assert call.reason == "its inputs do not stay at their addresses"


def test_nothing_is_captured_within_another_capture(graphed_call):
    at = Addresses()
    call = graphed_call(lambda inputs: (inputs[0] * 2,))
    at("x")  # made before the capture, which would record it
    graph = torch.musa.MUSAGraph()
    with torch.musa.graph(graph):
        [result] = call([at("x")])
    at("x").fill_(3)
    graph.replay()
    assert_same(result, torch.full((4,), 6.0))
    assert call.entries == {}


@pytest.mark.full
@pytest.mark.inductor
def test_training_with_dropout_and_batch_norm(graphed):
    model = nn.Sequential(
        nn.Linear(32, 64), nn.Dropout(0.5), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 8)
    ).to("musa")
    compiled = reduce_overhead(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, target = torch.randn(64, 32, device="musa"), torch.randint(0, 8, (64,), device="musa")
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(compiled(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert len(set(losses)) == 40  # dropout draws other numbers in each replay
    assert model[2].num_batches_tracked.item() == 40
    forward, backward = graphed
    assert any(captured(forward)) and any(captured(backward))


@pytest.mark.full
@pytest.mark.inductor
def test_a_training_step_has_the_gradients_of_eager_mode(graphed):
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to("musa")
    reference = copy.deepcopy(model)
    compiled = reduce_overhead(model)
    for _ in range(6):
        x = torch.randn(5, 8, device="musa")
        for each, parameters in ((compiled, model), (reference, reference)):
            parameters.zero_grad()
            each(x).square().sum().backward()
        for parameter, wanted in zip(model.parameters(), reference.parameters()):
            assert_same(parameter.grad, wanted.grad)


@pytest.mark.full
@pytest.mark.inductor
def test_symbolic_sizes_of_compiled_functions(graphed):
    compiled = reduce_overhead(scaled, dynamic=True)
    inputs = {size: torch.randn(size, device="musa") for size in (5, 9)}
    for _ in range(5):
        for x in inputs.values():
            assert_same(compiled(x), scaled(x))
    [call] = graphed
    assert captured(call) == [True, True]
