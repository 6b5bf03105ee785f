# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Whole training steps: zero_grad, forward, backward, optimizer, with the data already on the device."""

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .measure import Effort, Row, in_own_process, interleaved
from .providers import served_by

BAR = 1.0
RECURRENT_BAR = 1.3
BATCH = 16
CLASSES = 10
VOCABULARY = 256
CONTEXT = 64
FEATURES = 64
STEPS = 35


def small_cnn() -> nn.Module:
    """Images (N, 3, 32, 32) to logits (N, 10)."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 8 * 8, CLASSES),
    )


def shortcut(channels_in: int, channels: int, stride: int) -> nn.Module:
    """Returns the shortcut of a residual block."""
    if stride == 1 and channels_in == channels:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut (He et al., Deep Residual Learning, 2015)."""

    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = shortcut(channels_in, channels, stride)

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def small_resnet() -> nn.Module:
    """Images (N, 3, 32, 32) to logits (N, 10), through three stages of two residual blocks."""
    stages = []
    for channels_in, channels, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2)):
        stages += [ResidualBlock(channels_in, channels, stride), ResidualBlock(channels, channels, 1)]
    stem = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 convolutions, with a shortcut (He et al., 2015)."""

    def __init__(self, channels_in: int, width: int, stride: int):
        super().__init__()
        channels = 4 * width
        self.conv1, self.norm1 = nn.Conv2d(channels_in, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, channels, 1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = shortcut(channels_in, channels, stride)

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


def resnet50() -> nn.Module:
    """Images (N, 3, H, W) to logits (N, 1000), with weights initialized as in He et al. (2015).

    Residual branches start with a small scale (0 in Goyal et al., Accurate, Large Minibatch SGD, 2017).
    With 1, gradients grow a thousandfold from the last layer to the first, and rounding determines the
    losses.
    """
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, padding=1),
    ]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(blocks):
            layers.append(Bottleneck(channels, width, stride if index == 0 else 1))
            channels = 4 * width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(module, Bottleneck):
            nn.init.constant_(module.norm3.weight, 0.2)
    return model


class Block(nn.Module):
    """Pre-norm transformer block with causal attention (Radford et al., GPT-2, 2019)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class SmallGPT(nn.Module):
    """Tokens (N, T) int64 to logits (N * T, vocabulary)."""

    def __init__(self, width: int = 128, heads: int = 4, layers: int = 2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(CONTEXT, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.blocks(self.tokens(tokens) + self.places(places))
        return self.head(self.norm(x)).flatten(0, 1)


class Recurrent(nn.Module):
    """Sequences (N, T, features) to logits (N, 10) from the last step of a recurrent layer."""

    def __init__(self, kind: Callable[..., nn.Module]):
        super().__init__()
        self.layer, self.head = kind(FEATURES, 128, batch_first=True), nn.Linear(128, CLASSES)

    def forward(self, x):
        return self.head(self.layer(x)[0][:, -1])


def lstm() -> nn.Module:
    return Recurrent(nn.LSTM)


def gru() -> nn.Module:
    return Recurrent(nn.GRU)


def sequences() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(BATCH, STEPS, FEATURES), torch.randint(CLASSES, (BATCH,))


def images() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(BATCH, 3, 32, 32), torch.randint(CLASSES, (BATCH,))


def text() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


@dataclass(frozen=True)
class Job:
    name: str
    model: Callable[[], nn.Module]
    data: Callable[[], tuple[torch.Tensor, torch.Tensor]]
    optimizer: Callable
    bar: float = BAR


JOBS = tuple(
    Job(f"{model_name}, {optimizer_name}", model, data, optimizer)
    for model_name, model, data in (
        ("small CNN", small_cnn, images),
        ("ResNet", small_resnet, images),
        ("GPT block", SmallGPT, text),
    )
    for optimizer_name, optimizer in (("SGD", sgd), ("AdamW", adamw))
) + tuple(
    Job(f"{name}, AdamW", model, sequences, adamw, RECURRENT_BAR)
    for name, model in (("LSTM", lstm), ("GRU", gru))
)


def stepper(
    model: nn.Module,
    job: Job,
    data: tuple[torch.Tensor, torch.Tensor],
    device: torch.device,
    region: Callable = contextlib.nullcontext,
):
    """Returns a function that runs one training step on ``device`` and returns its loss on the device.

    The forward pass and the loss are computed inside ``region()``.
    """
    model = copy.deepcopy(model).to(device)
    optimizer = job.optimizer(model.parameters())
    inputs, targets = (tensor.to(device) for tensor in data)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with region():
            loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def measure(job: Job, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    torch.manual_seed(0)
    model, data = job.model(), job.data()
    here, there = stepper(model, job, data, device), stepper(model, job, data, baseline)
    for index in range(3):
        value, expected = here().item(), there().item()
        # Rounding differences grow with each step; a wrong gradient exceeds the limit after one
        # step.
        if not abs(value - expected) <= 1e-3 * abs(expected):
            raise AssertionError(f"{job.name}: loss {value} in step {index + 1}, on the baseline {expected}")
    served = served_by(here, device)
    there()  # so that both sides have made equally many steps
    pair = interleaved(here, device, there, baseline, effort)
    times = (pair.value * 1e3, pair.baseline * 1e3)
    return Row(
        "training step", job.name, *times, "ms", job.bar, ratio=pair.ratio, spread=pair.spread, served=served
    )


def measure_alone(job: Job, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    return in_own_process(measure, job, device, baseline, effort)


def measure_all(device: torch.device, baseline: torch.device, effort: Effort, alone: bool) -> Iterator[Row]:
    for job in JOBS:
        yield (measure_alone if alone else measure)(job, device, baseline, effort)
