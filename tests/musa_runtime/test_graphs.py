# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Graphs: a capture runs nothing, and a replay is bitwise equal to the eager calls."""

from __future__ import annotations

import copy
import gc
import itertools
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.harness.skips import needs_torch
from tests.harness.subprocesses import run_code


def capture(musa, work, graph=None, **options):
    graph = graph or musa.MUSAGraph()
    with musa.graph(graph, **options):
        result = work()
    return graph, result


def bits(tensor):
    return tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).tolist() if tensor.numel() else []


def assert_same_bits(value, expected):
    assert value.dtype == expected.dtype
    assert value.shape == expected.shape
    assert bits(value) == bits(expected)


# ---- capture and replay


def test_a_capture_runs_nothing_and_a_replay_runs_it(musa):
    x = torch.zeros(1000, device="musa")
    graph, _ = capture(musa, lambda: x.add_(1))
    assert x.cpu().eq(0).all()
    for times in (1, 2, 3):
        graph.replay()
        assert x.cpu().eq(times).all()


def test_a_replay_uses_the_current_values_of_the_static_input(musa):
    x = torch.zeros(64, 32, device="musa")
    weight = torch.randn(16, 32, device="musa")
    graph, y = capture(musa, lambda: torch.softmax(F.linear(x, weight).relu() * 2, 1))
    for _ in range(3):
        fresh = torch.randn(64, 32, device="musa")
        x.copy_(fresh)
        graph.replay()
        assert_same_bits(y, torch.softmax(F.linear(fresh, weight).relu() * 2, 1))


def test_results_have_the_shape_and_strides_of_the_eager_call(musa):
    x = torch.randn(4, 6, 8, device="musa")

    def work():
        return [
            x.t() if x.dim() == 2 else x.transpose(0, 2) + 1,
            x.sum(1),
            x.argmax(2),
            x > 0,
            x.sort(1),
            x[:, 1:3],
        ]

    _, captured = capture(musa, work)
    for value, expected in zip(
        torch.utils._pytree.tree_leaves(captured), torch.utils._pytree.tree_leaves(work())
    ):
        assert (value.shape, value.stride(), value.dtype) == (
            expected.shape,
            expected.stride(),
            expected.dtype,
        )


def test_views_made_in_a_capture_share_memory(musa):
    x = torch.zeros(10, device="musa")

    def work():
        view = x.view(2, 5)[1]
        view.add_(3)
        return view

    graph, view = capture(musa, work)
    assert view.data_ptr() == x[5:].data_ptr()
    graph.replay()
    assert x.cpu().tolist() == [0.0] * 5 + [3.0] * 5


def test_an_out_argument_is_resized_at_the_capture(musa):
    x = torch.arange(6.0, device="musa")
    out = torch.empty(0, device="musa")
    graph, _ = capture(musa, lambda: torch.mul(x, 2, out=out))
    assert out.shape == (6,)
    graph.replay()
    assert out.cpu().tolist() == [0, 2, 4, 6, 8, 10]


def test_two_results_of_one_size_are_not_swapped(musa):
    x = torch.randn(3, 7, device="musa")
    graph, (mantissa, exponent, largest, smallest) = capture(
        musa, lambda: (*torch.frexp(x), *torch.aminmax(x, dim=1))
    )
    graph.replay()
    expected = (*torch.frexp(x), *torch.aminmax(x, dim=1))
    for value, reference in zip((mantissa, exponent, largest, smallest), expected):
        assert_same_bits(value, reference)


def test_empty_tensors_and_cpu_scalars(musa):
    x = torch.ones(3, device="musa")
    graph, (empty, y) = capture(musa, lambda: (x[:0] * 2, x * torch.tensor(2.5)))
    graph.replay()
    assert empty.shape == (0,)
    assert y.cpu().tolist() == [2.5] * 3


def test_copies_conversions_and_fills_are_captured(musa):
    source = torch.arange(12.0, device="musa").view(3, 4)
    target = torch.zeros(4, 3, dtype=torch.int64, device="musa")

    def work():
        target.copy_(source.t())
        return (
            source.half(),
            torch.zeros(5, device="musa"),
            torch.full((2,), 7, device="musa"),
            source.clone(),
        )

    graph, (half, zeros, sevens, clone) = capture(musa, work)
    source.mul_(2)
    graph.replay()
    assert target.cpu().tolist() == source.t().long().cpu().tolist()
    assert torch.equal(half.cpu(), source.half().cpu())
    assert zeros.cpu().eq(0).all()
    assert sevens.cpu().tolist() == [7, 7]
    assert torch.equal(clone.cpu(), source.cpu())


def test_pinned_memory_takes_part_and_pageable_memory_is_refused(musa):
    x = torch.zeros(100, device="musa")
    incoming = torch.ones(100, pin_memory=True)
    outgoing = torch.zeros(100, pin_memory=True)

    def work():
        x.copy_(incoming, non_blocking=True)
        x.mul_(3)
        outgoing.copy_(x, non_blocking=True)

    graph, _ = capture(musa, work)
    assert outgoing.eq(0).all()
    incoming.fill_(2)
    graph.replay()
    musa.synchronize()
    assert outgoing.eq(6).all()
    with pytest.raises(RuntimeError, match="captured"):
        capture(musa, lambda: x.copy_(torch.ones(100)))
    assert (x + 1).cpu().eq(7).all()


# ---- memory


def test_memory_of_results_is_not_reused(musa):
    x = torch.ones(5000, device="musa")
    graph, y = capture(musa, lambda: (x + 1) * 2)
    for _ in range(20):
        noise = torch.full((5000,), -1.0, device="musa")
        graph.replay()
        assert y.cpu().eq(4).all()
        assert noise.cpu().eq(-1).all()


def test_a_pool_can_be_shared_and_is_released_with_its_last_graph(musa):
    musa.synchronize()
    musa.empty_cache()
    before = musa.memory_reserved()

    def use():
        x = torch.ones(1 << 20, device="musa")
        first, y = capture(musa, lambda: x + 1)
        second, z = capture(musa, lambda: y * 2, pool=first.pool())
        assert second.pool() == first.pool()
        first.replay()
        second.replay()
        assert z.cpu().eq(4).all()
        handle = musa.graph_pool_handle()
        third, w = capture(musa, lambda: x - 1, pool=handle)
        assert third.pool() == handle
        assert handle != first.pool()
        third.replay()
        assert w.cpu().eq(0).all()
        assert musa.memory_reserved() > before
        return first, second, third

    graphs = use()
    for graph in graphs:
        graph.reset()
    musa.synchronize()
    musa.empty_cache()
    assert musa.memory_reserved() == before


def test_a_graph_can_be_deleted_during_its_replay(musa):
    x = torch.zeros(1000, device="musa")
    graph, _ = capture(musa, lambda: x.add_(1).mul_(2))
    for _ in range(3):
        graph.replay()
    del graph
    gc.collect()
    assert x.cpu().eq(14).all()


def test_a_reset_graph_can_capture_again(musa):
    x = torch.zeros(10, device="musa")
    graph, _ = capture(musa, lambda: x.add_(1))
    with pytest.raises(RuntimeError, match="reset"), musa.graph(graph):
        pass
    graph.reset()
    with pytest.raises(RuntimeError, match="nothing to replay"):
        graph.replay()
    with musa.graph(graph):
        x.sub_(1)
    graph.replay()
    assert x.cpu().eq(-1).all()


# ---- work that cannot be captured


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("aten::nonzero", lambda x: x.nonzero()),
        ("aten::masked_select", lambda x: x.masked_select(x > 0)),
        ("aten::_unique2", lambda x: torch.unique(x)),
        ("item", lambda x: x.sum().item()),
        ("item", lambda x: bool(x[0] > 0)),
        ("aten::equal", lambda x: torch.equal(x, x + 1)),
        ("", lambda x: x.cpu()),
        ("", lambda x: torch.musa.synchronize()),
        ("sparse", lambda x: x.view(2, 5).to_sparse()),
    ],
)
def test_an_operator_that_cannot_be_captured_is_named_and_the_next_operation_works(musa, name, work):
    x = torch.ones(10, device="musa")
    with pytest.raises(RuntimeError, match="captur") as caught:
        capture(musa, lambda: work(x.add_(1)))
    assert name in str(caught.value)
    assert not musa.is_current_stream_capturing()
    assert (x + 1).cpu().eq(2).all()
    graph, _ = capture(musa, lambda: x.add_(1))
    graph.replay()
    assert x.cpu().eq(2).all()


def test_an_error_that_the_body_swallows_is_raised_at_the_end(musa):
    x = torch.ones(10, device="musa")

    def work():
        with pytest.raises(RuntimeError):
            x.nonzero()
        x.add_(1)

    # If nonzero is a device kernel, reading the number of its results is refused.
    with pytest.raises(RuntimeError, match=r"aten::nonzero|item"):
        capture(musa, work)
    assert x.cpu().eq(1).all()


def test_an_error_of_shapes_is_raised_at_the_capture(musa):
    x, y = torch.ones(3, device="musa"), torch.ones(4, device="musa")
    with pytest.raises(RuntimeError, match=r"size|dimension"):
        capture(musa, lambda: x.add_(y))
    with pytest.raises(RuntimeError, match=r"size|dimension"):
        capture(musa, lambda: x + y)


def test_a_body_that_raises_discards_the_capture(musa):
    x = torch.zeros(10, device="musa")
    graph = musa.MUSAGraph()
    with pytest.raises(KeyError), musa.graph(graph):
        x.add_(1)
        raise KeyError("from the body")
    with pytest.raises(RuntimeError, match="nothing to replay"):
        graph.replay()
    assert (x + 1).cpu().eq(1).all()


def test_the_default_stream_and_nested_captures_are_refused(musa):
    graph = musa.MUSAGraph()
    with pytest.raises(RuntimeError, match="default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match=r"capture_begin\(\) first"):
        graph.capture_end()
    x = torch.zeros(3, device="musa")
    inner = musa.MUSAGraph()

    def work():
        with pytest.raises(RuntimeError, match="another graph"):
            inner.capture_begin()
        x.add_(1)

    outer, _ = capture(musa, work)
    outer.replay()
    assert x.cpu().eq(1).all()
    with pytest.raises(ValueError, match="capture_error_mode"):
        capture(musa, lambda: x, capture_error_mode="strict")


def test_operands_on_two_devices_are_refused(two_devices):
    x, y = torch.ones(3, device="musa:0"), torch.ones(3, device="musa:1")
    with pytest.raises(RuntimeError, match="musa:1"):
        capture(two_devices, lambda: x.add_(y))


@pytest.mark.host_addressable("torch's own kernel captures in place; copies to the host are not captured")
def test_an_error_in_a_replay_is_raised_at_the_next_wait_and_the_graph_stays_usable(musa):
    table = torch.arange(5.0, device="musa")
    index = torch.tensor([1], device="musa")
    # torch's CPU kernel, which checks its indices; a device kernel would lose the device.
    with musa.ops.prefer("aten::index_select", "host"):
        graph, y = capture(musa, lambda: table.index_select(0, index) + 1)
    index.fill_(50)
    graph.replay()
    with pytest.raises(RuntimeError, match=r"(?s)replay.*aten::index_select"):
        musa.synchronize()
    index.fill_(3)
    graph.replay()
    musa.synchronize()
    assert y.cpu().tolist() == [4.0]


def test_an_empty_capture_warns(musa):
    with pytest.warns(UserWarning, match="empty"):
        graph, _ = capture(musa, lambda: None)
    graph.replay()


def test_other_threads_streams_run_as_usual_during_a_capture(musa):
    x, y = torch.zeros(10, device="musa"), torch.ones(10, device="musa")
    other = musa.Stream(priority=-1)  # no stream that a capture may use

    def work():
        x.add_(1)
        with musa.stream(other):
            y.mul_(5)
            assert not musa.is_current_stream_capturing()
        assert musa.is_current_stream_capturing()

    graph, _ = capture(musa, work, capture_error_mode="thread_local")
    other.synchronize()
    assert y.cpu().eq(5).all()
    assert x.cpu().eq(0).all()
    graph.replay()
    assert x.cpu().eq(1).all()


# ---- streams


def test_other_threads_copy_from_pinned_memory_during_a_capture(musa):
    """Like a DataLoader's thread; events of the memory that it frees are not queried during the capture."""
    static, other = torch.zeros(1000, device="musa"), torch.zeros(1000, device="musa")
    musa.synchronize()

    def copy_batches():
        with musa.stream(musa.Stream()):
            for value in range(6):
                other.copy_(torch.full((1000,), float(value), pin_memory=True), non_blocking=True)

    graph = musa.MUSAGraph()
    with ThreadPoolExecutor(1) as pool, musa.graph(graph):
        pool.submit(copy_batches).result()
        result = static + 1
    graph.replay()
    musa.synchronize()
    assert (result == 1).all()
    assert (other == 5).all()


def test_side_streams_join_the_capture(musa):
    x = torch.ones(1000, device="musa")
    side = musa.Stream()

    def work():
        a = x + 1
        side.wait_stream(musa.current_stream())
        with musa.stream(side):
            b = a * 3
            b.record_stream(musa.current_stream())
        c = a * 2
        musa.current_stream().wait_stream(side)
        return b + c

    graph, y = capture(musa, work)
    for value in (1, 4):
        x.fill_(value)
        graph.replay()
        assert y.cpu().eq((value + 1) * 5).all()


def test_a_side_stream_that_never_joins_is_an_error(musa):
    x = torch.ones(10, device="musa")
    side = musa.Stream()

    def work():
        side.wait_stream(musa.current_stream())
        with musa.stream(side):
            y = torch.empty_like(x)
            y.copy_(x)
        x.add_(1)

    with pytest.raises(RuntimeError, match=r"wait_stream"):
        capture(musa, work)
    assert x.cpu().eq(1).all()


def test_replays_follow_the_order_of_the_stream_they_are_launched_on(musa):
    x = torch.zeros(100, device="musa")
    graph, _ = capture(musa, lambda: x.add_(1))
    side = musa.Stream()
    side.wait_stream(musa.current_stream())
    with musa.stream(side):
        x.fill_(5)
        graph.replay()
        x.mul_(2)
        graph.replay()
    musa.current_stream().wait_stream(side)
    assert x.cpu().eq(13).all()


# ---- random numbers


def _draw():
    x = torch.empty(50, device="musa")
    return torch.cat(
        [x.uniform_().clone(), torch.randn(50, device="musa"), F.dropout(torch.ones(50, device="musa"), 0.4)]
    )


def test_replays_draw_what_eager_calls_would_draw(musa):
    graph, drawn = capture(musa, _draw)
    musa.manual_seed(7)
    expected = [_draw().cpu() for _ in range(3)]
    after = torch.rand(5, device="musa").cpu()
    musa.manual_seed(7)
    for each in expected:
        graph.replay()
        assert_same_bits(drawn, each)
    assert torch.equal(torch.rand(5, device="musa").cpu(), after)
    assert not torch.equal(expected[0], expected[1])


def draw_without_waits():
    """Replays of two graphs in quick succession, on two streams, each with a generator of its own besides."""
    musa, side = torch.musa, torch.musa.Stream()
    generators = [torch.Generator("musa").manual_seed(seed) for seed in (1, 2)]

    def work(generator):
        x = torch.empty(3, 50, device="musa")
        x[0].uniform_()
        x[1].bernoulli_(0.4, generator=generator)
        x[2].random_()
        return F.dropout(x, 0.4)

    graphs = []
    for generator in generators:
        graph = musa.MUSAGraph()
        graph.register_generator_state(generator)
        graphs.append(capture(musa, lambda drawn_from=generator: work(drawn_from), graph=graph))
    order = [0, 0, 1, 0, 1, 1, 0, 1] * 2
    musa.manual_seed(7)
    expected = [work(generators[which]).cpu() for which in order]
    for which, generator in enumerate(generators):
        generator.manual_seed(which + 1)
    musa.manual_seed(7)
    drawn = []
    streams = itertools.cycle((musa.current_stream(), musa.current_stream(), side))
    last = musa.current_stream()
    for which, stream in zip(order, streams):
        graph, result = graphs[which]
        stream.wait_stream(last)
        with musa.stream(stream):
            graph.replay()
            drawn.append(torch.empty_like(result).copy_(result))
        last = stream
    musa.synchronize()
    for value, each in zip(drawn, expected, strict=True):
        assert_same_bits(value, each)


def test_replays_in_quick_succession_draw_what_eager_calls_would_draw(musa):
    draw_without_waits()


@pytest.mark.once
def test_replays_that_run_later_keep_their_numbers(emulator):
    """In lazy mode, no replay runs before the last one is launched."""
    run_code(
        "import torch\nfrom tests.musa_runtime.test_graphs import draw_without_waits\ndraw_without_waits()",
        MUSA_EMULATOR_MODE="lazy",
    )


def test_a_capture_draws_nothing(musa):
    musa.manual_seed(3)
    before = musa.get_rng_state()
    capture(musa, _draw)
    assert torch.equal(musa.get_rng_state(), before)


def test_another_generator_must_be_registered(musa):
    generator = torch.Generator(device="musa").manual_seed(11)

    def work():
        return torch.rand(20, device="musa", generator=generator)

    with pytest.raises(RuntimeError, match="register_generator_state"):
        capture(musa, work)
    graph = musa.MUSAGraph()
    graph.register_generator_state(generator)
    with musa.graph(graph):
        drawn = work()
    expected = [work().cpu() for _ in range(2)]
    generator.manual_seed(11)
    for each in expected:
        graph.replay()
        assert_same_bits(drawn, each)


def test_seeding_during_a_capture_is_an_error(musa):
    with pytest.raises(RuntimeError, match="captured"):
        capture(musa, lambda: musa.manual_seed(1))
    musa.manual_seed(1)
    assert torch.rand(3, device="musa").cpu().max() < 1


# ---- networks


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens)).mean(1))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Conv2d(8, 4, 3, bias=False),
        nn.GroupNorm(2, 4),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 10),
    )


def perceptron():
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(20, 20), nn.LayerNorm(20), nn.Tanh()) for _ in range(4)), nn.Linear(20, 10)
    )


NETWORKS = {
    "perceptron": (perceptron, lambda: torch.randn(6, 20)),
    "convolutional": (convolutional, lambda: torch.randn(6, 3, 10, 10)),
    "attention": (Attention, lambda: torch.randint(50, (6, 7))),
}
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, foreach=True),
    "sgd_loop": lambda p: torch.optim.SGD(p, lr=0.05, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01, device="musa"), capturable=True),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS)
def test_replayed_training_equals_eager_training_bit_for_bit(musa, network, optimizer):
    make, make_input = NETWORKS[network]
    model = make().to("musa")
    twin = copy.deepcopy(model)
    steps = OPTIMIZERS[optimizer]
    batches = [(make_input(), torch.randint(10, (6,))) for _ in range(8)]

    def step(net, opt, x, y):
        opt.zero_grad(set_to_none=True)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        return loss

    x, y = (value.to("musa") for value in batches[0])
    graphed_optimizer, eager_optimizer = steps(model.parameters()), steps(twin.parameters())
    musa.manual_seed(5)
    side = musa.Stream()
    side.wait_stream(musa.current_stream())
    with musa.stream(side):
        for _ in range(3):
            step(model, graphed_optimizer, x, y)
    musa.current_stream().wait_stream(side)
    # As at the start of training, the gradients are created in the capture, in the graph's pool.
    graphed_optimizer.zero_grad(set_to_none=True)
    state = [p.detach().clone() for p in model.parameters()]
    graph, loss = capture(musa, lambda: step(model, graphed_optimizer, x, y))
    for now, before in zip(model.parameters(), state):
        assert_same_bits(now, before)

    musa.manual_seed(5)
    for _ in range(3):
        step(twin, eager_optimizer, x, y)
    for inputs, targets in batches:
        # Both use one generator, so its state is saved and restored between them.
        state = musa.get_rng_state()
        x.copy_(inputs)
        y.copy_(targets)
        graph.replay()
        musa.set_rng_state(state)
        assert_same_bits(loss, step(twin, eager_optimizer, inputs.to("musa"), targets.to("musa")))
    for value, reference in zip(model.state_dict().values(), twin.state_dict().values()):
        assert_same_bits(value, reference)


def test_a_replay_computes_with_as_many_threads_as_its_capture(musa):
    threads = torch.get_num_threads()
    # Like a data loader's pinning thread; torch then uses that number for every new thread.
    pinning = threading.Thread(target=torch.set_num_threads, args=(1,))
    pinning.start()
    pinning.join()
    try:
        test_replayed_training_equals_eager_training_bit_for_bit(musa, "perceptron", "sgd")
    finally:
        torch.set_num_threads(threads)


# ---- torch.accelerator.Graph


def test_torch_accelerator_graph_captures_on_musa(musa):
    needs_torch("2.13", "torch.accelerator.Graph")
    x = torch.zeros(100, device="musa")
    graph = torch.accelerator.Graph()
    with torch.Stream(device="musa"), graph:
        x += 1
    assert x.cpu().eq(0).all()
    graph.replay()
    graph.replay()
    assert x.cpu().eq(2).all()
    assert graph.pool() != (0, 0)
    kept = torch.accelerator.Graph(keep_graph=True, pool=graph.pool(), capture_error_mode="thread_local")
    with torch.Stream(device="musa"), kept:
        x *= 3
    kept.instantiate()
    kept.replay()
    assert x.cpu().eq(6).all()
    kept.reset()
    graph.reset()


# ---- make_graphed_callables


def test_graphed_modules_train_like_their_source(musa):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to("musa")
    twin = copy.deepcopy(model)
    sample = torch.randn(5, 8, device="musa", requires_grad=True)
    graphed = musa.make_graphed_callables(model, (sample,))
    assert graphed is model
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (graphed, twin)]
    for _ in range(4):
        inputs = torch.randn(5, 8)
        results = []
        for net, optimizer in zip((graphed, twin), optimizers):
            x = inputs.to("musa").requires_grad_()
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
            results.append((loss.detach().clone(), x.grad.clone()))
        for value, reference in zip(*results):
            assert_same_bits(value, reference)
    for value, reference in zip(graphed.parameters(), twin.parameters()):
        assert_same_bits(value, reference)
    graphed.eval()
    twin.eval()
    x = torch.randn(3, 8, device="musa")  # another shape: evaluation is not graphed
    assert_same_bits(graphed(x), twin(x))


def test_several_graphed_functions_share_a_pool(musa):
    weight = torch.randn(6, 6, device="musa", requires_grad=True)

    def double(x):
        return {"out": x * 2, "sum": x.sum()}

    first, second = musa.make_graphed_callables(
        (double, lambda x: (x @ x.t()).tanh()),
        (
            (torch.randn(6, 6, device="musa", requires_grad=True),),
            (torch.randn(6, 6, device="musa", requires_grad=True),),
        ),
    )
    for _ in range(2):
        weight.grad = None
        second(first(weight)["out"]).sum().backward()
        gradient = weight.grad.clone()
        weight.grad = None
        (double(weight)["out"] @ double(weight)["out"].t()).tanh().sum().backward()
        assert_same_bits(gradient, weight.grad)


def test_graphed_callables_refuse_what_they_cannot_serve(musa):
    x = torch.randn(2, 3, device="musa")
    hooked = nn.Linear(3, 3).to("musa")
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="hooks"):
        musa.make_graphed_callables(hooked, (x,))
    with pytest.raises(RuntimeError, match="tensors only"):
        musa.make_graphed_callables(lambda a, b: a * b, (x, 2))
    graphed = musa.make_graphed_callables(lambda a: a * 2, (x,))
    with pytest.raises(RuntimeError, match="another graphed callable"):
        graphed(torch.randn(4, 3, device="musa"))
    unused = torch.randn(2, 3, device="musa", requires_grad=True)
    used = torch.randn(2, 3, device="musa", requires_grad=True)
    with pytest.raises(RuntimeError, match="unused"):
        musa.make_graphed_callables(lambda a, b: a * 2, (used, unused))
    graphed = musa.make_graphed_callables(lambda a, b: a * 2, (used, unused), allow_unused_input=True)
    graphed(used, unused).sum().backward()
    assert used.grad.cpu().eq(2).all()
    assert unused.grad is None


# ---- inspecting a graph


def test_a_graph_can_be_dumped(musa, tmp_path):
    x, y = torch.ones(100, device="musa"), torch.zeros(100, device="musa")

    def work():
        x.add_(1).mul_(2)
        y.copy_(x)
        y.sub_(1)

    graph = musa.MUSAGraph()
    graph.enable_debug_mode()
    with musa.graph(graph):
        work()
    graph.debug_dump(tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text.startswith("digraph")
    # Two runs of native calls with a copy between them, and the node that ends a replay.
    assert len(re.findall("->", text)) == 3
    graph.replay()
    assert y.cpu().eq(3).all()
    plain, _ = capture(musa, work)
    with pytest.raises(RuntimeError, match="enable_debug_mode"):
        plain.debug_dump(tmp_path / "other.dot")
    kept = musa.MUSAGraph(keep_graph=True)
    with musa.graph(kept):
        work()
    assert kept.raw_musa_graph() != 0
    with pytest.raises(RuntimeError, match="instantiate"):
        kept.raw_musa_graph_exec()
    kept.replay()
    assert kept.raw_musa_graph_exec() != 0
