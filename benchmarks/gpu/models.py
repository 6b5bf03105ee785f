# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""ResNet-50 and GPT-2 small in plain torch.nn: which works without torchvision and transformers."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """The residual block of ResNet-50: 1x1, 3x3 with the stride, 1x1."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """ResNet-50 for images of 224 x 224."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        )
        blocks: list[nn.Module] = []
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, stride if index == 0 else 1))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.pool(self.blocks(self.stem(x))).flatten(1))


class Block(nn.Module):
    """A transformer block with causal attention, norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """GPT-2 small without dropout; the head shares the embedding's weight."""

    def __init__(self, length: int = 1024, depth: int = 12, width: int = 768) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50257, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, width // 64) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.blocks(self.tokens(ids) + self.positions(places))
        return functional.linear(self.norm(x), self.tokens.weight)


class UNet(nn.Module):
    """A U-Net of three levels with batch norms, for images of a side that 4 divides."""

    def __init__(self, width: int) -> None:
        super().__init__()

        def block(inputs: int, outputs: int) -> nn.Sequential:
            layers: list[nn.Module] = []
            for first in (inputs, outputs):
                layers += [nn.Conv2d(first, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
            return nn.Sequential(*layers)

        self.down = nn.ModuleList([block(3, width), block(width, 2 * width), block(2 * width, 4 * width)])
        self.wider = nn.ModuleList(
            [nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)]
        )
        self.up = nn.ModuleList([block(4 * width, 2 * width), block(2 * width, width)])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for level, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for wider, block, skip in zip(self.wider, self.up, reversed(kept[:-1])):
            x = block(torch.cat((wider(x), skip), 1))
        return self.head(x)


class MambaBlock(nn.Module):
    """A selective state space in plain operators: a convolution, a gate, and a scan in a loop over time."""

    def __init__(self, width: int, states: int = 16) -> None:
        super().__init__()
        inner = 2 * width
        self.norm = nn.LayerNorm(width)
        self.inputs = nn.Linear(width, 2 * inner)
        self.mix = nn.Conv1d(inner, inner, 4, padding=3, groups=inner)
        self.select = nn.Linear(inner, 2 * states + 1)
        self.rate = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(inner, 1))
        self.skip = nn.Parameter(torch.ones(inner))
        self.outputs = nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length, states = x.shape[1], self.rate.shape[1]
        hidden, gate = self.inputs(self.norm(x)).chunk(2, -1)
        hidden = functional.silu(self.mix(hidden.mT)[..., :length].mT)
        step, into, out = self.select(hidden).float().split((1, states, states), -1)
        step = functional.softplus(step)
        decay = (-step[..., None] * self.rate.exp()).exp()
        update = (step * hidden)[..., None] * into[:, :, None]
        state, found = torch.zeros_like(update[:, 0]), []
        for when in range(length):
            state = decay[:, when] * state + update[:, when]
            found.append((state @ out[:, when, :, None])[..., 0])
        y = torch.stack(found, 1) + hidden * self.skip
        return x + self.outputs(y.to(gate.dtype) * functional.silu(gate))


class Mamba(nn.Module):
    """A language model of 1,000 tokens of Mamba blocks."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.blocks = nn.Sequential(*(MambaBlock(width) for _ in range(depth)))
        self.head = nn.Linear(width, 1000)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.tokens(ids)))
