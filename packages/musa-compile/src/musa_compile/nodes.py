# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Nodes of graphs, and the fake tensors that describe their values."""

import torch


def is_on_musa(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.device.type == "musa"


def has_known_size(node):
    return is_on_musa(node) and all(isinstance(size, int) for size in node.meta["val"].shape)


def call(graph, target, *args, **kwargs):
    """Returns a new node, with its fake tensor."""
    node = graph.call_function(target, args, kwargs)
    values = [arg.meta["val"] if isinstance(arg, torch.fx.Node) else arg for arg in args]
    fake_mode = next(value.fake_mode for value in values if isinstance(value, torch._subclasses.FakeTensor))
    with fake_mode:
        node.meta["val"] = target(*values, **kwargs)
    return node
