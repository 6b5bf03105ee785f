# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Streams, events and devices in compiled functions: each is traced without a graph break, and work keeps its
order.
"""

from __future__ import annotations

import pytest
import torch

from tests.harness.skips import needs_torch
from tests.musa_compile.comparison import assert_same

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("musa", "compiler")]


def test_work_on_another_device_stays_there(backend, two_devices):
    def f(x):
        return torch.ones_like(x) + (x * 3).sum(0)

    x = torch.randn(4, 4, device="musa:1")
    before = two_devices.memory_allocated(0)
    result = torch.compile(f, backend=backend, fullgraph=True)(x)
    assert result.device == x.device
    assert_same(result, f(x.cpu()))
    assert two_devices.memory_allocated(0) == before


def test_another_device_is_another_compilation(backend, two_devices):
    def f(x):
        return x * 2 + torch.arange(4, device=x.device)

    compiled = torch.compile(f, backend=backend)
    for device in ("musa:0", "musa:1", "cpu"):
        x = torch.randn(4, device=device)
        result = compiled(x)
        assert result.device == x.device
        assert_same(result, f(x.cpu()))


@pytest.mark.parametrize("owner", ["musa", "accelerator"])
def test_the_current_stream(backend, owner):
    def f(x):
        getattr(torch, owner).current_stream().synchronize()
        return x + 1

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), torch.full((3,), 2.0))


def test_waits_between_streams(backend):
    side = torch.musa.Stream()

    def f(x):
        y = x + 1
        side.wait_stream(torch.musa.current_stream())
        with torch.musa.stream(side):
            z = y * 2
        torch.musa.current_stream().wait_stream(side)
        return z + 1

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend)(x), torch.full((3,), 5.0))


@pytest.mark.parametrize("kind", ["torch.musa.Stream", "torch.Stream"])
def test_a_stream_is_entered(backend, kind):
    side = torch.musa.Stream() if kind == "torch.musa.Stream" else torch.Stream("musa")

    def f(x):
        y = x + 1
        with torch.musa.stream(side) if kind == "torch.musa.Stream" else side:
            z = y * 2
        return z + 1

    x = torch.ones(3, device="musa")
    result = torch.compile(f, backend=backend, fullgraph=True)(x)
    side.synchronize()
    assert_same(result, torch.full((3,), 5.0))


@pytest.mark.compiled
def test_an_event_is_recorded_and_waited_for(backend):
    def f(x):
        event = torch.Event(device="musa")
        y = x + 1
        event.record()
        event.wait()
        return y * 2

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), torch.full((3,), 4.0))


def test_an_event_of_torch_musa_breaks_the_graph_and_works(backend):
    def f(x):
        event = torch.musa.Event()
        y = x + 1
        event.record()
        event.synchronize()
        return y * 2

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend)(x), torch.full((3,), 4.0))


@pytest.mark.parametrize("owner", ["musa", "accelerator"])
def test_synchronization(backend, owner):
    def f(x):
        y = x + 1
        getattr(torch, owner).synchronize()
        return y * 2

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), torch.full((3,), 4.0))


@pytest.mark.parametrize("context", ["torch.musa.device", "torch.accelerator.device_index"])
def test_the_current_device_is_chosen(backend, two_devices, context):
    needs_torch("2.13", "register_device_context_manager")
    choose = torch.musa.device if context == "torch.musa.device" else torch.accelerator.device_index

    def f(x):
        with choose(1):
            y = torch.ones(3, device="musa")
        return x + y.to("musa:0"), y

    x = torch.ones(3, device="musa")
    result, other = torch.compile(f, backend=backend, fullgraph=True)(x)
    assert other.device == torch.device("musa", 1)
    assert two_devices.current_device() == 0
    assert_same(result, torch.full((3,), 2.0))


def test_properties_of_devices_are_constants(backend):
    def f(x):
        if not torch.musa.is_available():
            return x
        processors = torch.musa.get_device_properties(0).multi_processor_count
        return x * torch.musa.device_count() * processors + torch.musa.current_device()

    x = torch.ones(3, device="musa")
    assert_same(torch.compile(f, backend=backend, fullgraph=True)(x), f(x))
