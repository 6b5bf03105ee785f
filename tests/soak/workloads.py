# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kinds of work, of random size. Each checks its results and releases all its resources."""

from __future__ import annotations

import copy
import io
import random
import threading

import torch
from torch import nn

from tests.soak.sharing import Echo

# Blocks of other sizes add gradients in another order, and the optimizer's steps propagate the difference.
CLOSE = {"rtol": 1e-3, "atol": 1e-4}


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


# -- training


class _Block(nn.Module):
    """Attention and a feed-forward net around a residual stream, (N, T, width)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.mix = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        n, t, width = x.shape
        parts = self.mix(self.norms[0](x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(n, t, width))
        return x + self.feed(self.norms[1](x))


# Models of a few random sizes: torch's CPU kernels cache objects for each shape (such as oneDNN's
# primitives), also for training on the CPU alone, so an unlimited number of shapes would look like a leak.


def _perceptron(chance: random.Random):
    features, hidden = chance.choice([3, 50, 200]), chance.choice([4, 77, 300])
    model = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, 3))
    return model, torch.randn(chance.choice([1, 7, 64]), features)


def _convolution(chance: random.Random):
    channels = chance.choice([4, 8, 16])
    model = nn.Sequential(
        nn.Conv2d(3, channels, 3, padding=1),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, stride=chance.choice([1, 2])),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 3),
    )
    side = chance.choice([12, 27, 40])
    return model, torch.randn(chance.choice([2, 5, 12]), 3, side, side)


def _transformer(chance: random.Random):
    heads = chance.choice([1, 2, 4])
    width = heads * chance.choice([8, 16])
    model = nn.Sequential(_Block(width, heads), _Block(width, heads), nn.Linear(width, 3))
    return model, torch.randn(chance.choice([1, 6]), chance.choice([2, 13, 40]), width)


def _train(model, inputs, kind: str, steps: int) -> list[float]:
    if kind == "SGD":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    else:
        # A large epsilon: with the usual one, the sign of a gradient near zero decides the step.
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def training(chance: random.Random, device: str, echo: Echo) -> None:
    """A few steps of a random model equal the same steps on the CPU."""
    model, inputs = chance.choice([_perceptron, _convolution, _transformer])(chance)
    kind, steps = chance.choice(["SGD", "AdamW"]), chance.randint(1, 5)
    there = copy.deepcopy(model).to(device)
    losses = _train(there, inputs.to(device), kind, steps)
    torch.testing.assert_close(losses, _train(model, inputs, kind, steps), **CLOSE)
    for mine, theirs in zip(model.state_dict().values(), there.state_dict().values()):
        torch.testing.assert_close(theirs.cpu(), mine, **CLOSE)


# -- streams, events, page-locked memory, devices


def streams(chance: random.Random, device: str, echo: Echo) -> None:
    """A value passed from stream to stream by events; its memory is freed while other streams still read
    it."""
    ring = [torch.musa.Stream(priority=chance.choice([0, -1])) for _ in range(chance.randint(2, 5))]
    size, hops = chance.randint(1, 300_000), chance.randint(3, 20)
    done = torch.musa.Event()
    value = torch.zeros(size, device=device)
    done.record()
    for hop in range(hops):
        stream = ring[hop % len(ring)]
        stream.wait_event(done)
        with torch.musa.stream(stream):
            following = value + 1
            value.record_stream(stream)
            done = torch.musa.Event(enable_timing=chance.random() < 0.3)
            done.record(stream)
        del value
        if chance.random() < 0.5:  # likely gets the memory that was freed, if it was freed too early
            with torch.musa.stream(chance.choice(ring)):
                torch.full((size,), -1.0, device=device)
        value = following
        del following
    done.synchronize()
    _check(done.query(), "an event that was waited for has not finished")
    _check(
        bool(value.cpu().eq(hops).all()), f"{hops} hops left values between {value.min()} and {value.max()}"
    )


def pinned_copies(chance: random.Random, device: str, echo: Echo) -> None:
    """Page-locked memory, copied both ways on a side stream and freed while the copy is pending."""
    side = torch.musa.Stream()
    results, expected = [], []
    for _ in range(chance.randint(1, 6)):
        source = torch.randn(chance.randint(1, 100_000)).pin_memory()
        expected.append(source.clone())
        with torch.musa.stream(side):
            there = source.to(device, non_blocking=True)
            back = torch.empty_like(source, pin_memory=True)
            back.copy_(there * 2, non_blocking=True)
        del source, there
        results.append(back)
    side.synchronize()
    for got, wanted in zip(results, expected):
        _check(got.is_pinned(), "the buffer is not page-locked")
        _check(torch.equal(got, wanted * 2), "a copy changed its data")


def between_devices(chance: random.Random, device: str, echo: Echo) -> None:
    """The same data, to every device and back."""
    data = torch.randn(chance.randint(1, 200), chance.randint(1, 200))
    travelling = data.t() if chance.random() < 0.5 else data
    travelling = travelling.to(device)
    expected = travelling.cpu()
    for index in chance.sample(range(torch.musa.device_count()), torch.musa.device_count()):
        travelling = travelling.to(f"musa:{index}", non_blocking=chance.random() < 0.5) + 1
        expected = expected + 1
    _check(torch.equal(travelling.cpu(), expected), "data changed on its way between devices")


def threads(chance: random.Random, device: str, echo: Echo) -> None:
    """Python threads with streams of their own."""
    sizes = [chance.randint(1, 20_000) for _ in range(3)]
    wrong = []

    def work(size: int) -> None:
        with torch.musa.device(device), torch.musa.stream(torch.musa.Stream(device)):
            values = torch.arange(size, dtype=torch.float64, device=device)
            for _ in range(10):
                values = values * 2 - values
            if not torch.equal(values.cpu(), torch.arange(size, dtype=torch.float64)):
                wrong.append(size)

    running = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    _check(not wrong, f"threads computed wrong values for sizes {wrong}")


# -- graphs and processes


def graphs(chance: random.Random, device: str, echo: Echo) -> None:
    """A captured forward pass, replayed on new inputs, equals the CPU's."""
    model, example = chance.choice([_perceptron, _transformer])(chance)
    there = copy.deepcopy(model).to(device)
    static = example.to(device)
    with torch.no_grad():
        there(static)
        torch.musa.synchronize()
        graph = torch.musa.MUSAGraph()
        with torch.musa.graph(graph):
            result = there(static)
        for _ in range(chance.randint(1, 4)):
            example = torch.randn_like(example)
            static.copy_(example)
            graph.replay()
            torch.testing.assert_close(result.cpu(), model(example), **CLOSE)


def processes(chance: random.Random, device: str, echo: Echo) -> None:
    """Memory that a second process reads and changes."""
    if chance.random() < 0.03:
        echo.close()  # the next message goes to a new process
    sent = [
        torch.randn(chance.randint(1, 50_000), device=f"musa:{chance.randrange(torch.musa.device_count())}")
        for _ in range(chance.randint(1, 3))
    ]
    before = [tensor.cpu() for tensor in sent]
    sums = echo.add_one(sent)
    torch.testing.assert_close(
        sums, [tensor.double().sum().item() for tensor in before], rtol=1e-9, atol=1e-6
    )
    for tensor, was in zip(sent, before):
        _check(torch.equal(tensor.cpu(), was + 1), "the writes of the other process are not visible")


# -- data


class _Squares(torch.utils.data.Dataset):
    def __init__(self, count: int):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((8,), float(index)), index * index


def loader(chance: random.Random, device: str, echo: Echo) -> None:
    """A DataLoader with page-locked batches, sometimes with a worker process."""
    count = chance.randint(1, 200)
    batches = torch.utils.data.DataLoader(
        _Squares(count),
        batch_size=chance.randint(1, 32),
        pin_memory=True,
        num_workers=1 if chance.random() < 0.1 else 0,
    )
    total = torch.zeros((), dtype=torch.int64, device=device)
    for rows, squares in batches:
        rows, squares = rows.to(device, non_blocking=True), squares.to(device, non_blocking=True)
        _check(bool((rows[:, 0].square() == squares).all()), "a row and its square do not match")
        total += squares.sum()
    _check(total.item() == sum(i * i for i in range(count)), "rows were lost or repeated")


def checkpoints(chance: random.Random, device: str, echo: Echo) -> None:
    """A model with its optimizer, saved and loaded onto the device, trains on as without saving."""
    model, inputs = _perceptron(chance)
    there = model.to(device)
    optimizer = torch.optim.SGD(there.parameters(), lr=0.1, momentum=0.9)
    there(inputs.to(device)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": there.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    loaded = torch.load(file, map_location=chance.choice([device, "cpu"]))
    again = copy.deepcopy(there)
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.zero_()
    again.load_state_dict(loaded["model"])
    for one, other in zip(there.parameters(), again.parameters()):
        _check(torch.equal(one.cpu(), other.cpu()), "a parameter changed in a file")


def random_numbers(chance: random.Random, device: str, echo: Echo) -> None:
    """The generator's state, saved and restored, repeats the numbers."""
    state = torch.musa.get_rng_state(device)
    size = chance.randint(1, 100_000)

    def draw():
        return [
            torch.rand(size, device=device).cpu(),
            torch.randn(size, device=device).cpu(),
            torch.randint(9, (size,), device=device).cpu(),
        ]

    first = draw()
    torch.musa.set_rng_state(state, device)
    for one, other in zip(first, draw()):
        _check(torch.equal(one, other), "the same state gave other numbers")


# -- memory


def fragments(chance: random.Random, device: str, echo: Echo) -> None:
    """Tensors of all sizes, allocated and dropped in random order, keep their contents."""
    held = []
    for step in range(chance.randint(10, 120)):
        size = int(2 ** chance.uniform(0, 20))
        held.append((step, torch.full((size,), float(step), device=device)))
        while len(held) > 12 or (held and chance.random() < 0.4):
            value, tensor = held.pop(chance.randrange(len(held)))
            _check(bool(tensor.eq(value).all()), "an allocation was overwritten")


def out_of_memory(chance: random.Random, device: str, echo: Echo) -> None:
    """The device's memory is filled; existing tensors keep their values, and freed memory can be
    allocated."""
    keep = torch.arange(1000.0, device=device)
    chunk = chance.choice([7, 64, 150]) << 20
    held = []
    torch.musa.set_per_process_memory_fraction(chance.uniform(0.3, 0.6), device)
    try:
        for _ in range(1000):
            held.append(torch.empty(chunk, dtype=torch.uint8, device=device))
        raise AssertionError(f"{len(held)} chunks of {chunk} bytes never filled the device")
    except torch.OutOfMemoryError as error:
        _check("out of memory" in str(error).lower(), f"an unclear error: {error}")
    finally:
        count = len(held)
        held.clear()
        torch.musa.set_per_process_memory_fraction(1.0, device)
    _check(torch.equal(keep.cpu(), torch.arange(1000.0)), "running out of memory damaged a tensor")
    again = [torch.empty(chunk, dtype=torch.uint8, device=device) for _ in range(count)]
    _check(len(again) == count, "freed memory cannot be allocated again")


WORKLOADS = {
    work.__name__: work
    for work in (
        training,
        streams,
        pinned_copies,
        between_devices,
        threads,
        graphs,
        processes,
        loader,
        checkpoints,
        random_numbers,
        fragments,
        out_of_memory,
    )
}
