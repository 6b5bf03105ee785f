# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Translation by nn.Transformer with masks, padding and greedy decoding."""

import math

import torch
from torch import nn

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PAD, BOS, EOS, TOKENS, WIDTH = 0, 1, 2, 12, 16


class Positions(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        rates = torch.exp(-torch.arange(0, WIDTH, 2) * math.log(10000) / WIDTH)
        angles = torch.arange(size).reshape(size, 1) * rates
        table = torch.zeros(size, WIDTH)
        table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)
        self.register_buffer("table", table.unsqueeze(-2))

    def forward(self, tokens):
        return tokens + self.table[: tokens.size(0)]


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.transformer = nn.Transformer(WIDTH, 2, 1, 1, dim_feedforward=32, dropout=0.0)
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.positions = Positions()
        self.generator = nn.Linear(WIDTH, TOKENS)

    def embed(self, tokens):
        return self.positions(self.embedding(tokens.long()) * math.sqrt(WIDTH))

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[0], device=DEVICE)
        padding = (source == PAD).transpose(0, 1)
        hidden = self.transformer(
            self.embed(source),
            self.embed(target),
            None,
            mask,
            None,
            padding,
            (target == PAD).transpose(0, 1),
            padding,
            tgt_is_causal=True,
        )
        return self.generator(hidden)


torch.manual_seed(0)
model = Translator().to(DEVICE)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
source = torch.randint(3, TOKENS, (5, 8), device=DEVICE)
source[-1, ::2] = PAD
bounds = torch.full((1, 8), BOS, device=DEVICE), torch.full((1, 8), EOS, device=DEVICE)
target = torch.cat([bounds[0], source, bounds[1]])
losses = []
for _ in range(6):
    logits = model(source, target[:-1])
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, TOKENS), target[1:].reshape(-1))
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0]
model.eval()
decoded = torch.full((1, 1), BOS, dtype=torch.long, device=DEVICE)
with torch.no_grad():
    for _ in range(4):
        word = model(source[:, 1:2], decoded)[-1].argmax(dim=1)
        decoded = torch.cat([decoded, word.view(1, 1)])
assert decoded.shape == (5, 1) and decoded.is_cuda
print("done")
