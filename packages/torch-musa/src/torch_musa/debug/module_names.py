# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tracks the module that an operator belongs to, in forward and backward passes."""

import dataclasses
import threading
import weakref
from typing import NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

_KEY = "torch_musa.debug.module"


class _Running(NamedTuple):
    """A module whose forward pass is running."""

    module: torch.nn.Module
    name: str
    node: object  # the autograd node running when the forward pass began; None outside backward passes


class ModuleNames:
    """Tracks the stack of running modules per thread, and names autograd nodes.

    A module's name is its name in `named_modules()` of the outermost running module, prefixed with that
    module's class name. When a module exits, its name is stored in the metadata of the nodes that it created,
    where backward passes find it.
    """

    def __init__(self):
        self._stacks = threading.local()
        self._names = weakref.WeakKeyDictionary()
        self._handles = []

    def start(self):
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self):
        for handle in self._handles:
            handle.remove()

    def current(self):
        """Returns module, phase and autograd node name of this thread's current operator."""
        node = torch._C._current_autograd_node()
        stack = self._stack()
        if node is None:
            return stack[-1].name if stack else "", "forward", ""
        if stack and stack[-1].node is node:  # the node runs a forward pass, as in checkpointing
            return stack[-1].name, "recompute", node.name()
        return node.metadata.get(_KEY, ""), "backward", node.name()

    def _stack(self):
        try:
            return self._stacks.modules
        except AttributeError:
            self._stacks.modules = []
            return self._stacks.modules

    def _enter(self, module, arguments):
        stack = self._stack()
        around = stack[-1].name if stack else ""
        _name_nodes(arguments, around)
        # Checkpointing calls parts of a module that are already named.
        if not stack and module not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names[part] = f"{root}.{name}" if name else root
        name = self._names.get(module) or f"{around}.{type(module).__name__}"
        stack.append(_Running(module, name, torch._C._current_autograd_node()))

    def _leave(self, module, arguments, result):
        stack = self._stack()
        place = next((i for i in reversed(range(len(stack))) if stack[i].module is module), None)
        if place is None:  # it was already running when the mode was entered
            return
        name = stack[place].name
        del stack[place:]  # also removes modules above it whose hooks were skipped by an exception
        _name_nodes(result, name)


def _name_nodes(value, name):
    """Names the unnamed nodes in the graph of a value's tensors."""
    pending = [tensor.grad_fn for tensor in _tensors(value) if tensor.grad_fn is not None]
    while pending:
        node = pending.pop()
        metadata = node.metadata
        if _KEY in metadata:
            continue
        metadata[_KEY] = name
        pending += [before for before, _ in node.next_functions if before is not None]


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _tensors(vars(value))
