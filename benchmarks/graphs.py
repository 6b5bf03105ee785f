# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training steps as captured graphs, against the same steps in eager mode.

The models are launch-bound: their layers are so small that calling the operators takes longer than
computing them.
"""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from .measure import Effort, Row, interleaved, warm_up_for_capture

BAR = 0.5
LAYERS = 40
WIDTH = 16
BATCH = 8


def perceptron() -> nn.Module:
    layers = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.ReLU()) for _ in range(LAYERS))
    return nn.Sequential(*layers)


def sgd(parameters, device):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def adamw(parameters, device):
    return torch.optim.AdamW(parameters, lr=torch.tensor(1e-3, device=device), capturable=True)


OPTIMIZERS = {"SGD": sgd, "AdamW": adamw}


def step_on(device: torch.device, make_optimizer: Callable) -> tuple[Callable[[], torch.Tensor], nn.Module]:
    torch.manual_seed(0)
    model = perceptron().to(device)
    optimizer = make_optimizer(model.parameters(), device)
    x = torch.randn(BATCH, WIDTH).to(device)
    y = torch.randn(BATCH, WIDTH).to(device)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, model


def captured(step: Callable[[], torch.Tensor], module) -> tuple[Callable[[], None], torch.Tensor]:
    """Returns (replay, its loss). Runs the step three times before the capture."""
    warm_up_for_capture(step, module)
    graph = module.MUSAGraph()
    with module.graph(graph):
        loss = step()
    return graph.replay, loss


def measure(name: str, device: torch.device, effort: Effort) -> Row:
    eager, eager_model = step_on(device, OPTIMIZERS[name])
    work, model = step_on(device, OPTIMIZERS[name])
    for _ in range(3):
        eager()
    replay, loss = captured(work, torch.get_device_module(device))
    for _ in range(3):
        replay()
        if not torch.equal(loss.cpu(), eager().detach().cpu()):
            raise RuntimeError(f"{name}: the replay's loss differs from the eager step's; nothing to time")
    for value, expected in zip(model.parameters(), eager_model.parameters()):
        if not torch.equal(value.cpu(), expected.cpu()):
            raise RuntimeError(f"{name}: the replay's weights differ from the eager step's; nothing to time")
    pair = interleaved(replay, device, eager, device, effort)
    title = f"{LAYERS} layers of {WIDTH}, {name}"
    return Row(
        "graph replay / eager", title, pair.value * 1e3, pair.baseline * 1e3, "ms", BAR, spread=pair.spread
    )


def measure_all(device: torch.device, effort: Effort) -> Iterator[Row]:
    for name in OPTIMIZERS:
        yield measure(name, device, effort)
