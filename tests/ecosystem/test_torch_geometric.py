# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch_geometric: graph layers, loaders and scatter on musa as on the CPU."""

from __future__ import annotations

import pytest
import torch
import torch_geometric
from torch_geometric import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import scatter, softmax, to_dense_adj

from tests.ecosystem.tiny import images
from tests.ecosystem.training import gradients, steps

EDGES = torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2, 4, 1], [1, 2, 3, 4, 5, 0, 3, 5, 1, 4]])


def graph(seed: int = 1) -> Data:
    return Data(
        x=images(6, 8, seed=seed), edge_index=EDGES, edge_attr=images(10, 4, seed=seed), y=torch.arange(6) % 3
    )


LAYERS = {
    "gcn": lambda: nn.GCNConv(8, 3),
    "gat": lambda: nn.GATConv(8, 3),
    "gatv2": lambda: nn.GATv2Conv(8, 3),
    "sage": lambda: nn.SAGEConv(8, 3),
    "gin": lambda: nn.GINConv(torch.nn.Linear(8, 3)),
    "chebyshev": lambda: nn.ChebConv(8, 3, K=2),
    "transformer": lambda: nn.TransformerConv(8, 3),
    "graph": lambda: nn.GraphConv(8, 3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, both):
    def program(device):
        torch.manual_seed(0)
        layer, data = LAYERS[name]().to(device), graph().to(device)
        loss_of = lambda: torch.nn.functional.cross_entropy(layer(data.x, data.edge_index), data.y)  # noqa: E731
        return {"losses": steps(layer, loss_of, 2), "gradients": gradients(layer)}

    both(program, within=1e-4)


def test_a_loader_of_graphs_and_pooling(both):
    def program(device):
        torch.manual_seed(0)
        model = nn.Sequential(
            "x, edges, batch",
            [(nn.GCNConv(8, 8), "x, edges -> x"), torch.nn.ReLU(), (nn.global_mean_pool, "x, batch -> x")],
        ).to(device)
        found = []
        for batch in DataLoader([graph(seed) for seed in range(4)], batch_size=2):
            batch = batch.to(device)
            found.append(model(batch.x, batch.edge_index, batch.batch))
        torch.cat(found).square().sum().backward()
        return {"found": found, "gradients": gradients(model)}

    both(program)


def test_scatter_and_conversions(both):
    def program(device):
        data = Batch.from_data_list([graph(1), graph(2)]).to(device)
        target = data.edge_index[1]
        found = [scatter(data.edge_attr, target, reduce=kind) for kind in ("sum", "mean", "max", "min")]
        return [*found, softmax(data.edge_attr, target), to_dense_adj(data.edge_index, data.batch)]

    both(program)


def test_the_device_is_found_without_a_name(both):
    def program(device):
        place = torch_geometric.device("auto") if device == "musa" else torch.device(device)
        layer, data = LAYERS["gcn"]().to(place), graph().to(place)
        return layer(data.x, data.edge_index).detach()

    both(program)
