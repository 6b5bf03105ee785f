# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Programs of many small operators, whose time is mostly dispatch overhead."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from .measure import Effort, Row, interleaved
from .operators import check_same
from .providers import served_by
from .training import VOCABULARY, SmallGPT

BAR = 1.25
NODES, EDGES, FEATURES, CLASSES = 256, 1024, 32, 8


@dataclass(frozen=True)
class Program:
    """``make(device)`` returns a function of no arguments, whose result is compared between the devices."""

    name: str
    make: Callable[[torch.device], Callable[[], torch.Tensor]]


@torch.no_grad()
def generate(model: SmallGPT, tokens: torch.Tensor, count: int) -> torch.Tensor:
    """Appends the ``count`` most likely tokens to ``tokens`` (N, T) int64; caches keys and values."""
    caches: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * len(model.blocks)
    new, position = tokens, 0
    for _ in range(count):
        batch, length = new.shape
        places = torch.arange(position, position + length, device=new.device)
        x = model.tokens(new) + model.places(places)
        for index, block in enumerate(model.blocks):
            width = x.shape[-1]
            qkv = block.qkv(block.norm1(x)).view(batch, length, 3, block.heads, width // block.heads)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            cache = caches[index]
            if cache is not None:
                key, value = torch.cat((cache[0], key), 2), torch.cat((cache[1], value), 2)
            caches[index] = (key, value)
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=cache is None)
            x = x + block.out(attended.transpose(1, 2).reshape(batch, length, width))
            x = x + block.mlp(block.norm2(x))
        new = model.head(model.norm(x[:, -1])).argmax(-1, keepdim=True)
        tokens, position = torch.cat((tokens, new), 1), position + length
    return tokens


def generation(device: torch.device) -> Callable[[], torch.Tensor]:
    torch.manual_seed(0)
    model = SmallGPT(width=64).to(device).eval()
    prompt = torch.randint(VOCABULARY, (1, 8)).to(device)
    return lambda: generate(model, prompt, 16)


class GraphConvolution(nn.Module):
    """Two layers of mean aggregation (after Kipf and Welling, 2017): nodes (V, F), edges (2, E) to (V, 8)."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(FEATURES, 64), nn.Linear(64, CLASSES)

    def forward(self, nodes, edges):
        source, target = edges
        degree = torch.zeros(len(nodes), device=nodes.device).index_add_(
            0, target, torch.ones_like(target, dtype=nodes.dtype)
        )
        norm = degree.clamp(min=1).reciprocal()[:, None]

        def gather(x):
            return torch.zeros_like(x).index_add(0, target, x[source]) * norm

        return gather(self.second(F.relu(gather(self.first(nodes)))))


def graph_step(device: torch.device) -> Callable[[], torch.Tensor]:
    torch.manual_seed(0)
    model = GraphConvolution().to(device)
    nodes, edges = torch.randn(NODES, FEATURES).to(device), torch.randint(NODES, (2, EDGES)).to(device)
    labels = torch.randint(CLASSES, (NODES,)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(nodes, edges), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def policy(device: torch.device) -> Callable[[], torch.Tensor]:
    """Returns an agent that selects 16 actions, one at a time, and reads each on the host."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4)).to(
        device
    )
    observations = torch.randn(16, 8)

    @torch.no_grad()
    def act() -> torch.Tensor:
        return torch.tensor([model(each.to(device)).argmax(-1).item() for each in observations])

    return act


PROGRAMS = (
    Program("generate 16 tokens", generation),
    Program("GCN step", graph_step),
    Program("policy, 16 actions", policy),
)


def measure(program: Program, device: torch.device, baseline: torch.device, effort: Effort) -> Row:
    here, there = program.make(device), program.make(baseline)
    check_same(program.name, here(), there())
    served = served_by(here, device)
    there()  # so that both sides have made equally many steps
    pair = interleaved(here, device, there, baseline, effort)
    times = (pair.value * 1e3, pair.baseline * 1e3)
    return Row(
        "program", program.name, *times, "ms", BAR, ratio=pair.ratio, spread=pair.spread, served=served
    )


def measure_all(device: torch.device, baseline: torch.device, effort: Effort) -> Iterator[Row]:
    for program in PROGRAMS:
        yield measure(program, device, baseline, effort)
