# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Small programs for the tools of `torch_musa.debug`: a ResNet, a GPT, a training step."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, channels, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = nn.Conv2d(channels, out, 1, stride) if channels != out else nn.Identity()
        self.act = nn.ReLU()

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        return self.act(self.bn2(self.conv2(y)) + self.down(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer1, self.layer2 = Block(8, 8), Block(8, 16, 2)
        self.pool, self.drop, self.fc = nn.MaxPool2d(2), nn.Dropout(0.1), nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(self.drop(self.pool(self.layer2(self.layer1(self.stem(x)))).mean((2, 3))))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    """A small GPT. `reentrant`: the kind of checkpointing; None for no checkpointing."""

    def __init__(self, reentrant=None):
        super().__init__()
        self.reentrant = reentrant
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.layers = nn.ModuleList([Layer(32, 4), Layer(32, 4)])
        self.ln, self.head = nn.LayerNorm(32), nn.Linear(32, 10, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x) if self.reentrant is None else checkpoint(layer, x, use_reentrant=self.reentrant)
        return self.head(self.ln(x)).mean(1)


class Training:
    """A model with its optimizer and a batch. A call is a training step.

    amp: a dtype of autocast, with loss scaling for float16; None for no autocast.
    """

    def __init__(self, model, amp=None):
        torch.manual_seed(0)
        self.model, self.amp = model.to("musa"), amp
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-3)
        self.scaler = torch.amp.GradScaler("musa", enabled=amp == torch.float16)
        images = isinstance(getattr(model, "module", model), ResNet)
        self.x = (torch.randn(4, 3, 16, 16) if images else torch.randint(0, 50, (4, 16))).to("musa")
        self.y = torch.randint(0, 10, (4,)).to("musa")

    def __call__(self):
        self.optimizer.zero_grad()
        with torch.autocast("musa", dtype=self.amp or torch.float16, enabled=self.amp is not None):
            loss = F.cross_entropy(self.model(self.x).float(), self.y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()
