# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measures `torch.compile` on the device, against the compiled baseline and against eager mode.

The first ratio is the device's overhead for a compiled program, the second the gain of compiling. Programs
that gain less than a fifth on the baseline have no second row.
"""

import copy
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from .measure import Effort, Pair, Row, in_own_process, interleaved

BAR = 1.05
GAIN = 0.8  # of eager mode's time, if the baseline gains so much
GRAPHED = 0.5  # of eager mode's time, for launch-bound programs


class Attention(nn.Module):
    """A transformer block: `norm` before attention and before the feed-forward part."""

    def __init__(self, width: int, heads: int, norm: type[nn.Module], feed_forward: nn.Module) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed_forward = norm(width), norm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_forward = feed_forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.project(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed_forward(self.before_feed_forward(x))


class SwiGLU(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        convolutions = [nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2)]
        norms = [nn.BatchNorm2d(channels) for _ in range(2)]
        self.branch = nn.Sequential(convolutions[0], norms[0], nn.ReLU(), convolutions[1], norms[1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.branch(x))


def chain(x: torch.Tensor) -> torch.Tensor:
    return ((x * 2 + 1).sigmoid() * x.tanh() - x.abs().sqrt()).relu()


def norm_and_gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, x.shape[-1:])) * x


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10))


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )


def gpt_block() -> nn.Module:
    feed_forward = nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128))
    return Attention(128, 4, nn.LayerNorm, feed_forward)


def llama_block() -> nn.Module:
    return Attention(128, 4, nn.RMSNorm, SwiGLU(128))


def inference(program: Callable, x: torch.Tensor, compiled: Callable) -> Callable:
    call = compiled(program)

    def run():
        with torch.no_grad():
            return call(x)

    return run


def training(model: nn.Module, x: torch.Tensor, compiled: Callable) -> Callable:
    call = compiled(model)
    parameters = list(model.parameters())

    def step():
        for parameter in parameters:
            parameter.grad = None
        loss = call(x).square().mean()
        loss.backward()
        return loss.detach(), *(parameter.grad for parameter in parameters)

    return step


def adamw(model: nn.Module, x: torch.Tensor, compiled: Callable) -> Callable:
    """Steps of the optimizer with constant gradients."""
    model(x).square().mean().backward()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    # torch's wrapper of the function breaks the graph before it.
    call = compiled(optimizer.step, fullgraph=False)

    def step():
        call()
        return parameters

    return step


@dataclass(frozen=True)
class Case:
    """A program: `make` returns a function or a module, `shape` is the shape of its input, `side` returns a
    function that runs the program once.
    """

    name: str
    make: Callable[[], Callable]
    shape: tuple[int, ...]
    side: Callable = inference


CASES = [
    Case("pointwise chain", lambda: chain, (1024, 1024)),
    Case("softmax", lambda: lambda x: x.softmax(-1), (512, 2048)),
    Case("layer norm and GELU", lambda: norm_and_gelu, (256, 1024)),
    *(
        Case(f"{name}, {side.__name__}", make, shape, side)
        for name, make, shape in (
            ("perceptron", perceptron, (32, 64)),
            ("convolutions", convolutional, (16, 3, 32, 32)),
            ("residual blocks", lambda: nn.Sequential(Residual(32), Residual(32)), (8, 32, 28, 28)),
            ("GPT block", gpt_block, (4, 64, 128)),
            ("Llama block", llama_block, (4, 64, 128)),
        )
        for side in (inference, training)
    ),
    Case("AdamW step of a GPT block", gpt_block, (4, 64, 128), adamw),
]
QUICK = ("softmax", "perceptron, training", "AdamW step of a GPT block")
PROCESSES = 3  # for each program: the ratio differs between processes by up to 4 %


def side(
    case: Case, program: Callable, x: torch.Tensor, device: torch.device, compiled: Callable
) -> Callable:
    own = copy.deepcopy(program).to(device) if isinstance(program, nn.Module) else program
    return case.side(own, x.to(device), compiled)


def eagerly(program: Callable, **_options) -> Callable:
    return program


def check(name: str, results: list) -> None:
    """Raises if a side's result differs from the first."""
    first, *others = (
        [value.cpu() for value in ([result] if isinstance(result, torch.Tensor) else result)]
        for result in results
    )
    for other in others:
        for value, expected in zip(other, first, strict=True):
            if not torch.allclose(value, expected, rtol=1e-2, atol=1e-3):
                raise RuntimeError(f"{name}: compiled and eager results differ; the time is meaningless")


def pairs(name: str, device: torch.device, baseline: torch.device, effort: Effort) -> tuple[Pair, ...]:
    """Measures a program: the compiled device against the compiled baseline, and each against eager mode."""
    [case] = [case for case in CASES if case.name == name]
    torch.manual_seed(0)
    program, x = case.make(), torch.randn(case.shape)
    places = (device, baseline)
    eager, eager_baseline = (side(case, program, x, place, eagerly) for place in places)
    compiled, compiled_baseline = (
        side(case, program, x, place, partial(torch.compile, fullgraph=True)) for place in places
    )
    check(case.name, [run() for run in (eager_baseline, eager, compiled_baseline, compiled)])
    return (
        interleaved(compiled, device, compiled_baseline, baseline, effort),
        interleaved(compiled, device, eager, device, effort),
        interleaved(compiled_baseline, baseline, eager_baseline, baseline, effort),
    )


def median(measured: tuple[Pair, ...]) -> Pair:
    """Returns the medians of one pair per process; the spread is that of the processes."""
    ratios = [pair.ratio for pair in measured]
    return Pair(
        statistics.median(pair.value for pair in measured),
        statistics.median(pair.baseline for pair in measured),
        statistics.median(ratios),
        (min(ratios), max(ratios)),
    )


def measure(
    case: Case, device: torch.device, baseline: torch.device, effort: Effort, processes: int
) -> Iterator[Row]:
    runs = [in_own_process(pairs, case.name, device, baseline, effort) for _ in range(processes)]
    overhead, gain, baseline_gain = (median(measured) for measured in zip(*runs))
    yield _row("compiled / compiled on the baseline", case.name, overhead, BAR)
    if baseline_gain.ratio <= GAIN:
        yield _row("compiled / eager", case.name, gain, max(GAIN, BAR * baseline_gain.ratio))


def measure_graphed(device: torch.device, effort: Effort) -> Row:
    torch._dynamo.reset()
    layers = (nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16), nn.ReLU()) for _ in range(20))
    case = Case("20 small layers", lambda: nn.Sequential(*layers), (8, 16))
    program, x = case.make(), torch.randn(case.shape)
    eager = side(case, program, x, device, eagerly)
    graphed = side(case, program, x, device, partial(torch.compile, mode="reduce-overhead"))
    check(case.name, [eager(), *(graphed() for _ in range(4))])
    pair = interleaved(graphed, device, eager, device, effort)
    return _row("reduce-overhead / eager", case.name, pair, GRAPHED)


def _row(group: str, name: str, pair: Pair, bar: float) -> Row:
    return Row(
        group, name, pair.value * 1e3, pair.baseline * 1e3, "ms", bar, ratio=pair.ratio, spread=pair.spread
    )


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, quick: bool) -> Iterator[Row]:
    for case in CASES:
        if not quick or case.name in QUICK:
            yield from measure(case, device, baseline, effort, 1 if quick else PROCESSES)
    yield measure_graphed(device, effort)
