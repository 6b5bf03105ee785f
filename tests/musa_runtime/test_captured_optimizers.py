# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An optimizer that keeps its step count on the host raises in a capture, as with torch.cuda; with
capturable=True, replays train as eager steps do."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import optim

CLASSES = sorted(
    (
        value
        for value in vars(optim).values()
        if isinstance(value, type) and issubclass(value, optim.Optimizer) and value is not optim.Optimizer
    ),
    key=lambda each: each.__name__,
)
CAPTURABLE = [each for each in CLASSES if "capturable" in inspect.signature(each.__init__).parameters]
# Their step reads no value on the host if lr_decay is 0.
WITHOUT_THE_OPTION = [optim.SGD, optim.Adagrad]


def parameter():
    weight = torch.nn.Parameter(torch.linspace(1, 2, 8, device="musa"))
    weight.grad = torch.linspace(-1, 1, 8, device="musa")
    return weight


def captured_step(musa, optimizer, stream, graph):
    with musa.graph(graph, stream=stream):
        optimizer.step()


def steps(optimizer, stream, count):
    with torch.musa.stream(stream):
        for _ in range(count):
            optimizer.step()


def test_the_list_of_optimizers_is_complete():
    assert len(CAPTURABLE) >= 9
    assert optim.Adam in CAPTURABLE
    assert optim.SGD not in CAPTURABLE


@pytest.mark.parametrize("kind", CAPTURABLE, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("foreach", [False, True])
def test_a_capture_without_capturable_raises(musa, kind, foreach):
    weight, stream, graph = parameter(), musa.Stream(), musa.MUSAGraph()
    optimizer = kind([weight], lr=0.1, foreach=foreach)
    stream.wait_stream(musa.current_stream())
    steps(optimizer, stream, 2)
    musa.synchronize()
    before = weight.detach().clone()
    message = rf"graph capture of step\(\) for an instance of {kind.__name__} but"
    with pytest.raises(RuntimeError, match=message):
        captured_step(musa, optimizer, stream, graph)
    assert torch.equal(weight, before)
    steps(optimizer, stream, 1)  # outside of a capture it goes on
    musa.synchronize()
    assert not torch.equal(weight, before)


@pytest.mark.parametrize("kind", CAPTURABLE + WITHOUT_THE_OPTION, ids=lambda kind: kind.__name__)
def test_replays_train_as_eager_steps(musa, kind):
    options = {"capturable": True} if kind in CAPTURABLE else {}
    eager, captured = parameter(), parameter()
    stream, graph = musa.Stream(), musa.MUSAGraph()
    stream.wait_stream(musa.current_stream())
    optimizers = [kind([weight], lr=0.1, foreach=False, **options) for weight in (eager, captured)]
    for optimizer in optimizers:
        steps(optimizer, stream, 2)
    captured_step(musa, optimizers[1], stream, graph)
    for _ in range(3):
        graph.replay()
        steps(optimizers[0], stream, 1)
    musa.synchronize()
    torch.testing.assert_close(captured, eager)


def test_one_group_without_the_option_is_enough(musa):
    first, second = parameter(), parameter()
    stream, graph = musa.Stream(), musa.MUSAGraph()
    groups = [{"params": [first]}, {"params": [second], "capturable": False}]
    optimizer = optim.AdamW(groups, lr=0.1, capturable=True)
    stream.wait_stream(musa.current_stream())
    steps(optimizer, stream, 2)
    with pytest.raises(RuntimeError, match="capturable is False"):
        captured_step(musa, optimizer, stream, graph)
